# SPDX-License-Identifier: Apache-2.0
"""Admission of what is no plain object: connections, Scales, Bindings, Evictions, token requests, reviews and the other
subresources. The same webhooks and policies see the same requests as those of a real kube-apiserver."""
import contextlib
import json
import os

import pytest

from raw_http import connect, reset
from test_watch_socket import frame
from test_webhooks import ANSWERS, NS, Hooks, alike, hooks, oracle, release  # noqa: F401 (fixtures)
from testenv import eventually
from testenv.webhook import patch, rule

AT = f"/api/v1/namespaces/{NS}"
APPS = f"/apis/apps/v1/namespaces/{NS}"
MERGE = {"content_type": "application/merge-patch+json"}
SUBS = [rule("*/exec */attach */portforward */proxy */eviction */binding */token */ephemeralcontainers */resize */finalize "
             "pods/status deployments/status", ["*"], ["*"], ["*"])]
REFUSED = {"allowed": False, "status": {"message": "not that", "code": 403, "reason": "Forbidden"}}
ANSWERS["/refuse"] = REFUSED


def template(replicas=0):
    return {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}


POD = {"metadata": {"name": "p", "labels": {"x": "y"}}, "spec": {"nodeSelector": {"none": "none"}, "containers": [
    {"name": "c", "image": "i"}]}}


@pytest.fixture
def pair(hooks, oracle):
    for h in (hooks, oracle):
        for path, body in ((f"{AT}/pods", POD), (f"{APPS}/deployments", {"metadata": {"name": "d", "labels": {"x": "y"}},
                                                                       "spec": template()}),
                           (f"{APPS}/replicasets", {"metadata": {"name": "d"}, "spec": template()}),
                           (f"{APPS}/statefulsets", {"metadata": {"name": "d"}, "spec": {**template(), "serviceName": "d"}}),
                           (f"{AT}/replicationcontrollers", {"metadata": {"name": "d"}, "spec": {
                               **template(), "selector": {"a": "b"}}})):
            code, _, data = h.api.raw("POST", path, body)
            assert code in (201, 409), data
        for kind in ("deployments", "replicasets", "statefulsets"):
            eventually(lambda h=h, kind=kind: h.api.get(f"{APPS}/{kind}/d").get("status", {}).get("observedGeneration"), 30, kind)
    eventually(lambda: oracle.api.get(f"{AT}/pods/p")["status"].get("conditions"), 30, "the scheduler to have seen the pod")
    yield hooks, oracle
    for path in (f"{APPS}/deployments", f"{APPS}/replicasets", f"{APPS}/statefulsets", f"{AT}/replicationcontrollers",
                 f"{AT}/pods"):
        for h in (hooks, oracle):
            h.api.raw("DELETE", path, query={"gracePeriodSeconds": "0"})
    eventually(lambda: not [p for p in oracle.api.get(f"{AT}/pods")["items"]], 30, "the end of the pods")


CONNECTIONS = [
    ("GET", f"{AT}/pods/p/exec", "command=sh&command=-c&command=a%20b&stdin=true&stdout=1&tty=false&container=c"),
    ("POST", f"{AT}/pods/p/exec", "command=ls&stdin=0&stderr="),
    ("POST", f"{AT}/pods/p/exec", ""),
    ("GET", f"{AT}/pods/gone/exec", "command=ls"),
    ("POST", f"{AT}/pods/p/attach", "stdin=true&stdout=true&tty=yes&command=no"),
    ("POST", f"{AT}/pods/p/portforward", "ports=80,81&ports=9"),
    ("GET", f"{AT}/pods/p/portforward", ""),
    ("POST", f"{AT}/pods/p/portforward", "ports=x"),
    ("POST", f"{AT}/pods/p/portforward", "ports=65536"),
    ("POST", f"{AT}/pods/p/exec", "command=ls&dryRun=All"),
    ("GET", f"{AT}/pods/p:80/proxy", ""),
    ("GET", f"{AT}/pods/p:80/proxy/", "q=1"),
    ("POST", f"{AT}/pods/https:p:http/proxy/a%20b/c", "path=no"),
    ("PUT", f"{AT}/services/hook:443/proxy/a/b/", ""),
    ("DELETE", f"{AT}/services/hook/proxy/a", ""),
    ("PATCH", f"{AT}/services/hook/proxy/a", ""),
    ("GET", "/api/v1/nodes/n/proxy/stats/summary", ""),
]


def send_connections(send):
    for method, path, query in CONNECTIONS:
        send(method, f"{path}?{query}")


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_connections_are_reviewed_as_by_kube_apiserver(pair, kind):
    """Refused by the webhook: nothing is opened toward a host, and pods that do not exist are reviewed as well."""
    reviews, answers = alike(*pair, send_connections, lambda h: [h.hook("/refuse", rules=SUBS)], kind)
    assert {r["operation"] for _, r in reviews} == {"CONNECT"}
    assert {r["object"]["kind"] for _, r in reviews} == {
        "PodExecOptions", "PodAttachOptions", "PodPortForwardOptions", "PodProxyOptions", "ServiceProxyOptions",
        "NodeProxyOptions"}
    assert [a[0] for a in answers].count(403) == len(reviews) == len(CONNECTIONS) - 3


def test_connections_match_as_by_kube_apiserver(pair):
    """Selectors of objects select no connection; a rule about pods is about no subresource."""
    def configure(h):
        one = {"rules": [rule("pods/exec", ["CONNECT"])]}
        return [h.hook("/allow", "a.test.dev", [rule("pods", ["*"])]), h.hook("/allow", "b.test.dev", [rule("pods/*", ["CREATE"])]),
                h.hook("/allow", "c.test.dev", objectSelector={"matchLabels": {"x": "y"}}, **one),
                h.hook("/allow", "d.test.dev", objectSelector={"matchExpressions": [{"key": "q", "operator": "DoesNotExist"}]},
                       **one),
                h.hook("/allow", "e.test.dev", namespaceSelector={"matchLabels": {"a": "b"}}, **one),
                h.hook("/allow", "f.test.dev", [rule("pods/exec", ["CONNECT"], scope="Cluster")]),
                h.hook("/refuse", "g.test.dev", [rule("*/exec", ["CONNECT"], scope="Namespaced")], matchConditions=[
                    {"name": "n", "expression": "object.command == ['ls'] && request.options == null && request.name == 'p'"}])]
    reviews, answers = alike(*pair, lambda send: send("POST", f"{AT}/pods/p/exec?command=ls"), configure)
    assert [p for p, _ in reviews] == ["/refuse"] and answers[0][0] == 403


# ---- the pause: no byte is lost, nothing else waits, nothing is opened for a client that has gone ----

EXEC = [rule("pods/exec", ["CONNECT"])]


@pytest.fixture
def running(hooks):
    hooks.api.post(f"{AT}/pods", {"metadata": {"name": "run"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    eventually(lambda: hooks.api.get(f"{AT}/pods/run")["status"].get("phase") == "Running", 60, "the pod to run")
    return hooks


def exec_socket(h, *command, early=b""):
    """An exec over a WebSocket, with bytes that come before it is answered."""
    query = "&".join(f"command={word}" for word in command)
    s = connect(h.vc, timeout=60)
    s.sendall((f"GET {AT}/pods/run/exec?{query}&stdin=true&stdout=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
               "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n").encode() + early)
    return s


def read_until(s, text):
    got = b""
    while text not in got:
        part = s.recv(65536)
        assert part, got
        got += part
    return got


def test_an_exec_waits_for_its_webhook_and_loses_nothing(running, release):
    early = frame(2, b"\x00hel")
    with running.configured(running.hook("/hang", rules=EXEC, timeoutSeconds=30)):
        s = exec_socket(running, "/usr/bin/head", "-c", "6", early=early)
        eventually(lambda: running.server.of("/hang"), 30, "the review")
        running.api.get(f"{AT}/pods/run")  # nothing else waits
        s.sendall(frame(2, b"\x00lo\n"))
        release.set()
        got = read_until(s, b"lo\n")
        release.clear()
        s.close()
    assert got.startswith(b"HTTP/1.1 101 ") and b"hel" in got


def test_no_exec_is_opened_for_a_client_that_has_gone(running, release, real_host):
    marks = [os.path.join(real_host.dir, name) for name in ("gone", "here")]
    with running.configured(running.hook("/hang", rules=EXEC, timeoutSeconds=30)):
        gone = exec_socket(running, "/usr/bin/touch", marks[0])
        eventually(lambda: running.server.of("/hang"), 30, "the review")
        reset(gone)
        running.api.get(f"{AT}/pods/run")
        release.set()
        here = exec_socket(running, "/usr/bin/touch", marks[1])
        eventually(lambda: os.path.exists(marks[1]), 30, "the exec whose client stays")
        release.clear()
        here.close()
    assert not os.path.exists(marks[0])


def test_a_changed_exec_runs_what_the_webhook_made_of_it(running):
    ANSWERS["/echo"] = patch({"op": "replace", "path": "/command", "value": ["/bin/echo", "another"]})
    with running.configured(running.hook("/echo", rules=EXEC), kind="Mutating"):
        assert running.vc.kubectl("exec", "-n", NS, "run", "--", "/bin/echo", "one").strip() == "another"
    assert running.vc.kubectl("exec", "-n", NS, "run", "--", "/bin/echo", "one").strip() == "one"


def test_connections_over_http2_are_reviewed(running):
    with running.configured(running.hook("/refuse", rules=SUBS)):
        for path in (f"{AT}/services/hook:443/proxy/a", f"{AT}/pods/run/exec?command=ls"):
            assert "not that" in running.vc.kubectl.fails("get", "--raw", path)
        assert [r["operation"] for r in running.server.of("/refuse")] == ["CONNECT"] * 2
        assert "not that" in running.vc.kubectl.fails("exec", "-n", NS, "run", "--", "/bin/echo", "one")
    with running.configured(running.hook("/allow", rules=SUBS)):
        assert "Upgrade request required" in running.vc.kubectl.fails("get", "--raw", f"{AT}/pods/run/exec?command=ls")


SCALED = [f"{APPS}/deployments/d/scale", f"{APPS}/replicasets/d/scale", f"{APPS}/statefulsets/d/scale",
          f"{AT}/replicationcontrollers/d/scale"]


def scale(send):
    for path in SCALED:
        name = path.split("/")[-2]
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": NS},
                "spec": {"replicas": 0}}
        send("PUT", path, body, query={"dryRun": "All", "fieldManager": "m"})
        send("PATCH", path, {"spec": {"replicas": 2}}, query={"dryRun": "All"}, **MERGE)
        send("PATCH", path, [{"op": "replace", "path": "/spec/replicas", "value": 3}], query={"dryRun": "All"},
             content_type="application/json-patch+json")


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_scales_are_reviewed_as_by_kube_apiserver(pair, kind):
    reviews, _ = alike(*pair, scale, lambda h: [h.hook("/allow", rules=[rule("*/scale", ["*"], ["*"], ["*"])])], kind)
    assert len(reviews) == 3 * len(SCALED)
    for _, r in reviews:
        assert (r["kind"]["kind"], r["subResource"], r["operation"]) == ("Scale", "scale", "UPDATE")


def test_a_scale_is_refused_and_changed_as_by_kube_apiserver(pair):
    ANSWERS["/five"] = patch({"op": "add", "path": "/spec/replicas", "value": 5})
    ANSWERS["/minus"] = patch({"op": "add", "path": "/spec/replicas", "value": -5})

    def act(send):
        send("PATCH", SCALED[0], {"spec": {"replicas": 2}}, query={"dryRun": "All"}, **MERGE)
    only = [rule("deployments/scale", ["UPDATE"], ["apps"])]
    _, answers = alike(*pair, act, lambda h: [h.hook("/refuse", rules=only)])
    assert answers[0][0] == 403
    _, answers = alike(*pair, act, lambda h: [h.hook("/five", rules=only)], "Mutating")
    assert answers[0][2]["spec"] == {"replicas": 5}
    _, answers = alike(*pair, act, lambda h: [h.hook("/minus", rules=only)], "Mutating")
    assert answers[0][0] == 422


BOUND = {"metadata": {"name": "p", "labels": {"l": "m"}}, "target": {"kind": "Node", "name": "n"}}
CREATES = [
    ("POST", f"{AT}/pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"},
                                       "deleteOptions": {"gracePeriodSeconds": 3}}),
    ("POST", f"{AT}/pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}),
    ("POST", f"{AT}/pods/gone/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "gone"}}),
    ("POST", f"{AT}/pods/p/binding", BOUND), ("POST", f"{AT}/bindings", BOUND),
    ("POST", f"{AT}/pods/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}}),
    ("POST", f"{AT}/serviceaccounts/default/token", {"spec": {"audiences": ["a"]}}),
    ("POST", f"{AT}/serviceaccounts/default/token", {"spec": {"audiences": ["a"], "expirationSeconds": 700}}),
    ("POST", f"{AT}/serviceaccounts/default/token", {"spec": {"audiences": ["a"], "expirationSeconds": 7}}),
    ("POST", f"{AT}/serviceaccounts/gone/token", {"spec": {"audiences": ["a"]}}),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    ("POST", f"/apis/authorization.k8s.io/v1/namespaces/{NS}/localsubjectaccessreviews", {
        "spec": {"user": "u", "resourceAttributes": {"namespace": NS, "verb": "get", "resource": "pods"}}}),
]
CREATED = [*SUBS, rule("bindings", ["*"]), rule("*", ["CREATE"], ["authorization.k8s.io"])]


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize("answer", ["/allow", "/refuse"])
def test_requests_are_reviewed_as_by_kube_apiserver(pair, kind, answer):
    """Bindings, Evictions, token requests, access reviews: CREATE of another kind than the URL's resource."""
    def of(h):
        answers = []
        with h.configured(h.hook(answer, rules=CREATED), kind=kind):
            for method, path, body in CREATES:
                code, _, data = h.api.raw(method, path, body, query={"dryRun": "All"})
                message = json.loads(data).get("message") or ""
                if "has no such node" not in message:  # of a virtual cluster alone
                    answers.append((path, code, message))  # and no token, which is of one server
            return [drop(r) for _, r, _ in h.server.seen], answers
    mine, theirs = map(of, pair)
    for a, b in zip(mine[0], theirs[0]):
        assert a == b, json.dumps([a, b], indent=1)
    assert len(mine[0]) == len(theirs[0]) > 6
    assert not set(mine[1]) - set(theirs[1]), json.dumps([mine[1], theirs[1]], indent=1)


def drop(value):
    if isinstance(value, dict):
        return {k: drop(v) for k, v in value.items() if k not in (
            "uid", "creationTimestamp", "resourceVersion", "managedFields", "userInfo")}
    return [drop(v) for v in value] if isinstance(value, list) else value


WHOLE = [
    ("PATCH", f"{AT}/pods/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, {
        "content_type": "application/strategic-merge-patch+json"}),
    ("PATCH", f"{AT}/pods/p/resize", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}, {
        "content_type": "application/strategic-merge-patch+json"}),
    ("PATCH", f"{AT}/pods/p/status", {"status": {"reason": "x"}}, MERGE),
    ("PATCH", f"{APPS}/deployments/d/status", {"status": {"replicas": 0}}, MERGE),
    ("PUT", f"/api/v1/namespaces/{NS}/finalize", {"metadata": {"name": NS}, "spec": {"finalizers": ["kubernetes"]}}, {}),
]


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_other_subresources_are_reviewed_as_by_kube_apiserver(pair, kind):
    """What a subresource makes of the object itself."""
    for h in pair:
        with h.configured(h.hook("/allow", rules=SUBS), kind=kind):
            for method, path, body, kw in WHOLE:
                code, _, data = h.api.raw(method, path, body, query={"dryRun": "All"}, **kw)
                h.answers = [*getattr(h, "answers", []), (path, code, json.loads(data).get("message"))]
            h.seen = [[r[k] for k in ("kind", "resource", "subResource", "operation", "name", "namespace")] + [
                r["object"]["kind"], r["oldObject"]["kind"]] for _, r, _ in h.server.seen]
    mine, theirs = pair
    assert mine.seen == theirs.seen and mine.answers == theirs.answers, json.dumps([
        mine.seen, theirs.seen, mine.answers, theirs.answers], indent=1)
    assert len(mine.seen) >= 4
    for h in pair:
        del h.answers, h.seen


def test_custom_scales_and_other_versions(pair):
    """A webhook about another version of a custom resource sees its Scale, unless that version has none."""
    def version(name, scaled, stored=False):
        scale = {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}} if scaled else {}
        return {"name": name, "served": True, "storage": stored, "subresources": {"status": {}, **scale}, "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.rev.dev"},
           "spec": {"group": "rev.dev", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
               version("v1", True, True), version("v2", True), version("v3", False)]}}
    at = f"/apis/rev.dev/v1/namespaces/{NS}/things"
    thing = {"apiVersion": "rev.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"n": 1}}
    for h in pair:
        h.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        eventually(lambda h=h: h.api.raw("POST", at, thing)[0] in (201, 409), 30, "the kind")

    def act(send):
        send("PATCH", f"{at}/t/scale", {"spec": {"replicas": 4}}, query={"dryRun": "All"}, **MERGE)
    try:
        reviews, _ = alike(*pair, act, lambda h: [
            h.hook("/allow", "a.test.dev", [rule("things/scale", ["*"], ["rev.dev"], ["v2"])]),
            h.hook("/label", "b.test.dev", [rule("things/scale", ["*"], ["rev.dev"], ["v3"])]),
            h.hook("/data", "c.test.dev", [rule("things/scale", ["*"], ["rev.dev"], ["v2"])], matchPolicy="Exact")])
        assert [p for p, _ in reviews] == ["/allow"] and reviews[0][1]["object"]["kind"] == "Scale"
    finally:
        for h in pair:
            h.api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.rev.dev")


# ---- policies ----

POLICIES = "/apis/admissionregistration.k8s.io/v1"
SHOWN = ("request.operation + ' ' + request.kind.kind + ' ' + request.resource.resource + ' ' + (has(request.subResource) ? "
         "request.subResource : '-') + ' ' + object.kind + ' ' + (oldObject == null ? 'none' : oldObject.kind) + ' ' + "
         "(has(object.command) ? string(object.command) : '-') + ' ' + string(request.options == null) + ' ' + "
         "(has(object.spec) && has(object.spec.replicas) ? string(object.spec.replicas) : '-')")
JUDGED = [
    *[(m, f"{p}?{q}" if q else p, None, {}) for m, p, q in CONNECTIONS if "nodes" not in p],
    ("PATCH", SCALED[0], {"spec": {"replicas": 2}}, {**MERGE, "query": {"dryRun": "All"}}),
    ("POST", f"{AT}/pods/p/eviction", CREATES[0][2], {"query": {"dryRun": "All"}}),
    ("POST", f"{AT}/pods/p/binding", BOUND, {"query": {"dryRun": "All"}}),
    ("POST", f"{AT}/bindings", BOUND, {"query": {"dryRun": "All"}}),
    ("POST", f"{AT}/serviceaccounts/default/token", {"spec": {"audiences": ["a"]}}, {"query": {"dryRun": "All"}}),
    (*CREATES[-1], {}),
]


@contextlib.contextmanager
def installed(pair, plural, policy, applies):
    """applies(api): is the policy in effect? A kube-apiserver has it in a cache."""
    name = policy["metadata"]["name"]
    bound = {"policyName": name, "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NS}}},
             **({"validationActions": ["Deny"]} if plural.startswith("valid") else {})}
    for h in pair:
        h.api.post(f"{POLICIES}/{plural}policies", policy)
        h.api.post(f"{POLICIES}/{plural}policybindings", {"metadata": {"name": name}, "spec": bound})
    try:
        eventually(lambda: applies(pair[1].api), 30, "the kube-apiserver to apply the policy")
        yield
    finally:
        for h in pair:
            h.api.raw("DELETE", f"{POLICIES}/{plural}policybindings/{name}")
            h.api.raw("DELETE", f"{POLICIES}/{plural}policies/{name}")
        eventually(lambda: not applies(pair[1].api), 30, "the end of the policy")


def compare_answers(pair, requests):
    apis = tuple(h.api for h in pair)
    different = []
    for method, path, body, kw in requests:
        got = []
        for api in apis:
            code, headers, data = api.raw(method, path, body, **kw)
            try:
                got.append((code, drop(json.loads(data))))
            except ValueError:
                got.append((code, data.decode()))
        if got[0] != got[1]:
            different.append(f"{method} {path}\n  ours {got[0]}\n  real {got[1]}")
    assert not different, "\n".join(different)


def test_policies_judge_what_those_of_kube_apiserver_judge(pair):
    policy = {"metadata": {"name": "shown"}, "spec": {
        "matchConstraints": {"resourceRules": [*SUBS, rule("bindings", ["*"]), rule("*", ["*"], ["authorization.k8s.io"])]},
        "validations": [{"expression": "false", "messageExpression": SHOWN}]}}
    exec_ = ("POST", f"{AT}/pods/p/exec?command=ls")
    with installed(pair, "validatingadmission", policy, lambda api: api.raw(*exec_)[0] == 422):
        assert pair[0].api.raw(*exec_)[0] == 422
        compare_answers(pair, JUDGED)


def test_no_exec_into_protected_pods(pair):
    """The classic: exec refused by label, through a parameter, as a policy of a real cluster says it."""
    policy = {"metadata": {"name": "no-exec"}, "spec": {
        "matchConstraints": {"resourceRules": [rule("pods/exec pods/attach", ["CONNECT"])]},
        "matchConditions": [{"name": "op", "expression": "request.operation == 'CONNECT'"}],
        "validations": [{"expression": "!request.name.startsWith('p')", "message": "no exec here", "reason": "Forbidden"}]}}
    exec_ = ("POST", f"{AT}/pods/p/exec?command=ls", None, {})
    with installed(pair, "validatingadmission", policy, lambda api: api.raw(*exec_[:2])[0] == 403):
        compare_answers(pair, [exec_, ("POST", f"{AT}/pods/p/attach", None, {}),
                               ("POST", f"{AT}/pods/gone/exec?command=ls", None, {})])


def json_patch(path, value):
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]"}}


def merge(expression):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


DRY = {"query": {"dryRun": "All"}}
TO_SCALE = ("PATCH", SCALED[0], {"spec": {"replicas": 2}}, {**MERGE, **DRY})
def test_the_status_of_a_policy_is_that_of_kube_controller_manager(hooks, oracle):
    """Of expressions that need no types."""
    at = f"{POLICIES}/validatingadmissionpolicies"
    policy = {"metadata": {"name": "observed"}, "spec": {
        "matchConstraints": {"resourceRules": [rule("pods/exec", ["CONNECT"])]}, "validations": [{"expression": "true"}]}}
    got = []
    for h in (hooks, oracle):
        h.api.post(at, policy)
        seen = [eventually(lambda h=h: h.api.get(f"{at}/observed").get("status"), 30, "a status")]
        h.api.patch(f"{at}/observed", {"spec": {"validations": [{"expression": "1 == 1"}]}})
        eventually(lambda h=h: h.api.get(f"{at}/observed")["status"]["observedGeneration"] == 2, 30, "the next one")
        h.api.patch(f"{at}/observed", {"metadata": {"labels": {"a": "b"}}})
        made = h.api.get(f"{at}/observed")
        got.append((seen, made["status"], made["metadata"]["generation"]))
        h.api.delete(f"{at}/observed")
    assert got[0] == got[1], json.dumps(got, indent=1)


MUTATIONS = {
    "scale": (rule("deployments/scale", ["UPDATE"], ["apps"]), json_patch("/spec/replicas", "7"), TO_SCALE),
    "scale-merged": (rule("deployments/scale", ["UPDATE"], ["apps"]), merge("Object{spec: Object.spec{replicas: 7}}"), TO_SCALE),
    "binding": (rule("pods/binding", ["CREATE"]), merge("Object{metadata: Object.metadata{name: 'q'}}"), (
        "POST", f"{AT}/pods/p/binding", BOUND, DRY)),
    "eviction-merged": (rule("pods/eviction", ["CREATE"]), merge("Object{metadata: Object.metadata{name: 'q'}}"), (
        "POST", f"{AT}/pods/p/eviction", CREATES[0][2], DRY)),
    "exec": (rule("pods/exec", ["CONNECT"]), json_patch("/container", "'none'"), ("POST", f"{AT}/pods/p/exec?command=ls", None, {})),
    "exec-merged": (rule("pods/exec", ["CONNECT"]), merge("Object{container: 'none'}"), (
        "POST", f"{AT}/pods/p/exec?command=ls", None, {})),
}


@pytest.mark.parametrize("case", MUTATIONS)
def test_mutating_policies_change_what_those_of_kube_apiserver_change(pair, case):
    match, mutation, request = MUTATIONS[case]
    policy = {"metadata": {"name": "change"}, "spec": {
        "matchConstraints": {"resourceRules": [match]}, "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [mutation]}}

    def answer(api):
        code, _, data = api.raw(*request[:3], **request[3])
        return code, drop(json.loads(data))
    before = answer(pair[1].api)
    with installed(pair, "mutatingadmission", policy, lambda api: answer(api) != before):
        assert answer(pair[0].api) == answer(pair[1].api)
