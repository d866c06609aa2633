# SPDX-License-Identifier: Apache-2.0
"""Admission webhooks of a tenant, beside those of a real kube-apiserver: the same configuration and requests, the same
reviews and answers. Then what only a virtual cluster has to refuse, faults, and a process that is killed in the pause."""
import concurrent.futures
import contextlib
import json
import os
import re
import time

import pytest

from testenv import Api, eventually
from testenv.pki import Pki
from testenv.process import Port
from testenv.webhook import PLUGIN, WebhookServer, address, ca_bundle, patch, release, rule  # noqa: F401 - release is a fixture

NS = "reviewed"
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
LABEL = {"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}}


def refuse(**status):
    return {"allowed": False, "status": status}


ANSWERS = {
    "/allow": {"allowed": True, "warnings": ["one", "two"], "auditAnnotations": {"k": "v"}},
    "/deny": refuse(message="not here", code=403, reason="Forbidden"),
    "/deny-code": refuse(message="teapot", code=418),
    "/deny-reason": refuse(reason="BecauseISaySo"),
    "/deny-plain": {"allowed": False},
    "/label": patch(LABEL),
    "/data": patch({"op": "add", "path": "/data/added", "value": "1"}),
    "/patch-fails": patch({"op": "remove", "path": "/data/none"}),
    "/patch-breaks": patch({"op": "add", "path": "/data", "value": 3}),
    "/patch-invalid": patch({"op": "add", "path": "/data", "value": {"no key!": "x"}}),
    "/patch-test": patch({"op": "test", "path": "/data/a", "value": "other"}),
    "/patch-to-list": patch({"op": "replace", "path": "", "value": [1]}),
    "/patch-name": patch({"op": "replace", "path": "/metadata/namespace", "value": "other"}),
    "/patch-type": {"allowed": True, "patch": "W10="},
    "/patch-none": {"allowed": True, "patchType": "JSONPatch"},
    "/patch-text": {"allowed": True, "patchType": "JSONPatch", "patch": "bm90IGpzb24="},
    "/patch-merge": {"allowed": True, "patchType": "Merge", "patch": "e30="},
    "/uid": {"allowed": True, "uid": "another"},
}


class Hooks:
    """What one of the two servers' webhooks do."""

    def __init__(self, api, pki, where, release):
        self.api, self.release, self.port = api, release, Port()
        code, _, data = api.raw("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
        assert code == 201, data
        api.post(f"/api/v1/namespaces/{NS}/services", {
            "metadata": {"name": "hook"}, "spec": {"selector": {"app": "hook"}, "ports": [{"port": self.port.number}]}})
        self.ip = api.get(f"/api/v1/namespaces/{NS}/services/hook")["spec"]["clusterIP"]
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(address(self.ip))
        self.pki = pki
        self.server = WebhookServer(pki.issue(where, "/CN=hook", (f"hook.{NS}.svc",)), self.ip, self.port.number, self.answer)
        self.stack.callback(self.server.stop)

    def answer(self, handler, path, review):
        if path in ANSWERS:
            return ANSWERS[path]
        if path == "/hang":
            self.release.wait(20)
            return {"allowed": True}
        if path == "/close":
            handler.close_connection = True
            return None
        if path == "/big":
            handler.say(b"[" + b" " * (5 << 20) + b"]")
        elif path == "/text":
            handler.say(b"hello")
        elif path == "/absent":
            handler.say({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})
        elif path == "/beta":
            handler.say({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {
                "uid": review["request"]["uid"], "allowed": True}})
        elif path == "/redirect":
            handler.say(b"{}", 307, [("Location", "https://127.0.0.1:1/secret")])
        else:
            handler.say({"message": "no"}, int(path[1:]))
        return None

    def hook(self, path, name=None, rules=None, **over):
        service = {"namespace": NS, "name": "hook", "port": self.port.number, "path": path, **over.pop("service", {})}
        return {"name": name or f"{path[1:]}.test.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "rules": rules or [rule("configmaps")], "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": NS}},
                "clientConfig": {"service": service, "caBundle": ca_bundle(self.pki)}, **over}

    @contextlib.contextmanager
    def configured(self, *hooks, kind="Validating", name="c", known=None):
        """The configuration is in effect: kube-apiserver's is a cache."""
        plural = f"{PLUGIN}/{kind.lower()}webhookconfigurations"
        made = self.api.post(plural, {"metadata": {"name": name}, "webhooks": [*hooks, self.probe()]})
        try:
            self.known(kind)
            yield made
        finally:
            self.api.delete(f"{plural}/{name}")
            eventually(lambda: not self.is_known(), 30, "the end of the configuration")

    def probe(self):
        return self.hook("/deny-plain", "probe.test.dev", objectSelector={"matchLabels": {"probe": "yes"}})

    def is_known(self):
        code, _, _ = self.api.raw("POST", MAPS, {"metadata": {"name": "probe", "labels": {"probe": "yes"}}},
                                  query={"dryRun": "All"})
        return code != 201

    def known(self, kind):
        eventually(self.is_known, 30, f"the {kind} configuration")
        self.server.seen.clear()


@pytest.fixture
def hooks(tenant, workdir, release, request):
    vc = tenant("hooks")
    h = Hooks(vc.api, Pki(os.path.join(workdir, f"hooks-{vc.namespace}")), "here", release)
    h.vc = vc
    yield h
    release.set()
    release.clear()
    h.stack.close()


@pytest.fixture(scope="module")
def oracle(real_host, workdir, release):
    h = Hooks(real_host.api, Pki(os.path.join(workdir, "hooks-oracle")), "there", release)
    yield h
    h.stack.close()
    real_host.api.delete(f"/api/v1/namespaces/{NS}")


def config_map(name="a", **over):
    return {"metadata": {"name": name, "namespace": NS, **over}, "data": {"a": "1"}}


VOLATILE = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink")


def plain(value, ports):
    """Without what differs between two servers."""
    if isinstance(value, dict):
        return {k: plain(v, ports) for k, v in value.items() if k not in (*VOLATILE, "userInfo")}
    if isinstance(value, list):
        return [plain(v, ports) for v in value]
    if isinstance(value, str):
        for p in ports:
            value = value.replace(str(p), "PORT")
    return value


def cached(api, path, made):
    """Waits for the watch cache: a kube-apiserver begins a patch with what is there, and reviews it again where that was old."""
    meta = made.get("metadata", {}) if isinstance(made, dict) else {}
    if not meta.get("resourceVersion") or not meta.get("name"):
        return
    at = path.removesuffix("/status")
    at = at if at.endswith("/" + meta["name"]) else f"{at}/{meta['name']}"

    def seen():
        code, _, data = api.raw("GET", at, query={"resourceVersion": "0"})
        return code != 200 or json.loads(data)["metadata"].get("resourceVersion") == meta["resourceVersion"]
    eventually(seen, 30, f"the cache to have {at}")


def both(hooks, oracle, act, configure, kind="Validating"):
    """[(reviews, answers)] of the virtual cluster and of kube-apiserver; answers are (code, Warnings, object)."""
    got = []
    for h in (hooks, oracle):
        answers = []

        def send(method, path, body=None, h=h, answers=answers, **kw):
            code, headers, data = h.api.raw(method, path, body, **kw)
            try:
                shown = json.loads(data)
            except ValueError:
                shown = data.decode()
            answers.append(plain([code, sorted(headers.get_all("Warning") or []), shown], [h.port.number]))
            if method in ("POST", "PUT", "PATCH") and code < 300 and not kw.get("query"):
                cached(h.api, path, shown)
            return shown
        with h.configured(*configure(h), kind=kind):
            act(send)
            got.append(([(p, plain(r, [])) for p, r, _ in h.server.seen], answers))
        h.api.raw("DELETE", MAPS)
    return got


def alike(hooks, oracle, act, configure, kind="Validating"):
    (reviews, answers), (wanted_reviews, wanted) = both(hooks, oracle, act, configure, kind)
    for mine, theirs in zip([*answers, *reviews], [*wanted, *wanted_reviews]):
        assert mine == theirs, json.dumps([mine, theirs], indent=1)
    assert len(answers) == len(wanted) and len(reviews) == len(wanted_reviews)
    return reviews, answers


EVERY = [rule("configmaps", ["*"]), rule("deployments deployments/status", ["CREATE", "UPDATE"], ["apps"])]
APPLY = "application/apply-patch+yaml"


def deployment():
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": NS}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}


def requests(send):
    send("POST", MAPS, config_map(), query={"fieldManager": "me"})
    send("PUT", f"{MAPS}/a", config_map(labels={"x": "y"}))
    send("PATCH", f"{MAPS}/a", {"data": {"b": "2"}}, content_type="application/merge-patch+json")
    send("PATCH", f"{MAPS}/s", json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}}).encode(),
         content_type=APPLY, query={"fieldManager": "ssa"})
    send("POST", MAPS, {"metadata": {"generateName": "g-"}}, query={"dryRun": "All"})
    send("DELETE", f"{MAPS}/a", {"propagationPolicy": "Background"})


def test_reviews_are_those_of_kube_apiserver(hooks, oracle):
    reviews, answers = alike(hooks, oracle, lambda send: requests(lambda m, p, *a, **k: "generateName" in str(a) or
                                                                  send(m, p, *a, **k)),
                             lambda h: [h.hook("/allow", rules=EVERY)])
    assert [r["operation"] for _, r in reviews] == ["CREATE", "UPDATE", "UPDATE", "CREATE", "DELETE"]
    assert any("one" in w for w in answers[0][1])


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_generated_name_is_shown_as_by_kube_apiserver(hooks, oracle, kind):
    """A validating webhook knows it, a mutating one does not; of a Namespace neither knows the namespace."""
    def act(send):
        for path in (MAPS, "/api/v1/namespaces"):
            send("POST", path, {"metadata": {"generateName": "gen-", "labels": {"gen": "yes"}}}, query={"dryRun": "All"})

    def shown(value):
        return json.loads(re.sub(r"gen-[a-z0-9]{5}", "gen-NAME", json.dumps(value)))
    got = both(hooks, oracle, act, lambda h: [
        h.hook("/allow", rules=[rule("configmaps namespaces")], namespaceSelector={}, objectSelector={
            "matchLabels": {"gen": "yes"}})], kind)
    assert shown(got[0]) == shown(got[1]), json.dumps(shown(got), indent=1)
    for _, review in shown(got[0][0]):
        assert (review.get("name") == "gen-NAME") == (kind == "Validating")
        assert (review["object"]["metadata"].get("name") == "gen-NAME") == (kind == "Validating")


@pytest.mark.parametrize("path", [p for p in ANSWERS if p.startswith("/deny")])
def test_refusals_are_those_of_kube_apiserver(hooks, oracle, path):
    _, answers = alike(hooks, oracle, lambda send: send("POST", MAPS, config_map()), lambda h: [h.hook(path)])
    assert answers[0][0] in (400, 403, 418) and "denied the request" in answers[0][2]["message"]


CONDITIONS = {
    "true": ["request.name == 'a'", "object.data.a == '1'", "oldObject == null"],
    "false": ["request.name == 'a'", "object.data.a == '2'"],
    "user": ["request.userInfo.username != '' && 'system:authenticated' in request.userInfo.groups"],
    "denied": ["authorizer.group('').resource('configmaps').namespace('other').check('fly').allowed() == false"],
    "own": ["authorizer.requestResource.check('create').allowed()"],
    "error": ["object.data.none == '1'"],
    "errors": ["object.data.none == '1'", "object.data.a == '1'", "object.metadata.labels.x == 'y'"],
    "error-and-false": ["object.data.none == '1'", "object.data.a == '2'"],
    "no-namespace-object": ["namespaceObject == null"],
}


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_match_conditions_are_those_of_kube_apiserver(hooks, oracle, kind, policy):
    """Of every case one hook, which only objects of its label reach."""
    def configure(h):
        return [h.hook("/deny", f"{case}.test.dev", failurePolicy=policy, objectSelector={"matchLabels": {"case": case}},
                       matchConditions=[{"name": f"c{i}", "expression": e} for i, e in enumerate(CONDITIONS[case])])
                for case in CONDITIONS]

    def act(send):
        for case in CONDITIONS:
            send("POST", MAPS, config_map(labels={"case": case}), query={"dryRun": "All"})
    reviews, answers = alike(hooks, oracle, act, configure, kind)
    outcomes = {case: a[0] for case, a in zip(CONDITIONS, answers)}
    assert outcomes["true"] == 403 and outcomes["false"] == outcomes["error-and-false"] == 201, outcomes
    assert outcomes["error"] == (403 if policy == "Fail" else 201) and len(reviews) < len(CONDITIONS)


@pytest.mark.parametrize("expression", ["object.x ==", "1", "nothing == 1", "params == null", "variables.a", "'a'"])
def test_conditions_have_to_compile(hooks, oracle, expression):
    got = []
    for h in (hooks, oracle):
        hook = h.hook("/allow", matchConditions=[{"name": "good", "expression": "true"}, {"name": "bad", "expression": expression}])
        code, _, data = h.api.raw("POST", f"{PLUGIN}/validatingwebhookconfigurations",
                                  {"metadata": {"name": "never"}, "webhooks": [hook]})
        got.append((code, json.loads(data)))
    assert got[0] == got[1] and got[0][0] == 422, json.dumps(got, indent=1)


def faults(hooks, oracle, path, kind, policy, **over):
    def act(send):
        send("POST", MAPS, config_map("f"))
    (_, [mine]), (_, [wanted]) = both(hooks, oracle, act, lambda h: [h.hook(path, failurePolicy=policy, **over)], kind)
    return mine, wanted


FAULTS = ["/close", "/text", "/absent", "/beta", "/uid", "/404", "/500", "/418", "/redirect"]


@pytest.mark.parametrize("path", FAULTS)
def test_a_broken_webhook_follows_its_failure_policy(hooks, oracle, path):
    mine, wanted = faults(hooks, oracle, path, "Validating", "Fail")
    assert mine[0] == wanted[0] == 500
    begin = f'Internal error occurred: failed calling webhook "{path[1:]}.test.dev": '
    assert mine[2]["message"].startswith(begin) and wanted[2]["message"].startswith(begin), (mine, wanted)
    assert mine[2]["reason"] == wanted[2]["reason"] == "InternalError"
    mine, wanted = faults(hooks, oracle, path, "Validating", "Ignore")
    assert mine == wanted and mine[0] == 201


@pytest.mark.parametrize("path", [p for p in ANSWERS if p.startswith("/patch")])
def test_a_bad_patch_is_refused_as_by_kube_apiserver(hooks, oracle, path):
    mine, wanted = faults(hooks, oracle, path, "Mutating", "Fail")
    assert mine[0] == wanted[0], (mine, wanted)
    assert mine[2]["reason"] == wanted[2]["reason"], (mine, wanted)


def test_mutations_are_those_of_kube_apiserver(hooks, oracle):
    def act(send):
        send("POST", MAPS, config_map())
        send("PUT", f"{MAPS}/a", {**config_map(), "data": {"c": "3"}})
        send("PATCH", f"{MAPS}/a", {"data": {"b": "2"}}, content_type="application/merge-patch+json")
        send("GET", f"{MAPS}/a")
        send("DELETE", f"{MAPS}/a")
    reviews, answers = alike(hooks, oracle, act, lambda h: [
        h.hook("/label", reinvocationPolicy="IfNeeded", objectSelector={
            "matchExpressions": [{"key": "hooked", "operator": "DoesNotExist"}]}), h.hook("/data"),
        h.hook("/allow", reinvocationPolicy="IfNeeded")], "Mutating")
    assert answers[3][2]["data"] == {"added": "1", "b": "2", "c": "3"}
    assert answers[3][2]["metadata"]["labels"] == {"hooked": "yes"}
    assert [p for p, _ in reviews][:3] == ["/label", "/data", "/allow"]


# ---- what only a virtual cluster refuses ----

def call(hooks, hook, kind="Validating"):
    """The message of a create that `hook` reviews."""
    with hooks.configured(hook, kind=kind):
        code, _, data = hooks.api.raw("POST", MAPS, config_map("fenced"))
    assert code == 500, data
    return json.loads(data)["message"]


def test_no_server_but_an_own_service_is_called(hooks):
    api = hooks.api
    for name, spec in {"manual": {"ports": [{"port": 443}]}, "none": {"clusterIP": "None", "selector": {"a": "b"},
                                                                      "ports": [{"port": 443}]},
                       "named": {"type": "ExternalName", "externalName": "kubernetes.default.svc"}}.items():
        api.post(f"/api/v1/namespaces/{NS}/services", {"metadata": {"name": name}, "spec": spec})
    own = "does not select pods of this virtual cluster"
    for where, why in [({"namespace": "default", "name": "kubernetes", "port": 443}, own), ({"name": "manual", "port": 443}, own),
                       ({"name": "named", "port": 443}, own), ({"name": "gone"}, 'service "gone" not found'),
                       ({"name": "none", "port": 443}, 'cannot route to service with ClusterIP "None"'),
                       ({"port": 4}, "no service port 4 found")]:
        assert why in call(hooks, hooks.hook("/allow", service=where)), where
    assert not hooks.server.of("/allow")


def test_another_certificate_is_refused_and_no_credentials_are_sent(hooks, workdir):
    other = Pki(os.path.join(workdir, f"other-{hooks.vc.namespace}"))
    wrong = hooks.hook("/allow")
    wrong["clientConfig"]["caBundle"] = ca_bundle(other)
    assert "tls: failed to verify certificate" in call(hooks, wrong)
    with hooks.configured(hooks.hook("/allow")):
        hooks.api.post(MAPS, config_map("sent"))
        headers = [h for p, _, h in hooks.server.seen if p == "/allow"][0]
    assert {k.lower() for k in headers} <= {"host", "user-agent", "accept", "content-type", "content-length"}


def test_an_answer_is_bounded_in_time_and_size(hooks):
    start = time.monotonic()
    assert "context deadline exceeded" in call(hooks, hooks.hook("/hang", timeoutSeconds=1))
    assert 1 <= time.monotonic() - start < 8
    assert "the answer has more than" in call(hooks, hooks.hook("/big"))


def test_nothing_else_waits_and_a_broken_webhook_can_be_removed(hooks, release):
    with hooks.configured(hooks.hook("/hang", timeoutSeconds=30, rules=[rule("configmaps", ["*"])],
                                     objectSelector={"matchLabels": {"slow": "yes"}})):
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            slow = [pool.submit(Api(hooks.vc.kubeconfig).raw, "POST", MAPS, config_map(f"s{i}", labels={"slow": "yes"}))
                    for i in range(40)]
            eventually(lambda: len(hooks.server.of("/hang")) == 40, 30, "the reviews to be sent")
            start = time.monotonic()
            for i in range(20):
                hooks.api.post(MAPS, config_map(f"f{i}"))
            hooks.api.patch(f"{PLUGIN}/validatingwebhookconfigurations/c", {"metadata": {"labels": {"a": "b"}}})
            assert time.monotonic() - start < 5 and not any(f.done() for f in slow)
            release.set()
            assert [f.result()[0] for f in slow] == [201] * 40
        release.clear()


def test_an_update_is_repeated_from_what_another_client_wrote(hooks, release):
    hooks.api.post(MAPS, config_map("u"))
    with hooks.configured(hooks.hook("/hang", timeoutSeconds=20, objectSelector={"matchLabels": {"slow": "yes"}})):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waits = pool.submit(Api(hooks.vc.kubeconfig).raw, "PATCH", f"{MAPS}/u",
                                {"metadata": {"labels": {"slow": "yes"}}}, "application/merge-patch+json")
            eventually(lambda: hooks.server.of("/hang"), 30, "the review")
            hooks.api.patch(f"{MAPS}/u", {"data": {"meanwhile": "1"}})
            release.set()
            assert waits.result()[0] == 200
            release.clear()
        now = hooks.api.get(f"{MAPS}/u")
        assert now["data"] == {"a": "1", "meanwhile": "1"} and now["metadata"]["labels"] == {"slow": "yes"}
        assert [r["object"]["data"].get("meanwhile") for r in hooks.server.of("/hang")] == [None, "1"]


def test_a_write_whose_client_has_gone_is_not_stored(hooks, release):
    with hooks.configured(hooks.hook("/hang", timeoutSeconds=20, objectSelector={"matchLabels": {"slow": "yes"}})):
        code, _, _ = hooks.api.raw("POST", MAPS, config_map("late", labels={"slow": "yes"}), query={"timeout": "1s"})
        assert code == 504
        release.set()
        hooks.api.post(MAPS, config_map("next", labels={"slow": "yes"}))
        release.clear()
        assert len(hooks.server.of("/hang")) == 2
        assert hooks.api.raw("GET", f"{MAPS}/late")[0] == 404


def test_a_put_cannot_be_made_a_create_of_another_name(hooks):
    ANSWERS["/rename"] = patch({"op": "replace", "path": "/metadata/name", "value": "other"})
    with hooks.configured(hooks.hook("/rename", "a.test.dev"), kind="Mutating"):
        code, _, data = hooks.api.raw("PATCH", f"{MAPS}/applied", json.dumps({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}).encode(), content_type=APPLY,
            query={"fieldManager": "ssa"})
        assert code == 400 and "does not match the name on the URL" in json.loads(data)["message"]
        assert [hooks.api.raw("GET", f"{MAPS}/{n}")[0] for n in ("applied", "other")] == [404, 404]


def test_a_process_that_is_killed_in_the_pause_has_stored_nothing(hooks):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        hooks.api.post(f"{PLUGIN}/validatingwebhookconfigurations", {"metadata": {"name": "k"}, "webhooks": [
            hooks.hook("/hang", timeoutSeconds=20, objectSelector={"matchLabels": {"slow": "yes"}})]})
        waits = pool.submit(Api(hooks.vc.kubeconfig).raw, "POST", MAPS, config_map("killed", labels={"slow": "yes"}))
        eventually(lambda: hooks.server.of("/hang"), 30, "the review")
        hooks.vc.process.kill()
        assert waits.exception() is not None
        hooks.vc.start()
        hooks.api = hooks.vc.api
        assert hooks.api.raw("GET", f"{MAPS}/killed")[0] == 404
        hooks.api.delete(f"{PLUGIN}/validatingwebhookconfigurations/k")


def test_controllers_creates_are_reviewed_and_retried(hooks):
    pods = hooks.hook("/label", rules=[rule("pods", ["CREATE"])])
    with hooks.configured(pods, kind="Mutating"):
        hooks.api.post(f"/apis/apps/v1/namespaces/{NS}/deployments", {**deployment(), "spec": {**deployment()["spec"], "replicas": 1}})
        eventually(lambda: [p for p in hooks.api.get(f"/api/v1/namespaces/{NS}/pods")["items"]
                            if p["metadata"]["labels"].get("hooked") == "yes"], 30, "the reviewed pod")
        assert hooks.server.of("/label")[0]["userInfo"]["username"] == "system:serviceaccount:kube-system:replicaset-controller"
