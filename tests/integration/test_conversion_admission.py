# SPDX-License-Identifier: Apache-2.0
"""Admission of custom resources in another version than the request's (matchPolicy Equivalent), which the conversion webhook
of their definition makes: the same definitions, webhooks, policies and requests as of a real kube-apiserver, the same reviews
and answers. Then what becomes of a write whose client leaves, or whose process ends, in the pause."""
import concurrent.futures
import contextlib
import json
import os
import time

import pytest

from converting import APPLY, CRDS, GROUP, MERGE, NS, Side, path, plain, spot
from testenv import Api, eventually
from testenv.pki import Pki
from testenv.webhook import PLUGIN, ca_bundle, patch, release, rule  # noqa: F401 - release is a fixture

JSON_PATCH = "application/json-patch+json"
ALL = ("CREATE", "UPDATE", "DELETE")
EVERY = "spots spots/status spots/scale"
ANSWERS = {
    "/see": {"allowed": True},
    "/deny": {"allowed": False, "status": {"message": "not in this version", "code": 403}},
    "/late": patch({"op": "add", "path": "/spec/late", "value": "kept"}),
    "/size": patch({"op": "add", "path": "/spec/size", "value": 7}),
    "/host": patch({"op": "add", "path": "/spec/host", "value": "hooked"}),
    "/at": patch({"op": "add", "path": "/spec/at", "value": "hooked:9"}),
    "/label": patch({"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}}),
    "/same": patch({"op": "test", "path": "/kind", "value": "Spot"}),
    "/unsized": patch({"op": "replace", "path": "/spec", "value": {"at": "r:1"}}),
    "/odd": patch({"op": "add", "path": "/spec/odd", "value": 1}),
}


def admitting(side):
    side.admit = lambda where, request: ANSWERS[where]
    side.define()
    return side


@pytest.fixture
def mine(tenant, workdir, release):
    vc = tenant("hooks")
    side = admitting(Side(vc.api, Pki(os.path.join(workdir, f"admit-{vc.namespace}")), "here", release))
    side.vc = vc
    yield side
    release.set()
    side.stack.close()
    release.clear()


@pytest.fixture(scope="module")
def theirs(real_host, workdir, release):
    side = admitting(Side(real_host.api, Pki(os.path.join(workdir, "admit-oracle")), "there", release))
    yield side
    side.api.delete(f"{CRDS}/spots.{GROUP}")
    side.stack.close()
    side.api.delete(f"/api/v1/namespaces/{NS}")
    eventually(lambda: side.api.raw("GET", f"/api/v1/namespaces/{NS}")[0] == 404, 60, "the end of the namespace")


# ---- both servers ----

def hook(where, version, resources="spots", operations=("CREATE", "UPDATE"), name=None, **over):
    return {"name": f"{name or where[1:]}.test.dev", "where": where, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "rules": [rule(resources, operations, [GROUP], [version])], **over}


def addressed(side, h):
    return {**{k: v for k, v in h.items() if k != "where"}, "clientConfig": {
        "service": {"namespace": NS, "name": "hook", "port": side.port.number, "path": h["where"]}, "caBundle": ca_bundle(side.pki)}}


def probed(side, by):
    """A refused write: what was made before the probe is in effect, too."""
    return side.api.raw("POST", path("v2"), {**spot("probe", "v2"), "metadata": {"name": "probe", "labels": {"probe": by}}},
                        query={"dryRun": "All"})[0] != 201


def probe_of(by):
    return {"objectSelector": {"matchLabels": {"probe": by}}}


OTHERS = {"objectSelector": {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]}}


@contextlib.contextmanager
def hooked(side, kind, hooks):
    plural = f"{PLUGIN}/{kind.lower()}webhookconfigurations"
    probe = hook("/deny", "v2", name="probe", matchPolicy="Exact", **probe_of("hooks"))
    side.api.post(plural, {"metadata": {"name": "c"}, "webhooks": [
        *(addressed(side, {**OTHERS, **h}) for h in hooks), addressed(side, probe)]})
    try:
        eventually(lambda: probed(side, "hooks"), 30, "the configuration")
        yield
    finally:
        side.api.delete(f"{plural}/c")
        eventually(lambda: not probed(side, "hooks"), 30, "the end of the configuration")


def policy(kind, name, match, **spec):
    return (f"{kind}AdmissionPolicy", {"metadata": {"name": name}, "spec": {"matchConstraints": match, **spec}},
            {"metadata": {"name": name}, "spec": {"policyName": name, **({"validationActions": ["Deny"]} if kind == "Validating" else {})}})


def match(version, resources=("spots",), operations=ALL, equivalence="Equivalent"):
    return {"resourceRules": [{"apiGroups": [GROUP], "apiVersions": [version], "operations": list(operations),
                               "resources": list(resources)}], "matchPolicy": equivalence, **OTHERS}


@contextlib.contextmanager
def judged(side, *policies):
    probes = (policy("Validating", "zz-probe", {**match("v2", equivalence="Exact"), **probe_of("validating")},
                     validations=[{"expression": "false"}]),
              policy("Mutating", "zz-probe", {**match("v2", ("spots",), ("CREATE",), "Exact"), **probe_of("mutating")},
                     reinvocationPolicy="Never", mutations=[{"patchType": "JSONPatch", "jsonPatch": {
                         "expression": "[JSONPatch{op: 'remove', path: '/spec/none'}]"}}]))
    made = []
    try:
        for kind, definition, binding in (*policies, *probes):
            plural = f"{PLUGIN}/{kind.lower()[:-1]}"
            for where, o in ((f"{plural}ies", definition), (f"{plural}ybindings", binding)):
                side.api.post(where, {"apiVersion": "admissionregistration.k8s.io/v1", **o})
                made.append(f"{where}/{o['metadata']['name']}")
        eventually(lambda: probed(side, "validating") and probed(side, "mutating"), 60, "the policies")
        yield
    finally:
        for where in made:
            side.api.delete(where)
        eventually(lambda: not probed(side, "validating") and not probed(side, "mutating"), 60, "the end of the policies")


def cached(side, where, made):
    """A kube-apiserver begins a patch with what the watch cache of the version has, and reviews it again where that was old."""
    meta = made.get("metadata", {}) if isinstance(made, dict) else {}
    name, version = meta.get("name"), meta.get("resourceVersion")
    if not name or not version or side.mode:
        return

    def seen(v):
        code, _, data = side.api.raw("GET", path(v, name), query={"resourceVersion": "0"})
        return code != 200 or int(json.loads(data)["metadata"]["resourceVersion"]) >= int(version)
    eventually(lambda: seen("v1") and seen("v2"), 30, f"the caches to have {where}")


def reviewed(side):
    """Without what the webhook's reviewer cannot share; `dryRun` probes are others'."""
    return [[where, {k: v for k, v in plain(r, [side.port.number, side.ip]).items() if k != "userInfo"}]
            for where, r, _ in side.server.seen if where != "/convert" and r.get("name") != "probe"]


def run(side, act, setting):
    answers = []

    def send(method, where, body=None, **kw):
        code, headers, data = side.api.raw(method, where, body, **kw)
        shown = json.loads(data)
        answers.append([code, sorted(headers.get_all("Warning") or []), plain(shown, [side.port.number, side.ip])])
        if code < 300 and method != "GET" and not kw.get("query", {}).get("dryRun"):
            cached(side, where, shown)
        return shown
    with setting(side):
        side.server.seen.clear()
        act(send)
        return answers, reviewed(side)


def alike(mine, theirs, act, setting):
    try:
        got, wanted = run(mine, act, setting), run(theirs, act, setting)
    finally:
        mine.clear()
        theirs.clear()
    for what, mine_all, theirs_all in zip(("answer", "review"), got, wanted):
        for i, (x, y) in enumerate(zip(mine_all, theirs_all)):
            assert x == y, f"{what} {i}: " + json.dumps([x, y], indent=1)
        assert len(mine_all) == len(theirs_all), what + json.dumps([mine_all, theirs_all], indent=1)
    return got


def requests(send):
    send("POST", path("v1"), spot(host="h", port="1", replicas=1, odd=2), query={"fieldManager": "m"})
    send("POST", path("v2"), spot("b", "v2", at="i:2", replicas=1), query={"fieldManager": "m"})
    o = json.loads(json.dumps(send("GET", path("v1", "a"))))
    if o["kind"] == "Spot":
        o["spec"]["port"] = "4"
        send("PUT", path("v1", "a"), o, query={"fieldManager": "put"})
    send("PATCH", path("v1", "a"), {"spec": {"host": "j"}}, content_type=MERGE, query={"fieldManager": "m1"})
    send("PATCH", path("v2", "a"), {"spec": {"at": "k:3"}}, content_type=MERGE, query={"fieldManager": "m2"})
    send("PATCH", path("v1", "b"), [{"op": "replace", "path": "/spec/port", "value": "4"}], content_type=JSON_PATCH,
         query={"fieldManager": "m3"})
    send("PATCH", path("v1", "c"), json.dumps(spot("c", "v1", host="h", port="1")).encode(), content_type=APPLY,
         query={"fieldManager": "one"})
    send("PATCH", path("v2", "c"), json.dumps(spot("c", "v2", at="i:1")).encode(), content_type=APPLY,
         query={"fieldManager": "two", "force": "true"})
    send("PATCH", path("v1", "a/status"), {"status": {"seen": "yes"}}, content_type=MERGE, query={"fieldManager": "s"})
    send("PATCH", path("v2", "a/status"), {"status": {"seen": "no"}}, content_type=MERGE, query={"fieldManager": "s"})
    send("PATCH", path("v1", "a/scale"), {"spec": {"replicas": 3}}, content_type=MERGE, query={"fieldManager": "s"})
    send("PATCH", path("v2", "b/scale"), {"spec": {"replicas": 2}}, content_type=MERGE, query={"fieldManager": "s"})
    send("POST", path("v1"), spot("dry", host="d", port="9"), query={"dryRun": "All", "fieldManager": "m"})
    for version in ("v1", "v2"):
        for name in "abc":
            send("GET", path(version, name))
    send("DELETE", path("v1", "a"))
    send("DELETE", path("v2", "b"))
    send("DELETE", path("v1", "c"))


# ---- webhooks ----

@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_reviews_are_in_the_version_of_the_rule(mine, theirs, kind, version):
    answers, reviews = alike(mine, theirs, requests, lambda side: hooked(side, kind, [hook("/see", version, EVERY, ALL)]))
    assert {r["object"]["apiVersion"] for _, r in reviews if r["object"] and "subResource" not in r} == {f"{GROUP}/{version}"}
    assert {r["oldObject"]["apiVersion"] for _, r in reviews if r["operation"] == "DELETE"} == {f"{GROUP}/{version}"}
    assert {r["requestKind"]["version"] for _, r in reviews if r.get("subResource") != "scale"} == {"v1", "v2"}
    assert {a[0] for a in answers} == {200, 201}


def test_a_mutating_hook_changes_its_version_of_the_object(mine, theirs):
    def act(send):
        requests(send)
        send("POST", path("v1"), {**spot("g", host="h", port="1"), "metadata": {"generateName": "gen-"}}, query={
            "dryRun": "All", "fieldManager": "x" * 200})
    for hooks in ([hook("/size", "v2"), hook("/late", "v2")], [hook("/host", "v1", EVERY)], [hook("/at", "v2"), hook("/label", "v1")],
                  [hook("/same", "v2")], [hook("/unsized", "v2")], [hook("/odd", "v2")]):
        answers, _ = alike(mine, theirs, act, lambda side, hooks=hooks: hooked(side, "Mutating", hooks))
        assert {a[0] for a in answers} <= {200, 201, 422}


def test_a_version_lasts_until_another_one_is_needed(mine, theirs):
    """What v1 cannot say is lost when a hook reads v1, and only then."""
    def act(send):
        send("POST", path("v1"), spot(host="h", port="1"), query={"fieldManager": "m"})
        send("GET", path("v2", "a"))
        send("PATCH", path("v1", "a"), {"spec": {"port": "2"}}, content_type=MERGE, query={"fieldManager": "m"})
    hooks = [hook("/late", "v2"), hook("/see", "v2", name="still"), hook("/host", "v1"), hook("/see", "v2", name="gone")]
    _, reviews = alike(mine, theirs, act, lambda side: hooked(side, "Mutating", hooks))
    assert [r["object"]["spec"].get("late") for where, r in reviews if r["operation"] == "CREATE"][:4] == [None, "kept", None, None]
    assert [r["object"]["spec"].get("host") for where, r in reviews if where == "/host"][0] == "h"


@pytest.mark.parametrize("versions", [("v1", "v2"), ("v2", "v1"), ("v2", "v2")])
def test_hooks_are_called_again_as_by_kube_apiserver(mine, theirs, versions):
    def act(send):
        for version in ("v1", "v2"):
            body = spot("a" + version, version, **({"host": "h", "port": "1"} if version == "v1" else {"at": "h:1"}))
            send("POST", path(version), body, query={"fieldManager": "m"})
            send("PATCH", path(version, "a" + version), {"spec": {"size": 2}}, content_type=MERGE, query={"fieldManager": "m"})
    again = {"reinvocationPolicy": "IfNeeded"}
    for second in ("/size", "/same", "/label"):
        hooks = [hook("/see", versions[0], **again), hook(second, versions[1], **again)]
        alike(mine, theirs, act, lambda side, hooks=hooks: hooked(side, "Mutating", hooks))


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_conditions_and_refusals_see_the_version_of_the_rule(mine, theirs, kind):
    def conditions(*expressions):
        return {"matchConditions": [{"name": f"c{i}", "expression": e} for i, e in enumerate(expressions)]}

    def act(send):
        for name in ("yes", "no", "error"):
            send("POST", path("v1"), spot(name, host=name, port="1"), query={"fieldManager": "m"})
            send("POST", path("v2"), spot(name, "v2", at=f"{name}:1"), query={"fieldManager": "m"})
        send("DELETE", path("v1", "no"))
    hooks = [hook("/deny", "v2", operations=ALL, **conditions("(object == null ? oldObject : object).spec.at == 'yes:1'")),
             hook("/deny", "v1", name="v1", operations=ALL, **conditions("object != null && object.spec.host == 'error' && object.spec.none == 1")),
             hook("/deny", "v1", name="ignored", operations=ALL, failurePolicy="Ignore", **conditions("object.spec.none == 1"))]
    answers, reviews = alike(mine, theirs, act, lambda side: hooked(side, kind, hooks))
    assert [a[0] for a in answers][:2] == [403, 403] and answers[2][0] == 201 and reviews
    answers, _ = alike(mine, theirs, act, lambda side: hooked(side, kind, [hook("/deny", "v2", operations=ALL, matchPolicy="Exact")]))
    assert [a[0] for a in answers][:2] == [201, 403]
    answers, _ = alike(mine, theirs, act, lambda side: hooked(side, kind, [hook("/deny", "v2", operations=ALL)]))
    assert {a[0] for a in answers[:6]} == {403}


@contextlib.contextmanager
def failing(side, setting, mode="failure"):
    """The request has the stored version: only the hook, or the policy, needs the conversion."""
    with setting:
        side.mode = mode
        try:
            yield
        finally:
            side.mode = None


def unconverted(send):
    send("POST", path("v2"), spot("a", "v2", at="h:1"), query={"fieldManager": "m"})
    send("PATCH", path("v2", "kept"), {"spec": {"at": "i:2"}}, content_type=MERGE, query={"fieldManager": "m"})
    send("DELETE", path("v2", "kept"))
    send("GET", path("v2", "kept"))
    send("POST", path("v1"), spot("b", host="h", port="1"), query={"fieldManager": "m"})


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_a_failed_conversion_refuses_a_write_whatever_the_failure_policy(mine, theirs, kind, failure):
    true = {"matchConditions": [{"name": "true", "expression": "true"}]}
    for over in ({}, true):
        for side in (mine, theirs):
            side.api.post(path("v2"), spot("kept", "v2", at="h:1"))
        answers, _ = alike(mine, theirs, unconverted, lambda side, over=over: failing(side, hooked(side, kind, [
            hook("/see", "v1", operations=ALL, failurePolicy=failure, **over)])))
        assert [a[0] for a in answers] == [500, 500, 500, 200, 500], answers


def test_a_patch_that_cannot_be_converted_back_is_refused(mine, theirs):
    """The webhook makes v1 of the object, and then no v2."""
    def act(send):
        send("POST", path("v2"), spot("a", "v2", at="h:1"), query={"fieldManager": "m"})
        send("GET", path("v2", "a"))

    @contextlib.contextmanager
    def setting(side, *hooks):
        with hooked(side, "Mutating", hooks):
            side.admit = lambda where, request: (setattr(side, "mode", "failure"), ANSWERS[where])[1]
            try:
                yield
            finally:
                side.mode, side.admit = None, lambda where, request: ANSWERS[where]
    for hooks in ([hook("/host", "v1")], [hook("/host", "v1"), hook("/see", "v2")]):
        answers, _ = alike(mine, theirs, act, lambda side, hooks=hooks: setting(side, *hooks))
        assert [a[0] for a in answers] == [500, 404], answers


# ---- policies ----

SHOWN = ("(object == null ? 'none' : string(object.apiVersion) + string(object.spec.?{0}.orValue('')) + string(object.spec.?size.orValue(0)))"
         " + (oldObject == null ? 'none' : oldObject.apiVersion + string(oldObject.spec.?{0}.orValue('')))"
         " + request.kind.version + request.resource.version + request.requestKind.version + request.requestResource.version")


def test_a_validating_policy_sees_the_version_of_its_rule(mine, theirs):
    def act(send):
        send("POST", path("v1"), spot(host="h", port="1"), query={"fieldManager": "m"})
        send("POST", path("v2"), spot("b", "v2", at="i:2"), query={"fieldManager": "m"})
        send("PATCH", path("v1", "kept"), {"spec": {"port": "4"}}, content_type=MERGE, query={"fieldManager": "m"})
        send("PATCH", path("v2", "kept"), {"spec": {"at": "i:4"}}, content_type=MERGE, query={"fieldManager": "m"})
        send("PATCH", path("v1", "kept/status"), {"status": {"seen": "yes"}}, content_type=MERGE, query={"fieldManager": "m"})
        send("DELETE", path("v1", "kept"))
        send("DELETE", path("v2", "kept"))
        send("DELETE", path("v2", "kept"))
    for version, field in (("v1", "host"), ("v2", "at")):
        for equivalence in ("Equivalent", "Exact"):
            for side in (mine, theirs):
                side.api.post(path("v2"), spot("kept", "v2", at="h:1"))
            p = policy("Validating", "shows", match(version, ("spots", "spots/status"), equivalence=equivalence), validations=[
                {"expression": "false", "messageExpression": SHOWN.format(field)}], matchConditions=[
                    {"name": "c", "expression": f"(object == null ? oldObject : object).apiVersion == '{GROUP}/{version}'"}])
            answers, _ = alike(mine, theirs, act, lambda side, p=p: judged(side, p))
            assert {a[0] for a in answers} == ({422} if equivalence == "Equivalent" else {200, 201, 404, 422})


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_mutating_policy_changes_its_version_of_the_object(mine, theirs, version):
    field = "host" if version == "v1" else "at"
    mutations = {
        "apply": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
            "expression": f"Object{{spec: Object.spec{{{field}: 'mutated', size: 8}}}}"}}],
        "patch": [{"patchType": "JSONPatch", "jsonPatch": {
            "expression": f"[JSONPatch{{op: 'add', path: '/spec/{field}', value: object.spec.?{field}.orValue('') + '!'}}]"}}],
        "same": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/kind', value: 'Spot'}]"}}],
        "invalid": [{"patchType": "JSONPatch", "jsonPatch": {
            "expression": "[JSONPatch{op: 'add', path: '/spec/size', value: 'large'}]"}}],
        "fails": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/spec/size', value: object.spec.none}]"}}],
    }
    for name, made in mutations.items():
        p = policy("Mutating", name, match(version, operations=("CREATE", "UPDATE")), mutations=made, reinvocationPolicy="Never")
        answers, _ = alike(mine, theirs, requests, lambda side, p=p: judged(side, p))
        assert (200 in {a[0] for a in answers}) == (name not in ("invalid", "fails")), answers


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_a_failed_conversion_follows_the_failure_policy_of_a_policy(mine, theirs, failure):
    validating = policy("Validating", "v", match("v1"), failurePolicy=failure, validations=[{"expression": "true"}])
    mutating = policy("Mutating", "m", match("v1", operations=("CREATE", "UPDATE")), failurePolicy=failure, reinvocationPolicy="Never",
                      mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {
                          "expression": "Object{spec: Object.spec{size: 8}}"}}])
    for p, code in ((validating, 422), (mutating, 403)):
        for side in (mine, theirs):
            side.api.post(path("v2"), spot("kept", "v2", at="h:1"))
        answers, _ = alike(mine, theirs, unconverted, lambda side, p=p: failing(side, judged(side, p)))
        assert answers[0][0] == (code if failure == "Fail" else 201), answers


def test_hooks_and_policies_of_two_versions(mine, theirs):
    """Policies of both phases and a webhook, each of the version that is not requested."""
    p = (policy("Mutating", "m", match("v2", operations=("CREATE", "UPDATE")), reinvocationPolicy="IfNeeded", mutations=[
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/spec/size', value: 8}]"}}]),
         policy("Validating", "v", match("v1"), validations=[{"expression": "object == null || object.spec.host != 'bad'"}]))

    @contextlib.contextmanager
    def setting(side):
        with judged(side, *p), hooked(side, "Mutating", [hook("/size", "v1", reinvocationPolicy="IfNeeded"), hook("/label", "v2")]):
            yield

    def act(send):
        requests(send)
        send("POST", path("v2"), spot("bad", "v2", at="bad:1"), query={"fieldManager": "m"})
        send("POST", path("v1"), spot("bad", host="bad", port="1"), query={"fieldManager": "m"})
    answers, _ = alike(mine, theirs, act, setting)
    assert [a[0] for a in answers[-2:]] == [422, 422]


# ---- only here ----

def test_policies_of_two_versions_change_the_object_after_each_other(mine):
    """A kube-apiserver keeps what the policies of the last version made, and loses what others did."""
    def p(name, version, expression):
        return policy("Mutating", name, match(version, operations=("CREATE", "UPDATE")), reinvocationPolicy="Never", mutations=[
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}])
    with judged(mine, p("a", "v2", "Object{spec: Object.spec{size: 8}}"), p("b", "v1", "Object{spec: Object.spec{host: object.spec.host + 'b'}}"),
                p("c", "v2", "Object{spec: Object.spec{at: object.spec.at + 'c'}}")):
        for version, spec in (("v1", {"host": "h", "port": "1"}), ("v2", {"at": "h:1"})):
            mine.api.post(path(version), spot(version, version, **spec))
            assert mine.api.get(path("v2", version))["spec"] == {"at": "hb:1c", "size": 8, "late": "x"}


def test_what_needs_no_conversion_calls_no_webhook(mine):
    always = [{"expression": "true"}]
    with hooked(mine, "Validating", [hook("/see", "v2", EVERY, ALL)]), judged(mine, policy("Validating", "p", match("v2"), validations=always)):
        mine.reviews.clear()
        mine.api.post(path("v2"), spot("a", "v2", at="h:1"))
        mine.api.patch(path("v2", "a"), {"spec": {"at": "i:1"}})
        mine.api.delete(path("v2", "a"))
        assert not mine.reviews
        mine.api.post(path("v1"), spot("a", host="h", port="1"))
    # For the policy and the webhook once, and for what is stored.
    assert [r["request"]["desiredAPIVersion"] for r in mine.reviews].count(f"{GROUP}/v2") == 2


@pytest.mark.parametrize("needs", ["webhook", "policy"])
def test_a_write_whose_client_has_gone_is_not_stored(mine, release, needs):
    setting = (hooked(mine, "Validating", [hook("/see", "v1")]) if needs == "webhook" else
               judged(mine, policy("Validating", "p", match("v1"), validations=[{"expression": "true"}])))
    with setting:
        with mine.behaving("hang"):
            code, _, _ = mine.api.raw("POST", path("v2"), spot("left", "v2", at="h:1"), query={"timeout": "1s"})
            assert code == 504 and len(mine.reviews) == 1
            start = time.monotonic()
            for i in range(20):
                mine.api.post(f"/api/v1/namespaces/{NS}/configmaps", {"metadata": {"name": f"m{i}"}})
            assert time.monotonic() - start < 5
        release.set()
        mine.api.post(path("v2"), spot("next", "v2", at="h:1"))
        release.clear()
        assert [o["metadata"]["name"] for o in mine.api.get(path("v2"))["items"]] == ["next"]


def test_the_process_ends_with_admission_waiting_for_versions(mine, release):
    with hooked(mine, "Mutating", [hook("/see", "v1", **OTHERS)]), judged(mine, policy("Validating", "p", match("v1"), validations=[
            {"expression": "true"}], matchConditions=[{"name": "c", "expression": "true"}])):
        with mine.behaving("hang"), concurrent.futures.ThreadPoolExecutor(2) as pool:
            waits = [pool.submit(Api(mine.vc.kubeconfig).raw, "POST", path("v2"), spot(f"w{i}", "v2", at="h:1")) for i in range(2)]
            eventually(lambda: len(mine.reviews) == 2, 30, "the conversions")
            code = mine.vc.process.stop()
            release.set()
            for w in waits:
                with contextlib.suppress(Exception):  # as the end of a server looks to a client
                    w.result()
        release.clear()
        assert code == 0
        mine.vc.start()
