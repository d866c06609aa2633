# SPDX-License-Identifier: Apache-2.0
"""ValidatingAdmissionPolicies of a tenant decide as those of a kube-apiserver: the same policies and the same requests go
to both."""
import json
import os
import re

import pytest

from alike import alike, both, namespace
from differential.servers import prepare, start_pair
from policy_cases import MAPS, REFUSED, SHOWN, rules
from testenv import eventually

ROOT = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
NS = "/api/v1/namespaces/vap"


AUDITED = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["configmaps"]}]}, {"level": "None"}]}


@pytest.fixture(scope="module")
def logs(workdir):
    """The audit logs of the two, made by `pair`."""
    directory = os.path.join(workdir, "policies")
    return [os.path.join(directory, name) for name in ("audit.log", "audit-oracle.log")]


@pytest.fixture(scope="module")
def pair(workdir, logs):
    directory = os.path.join(workdir, "policies")
    os.makedirs(directory)
    with open(os.path.join(directory, "audit.yaml"), "w", encoding="utf-8") as f:
        json.dump(AUDITED, f)
    here, there = start_pair(directory, {"audit": {"policy": json.dumps(AUDITED), "path": logs[0]}}, [
        f"--audit-policy-file={directory}/audit.yaml", f"--audit-log-path={logs[1]}"])
    for api in (here.api, there.api):
        prepare(api, "policies")
    for name in ("vap", "vap-other"):
        namespace((here.api, there.api), name, {"policies": "on"} if name == "vap" else None)
    yield here.api, there.api
    try:
        here.close()
    finally:
        there.stop()


def config_map(case, name="m", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"case": case}},
            "data": {"n": "5", "bad": "(", **data}}


def policy(name, validations, match=MAPS, **spec):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": match}, "validations": validations, **spec}}


def binding(name, actions=("Deny",), match=None, policy_name=None, **spec):
    selected = {"objectSelector": {"matchLabels": {"case": name}}}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": policy_name or name, "validationActions": list(actions),
                                                 "matchResources": selected if match is None else match, **spec}}


def install(pair, *objects, active=None):
    """Creates policies and bindings on both; waits until `active`, a request, is answered as refused or warned about by the
    kube-apiserver, whose plug-in learns of them later."""
    for o in objects:
        kind = "ies" if o["kind"] == "ValidatingAdmissionPolicy" else "ybindings"
        for api in pair:
            api.post(ROOT + kind, o)
    if active:
        def seen():
            code, headers, _ = pair[1].raw(*active, query={"dryRun": "All"})
            return code >= 400 or headers.get_all("Warning")
        eventually(seen, 60, "the kube-apiserver to apply the policy")


def dry(pair, what, method, path, body=None):
    return alike(pair, what, method, path, body, dryRun="All")


# Of source that cannot be split into tokens upstream goes on and reports more.
MORE_UPSTREAM = {"'abc", "\"a\\q\" == ''"}


def validation(expression, **more):
    return {"expression": expression, **more}


# ---- expressions ----

def test_values_of_expressions(pair):
    """Printed by messageExpression, or the error they end in; 12 at a time, since a server limits its warnings."""
    variables = [{"name": "five", "expression": "5"}, {"name": "twice", "expression": "variables.five * 2"},
                 {"name": "broken", "expression": "object.data.none"}]
    different = []
    batches = [SHOWN[i:i + 12] for i in range(0, len(SHOWN), 12)]
    for i, batch in enumerate(batches):
        name = f"shown-{i}"
        checks = [validation(f"'%s'.format([{e}]) == '!'", messageExpression=f"'{n}: %s'.format([{e}])" if "authorizer" not in e
                             else None, message=f"{n}") for n, e in enumerate(batch)]
        checks = [{k: v for k, v in c.items() if v} for c in checks]
        here, there = both(pair, "POST", ROOT + "ies", policy(name, checks, variables=variables))
        if here != there:
            different.append((batch, here, there))
        install(pair, binding(name, ["Warn"]))
    last = f"shown-{len(batches) - 1}"
    install(pair, active=("POST", f"{NS}/configmaps", config_map(last)))
    for i, batch in enumerate(batches):
        here, there = both(pair, "POST", f"{NS}/configmaps", config_map(f"shown-{i}"), dryRun="All")
        if here != there:
            ours, real = (set(x[2]) for x in (here, there))
            different += [("ours", x) for x in sorted(ours - real)] + [("real", x) for x in sorted(real - ours)]
            if here[:2] != there[:2]:
                different.append((batch, here[:2], there[:2]))
    assert not different, "\n".join(map(str, different))


def test_refused_expressions(pair):
    different = []
    for member, expression in REFUSED:
        check = {"expression": "false", member: expression}
        here, there = both(pair, "POST", ROOT + "ies", policy("refused", [check]), dryRun="All")
        if expression in MORE_UPSTREAM:
            assert here[0] == there[0] == 422 and "token recognition error" in str(here), here
        elif here != there:
            different.append(f"{member} {expression!r}\n  ours {here}\n  real {there}")
    assert not different, f"{len(different)} of {len(REFUSED)}\n" + "\n".join(different)


# ---- decisions ----

CASES = {
    "message": ([validation("object.data.n == '1'", message="n must be 1")], {}),
    "plain": ([validation(" object.data.n == '1' ")], {}),
    "forbidden": ([validation("false", reason="Forbidden", message=" no ")], {}),
    "large": ([validation("false", reason="RequestEntityTooLarge")], {}),
    "second": ([validation("true"), validation("false", message="the second"), validation("false", message="the third")], {}),
    "lines": ([validation("false", message="fallback", messageExpression="'a\\nb'")], {}),
    "blank": ([validation("false", message="fallback", messageExpression="'  '")], {}),
    "broken-message": ([validation("false", message="fallback", messageExpression="string(object.data.none)")], {}),
    "error": ([validation("object.data.none == 'x'")], {}),
    "error-ignored": ([validation("object.data.none == 'x'")], {"failurePolicy": "Ignore"}),
    "condition": ([validation("false")], {"matchConditions": [{"name": "n", "expression": "object.data.n == '5'"}]}),
    "condition-not": ([validation("false")], {"matchConditions": [{"name": "n", "expression": "object.data.n == '6'"}]}),
    "condition-error": ([validation("false")], {"matchConditions": [{"name": "n", "expression": "object.data.none == '6'"}]}),
    "condition-errors": ([validation("false")], {"matchConditions": [
        {"name": "n", "expression": "object.data.none == '6'"}, {"name": "m", "expression": "object.none == '6'"}]}),
    "condition-mixed": ([validation("false")], {"matchConditions": [
        {"name": "n", "expression": "object.data.none == '6'"}, {"name": "m", "expression": "false"}]}),
    "dear": ([validation("lists.range(100000).all(x, lists.range(100).all(y, x + y >= 0))")], {}),
    "condition-namespace": ([validation("namespaceObject != null", message="none"), validation("false", message="seen")], {
        "matchConditions": [{"name": "n", "expression": "namespaceObject == null"}]}),
    "named": ([validation("false", messageExpression="has(request.name) ? 'named ' + request.name : 'unnamed'")], {}),
    "annotated": ([validation("false", message="m")], {"auditAnnotations": [
        {"key": "n", "valueExpression": "'n is ' + object.data.n"}]}),
    "annotation-error": ([validation("true")], {"auditAnnotations": [
        {"key": "n", "valueExpression": "'n is ' + object.data.none"}]}),
    "no-kind": ([validation("false")], {"paramKind": {"apiVersion": "none.example.com/v1", "kind": "None"}}),
    "variable": ([validation("variables.b == 3", messageExpression="'b is ' + string(variables.b)")], {"variables": [
        {"name": "a", "expression": "int(object.data.n)"}, {"name": "b", "expression": "variables.a + 1"}]}),
}


@pytest.fixture(scope="module")
def decided(pair):
    for name, (validations, spec) in CASES.items():
        body = policy(name, validations, **spec)
        # A policy that cannot be used refuses what it matches before its bindings are looked at.
        body["spec"]["matchConstraints"]["objectSelector"] = {"matchLabels": {"case": name}}
        install(pair, body, binding(name))
    for name in ("message", "no-kind", "variable", "dear"):
        install(pair, active=("POST", f"{NS}/configmaps", config_map(name)))


@pytest.mark.parametrize("name", CASES)
def test_decisions(pair, decided, name):
    dry(pair, name, "POST", f"{NS}/configmaps", config_map(name))
    dry(pair, name, "POST", f"{NS}/configmaps", config_map(name, n="1"))
    generated = config_map(name)
    generated["metadata"] = {"generateName": "g-", "labels": generated["metadata"]["labels"]}
    here, there = both(pair, "POST", f"{NS}/configmaps", generated, dryRun="All")
    assert re.sub(r"g-[a-z0-9]{5}", "g-", str(here)) == re.sub(r"g-[a-z0-9]{5}", "g-", str(there))


def test_warn_and_audit(pair):
    install(pair, policy("warned", [validation("false", message="careful"), validation("object.data.none == ''")]),
            binding("warned", ["Warn", "Audit"]), active=("POST", f"{NS}/configmaps", config_map("warned")))
    dry(pair, "warned", "POST", f"{NS}/configmaps", config_map("warned"))


def annotations(log, name):
    """Of the last event about this ConfigMap; without what the authorizer says."""
    def events():
        with open(log, encoding="utf-8") as f:
            return [e for e in map(json.loads, f) if e["objectRef"].get("name") == name]
    eventually(events, 30, f"an event about {name}")
    found = events()[-1].get("annotations", {})  # a kube-apiserver joins the values of bindings in any order
    return {k: sorted(v.split(", ")) if k.startswith("noted/") else v for k, v in found.items() if not k.startswith("authorization.k8s.io/")}


def test_audit_annotations(pair, logs):
    """Of a policy with two bindings, whose values are joined; long, empty and null ones; an error; what Audit records."""
    noted = [{"key": "most", "valueExpression": "'at most ' + params.data.most"}, {"key": "n", "valueExpression": "string(object.data.n)"},
             {"key": "none", "valueExpression": "null"}, {"key": "blank", "valueExpression": "'  '"},
             {"key": "long", "valueExpression": "string(object.data.long)"}]
    for name, most in (("few", "3"), ("many", "9")):
        for api in pair:
            api.post(f"{NS}/configmaps", {"metadata": {"name": name}, "data": {"most": most}})
    install(pair, policy("noted", [validation("int(object.data.n) < int(params.data.most)", message="too many"), validation(
        "object.data.n != 'y'")], paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, auditAnnotations=noted,
        failurePolicy="Ignore"))
    for name in ("few", "many"):
        bound = binding(f"noted-{name}", ["Audit", "Warn"], match={"objectSelector": {"matchLabels": {"case": "noted"}}},
                        policy_name="noted", paramRef={"name": name, "parameterNotFoundAction": "Deny"})
        install(pair, bound)
    eventually(lambda: len(pair[1].raw("POST", f"{NS}/configmaps", config_map("noted", n="10"), query={"dryRun": "All"})[1]
                           .get_all("Warning") or []) == 2, 60, "both bindings at the kube-apiserver")
    for n, data in enumerate(({"long": "l" * 12000}, {"n": "2", "long": " s "}, {"n": "x"}, {"n": "5", "long": ""})):
        name = f"noted-{n}"
        alike(pair, name, "POST", f"{NS}/configmaps", config_map("noted", name, **data))
        here, there = (annotations(log, name) for log in logs)
        assert here == there and here, json.dumps([here, there], indent=1)
    assert "noted/most" in here and "validation.policy.admission.k8s.io/validation_failure" in here, here


# ---- which requests ----

def test_every_verb(pair):
    """create, update, both patches, apply, delete and deletecollection of one object, each judged once."""
    install(pair, policy("verbs", [validation(
        "!has(request.name) || request.name != 'held'", messageExpression="request.operation + ' of ' + request.name")]),
        binding("verbs"))
    made = config_map("verbs", "free")
    install(pair, active=("POST", f"{NS}/configmaps", config_map("verbs", "held")))
    at = f"{NS}/configmaps"
    alike(pair, "create", "POST", at, made)
    dry(pair, "create", "POST", at, config_map("verbs", "held"))
    for api in pair:  # made before the label that binds it
        held = config_map("other", "held")
        api.post(at, held)
    bound = config_map("verbs", "held")
    dry(pair, "update", "PUT", f"{at}/held", bound)
    dry(pair, "patch", "PATCH", f"{at}/held", {"metadata": {"labels": {"case": "verbs"}}})
    dry(pair, "delete", "DELETE", f"{at}/held")
    for api in pair:
        code, _, data = api.raw("PATCH", f"{at}/held", json.dumps(bound).encode(), "application/apply-patch+yaml",
                                query={"fieldManager": "t", "force": "true"})
        assert code == 422 and b"UPDATE of held" in data, data
    dry(pair, "collection", "DELETE", at)
    alike(pair, "delete", "DELETE", f"{at}/free", None)
    alike(pair, "delete", "DELETE", f"{at}/held", None)


MATCHES = {
    "pods": rules(["pods"]), "any": rules(["*"], ["*"], ["*"], ["*"]), "status": rules(["pods/status"], ["UPDATE"]),
    "subs": rules(["pods/*"], ["*"]), "scale": rules(["deployments/scale"], ["UPDATE"], ["apps"]),
    "cluster": rules(["namespaces", "configmaps"], scope="Cluster"), "namespaced": rules(["*"], scope="Namespaced"),
    "named": rules(["configmaps"], resourceNames=["one"]), "old": rules(["deployments"], ["CREATE"], ["apps"], ["v1beta1"]),
    "eviction": rules(["pods/eviction"]), "token": rules(["serviceaccounts/token"]), "binding": rules(["pods/binding"]),
    "scalers": rules(["horizontalpodautoscalers"], ["CREATE"], ["autoscaling"], ["v1"]),
}
POD = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {"metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": POD}}
SCALER = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {
    "apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}
REQUESTS = [
    ("POST", f"{NS}/pods", POD), ("POST", f"{NS}/configmaps", {"metadata": {"name": "one"}}),
    ("POST", f"{NS}/configmaps", {"metadata": {"name": "two"}}), ("POST", "/api/v1/namespaces", {"metadata": {"name": "vap-new"}}),
    ("POST", "/apis/apps/v1/namespaces/vap/deployments", {**DEPLOYMENT, "metadata": {"name": "e"}}),
    ("PATCH", "/apis/apps/v1/namespaces/vap/deployments/d/scale", {"spec": {"replicas": 3}}),
    ("PATCH", f"{NS}/pods/p/status", {"status": {"reason": "x"}}), ("PATCH", f"{NS}/pods/p", {"metadata": {"labels": {"c": "d"}}}),
    ("DELETE", f"{NS}/pods/p", None), ("POST", f"{NS}/pods/p/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "vap"}}),
    ("POST", f"{NS}/serviceaccounts/default/token", {"spec": {"audiences": ["a"]}}),
    ("POST", f"{NS}/pods/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
    ("POST", "/api/v1/namespaces/vap-other/configmaps", {"metadata": {"name": "one"}}),
    ("PATCH", "/api/v1/namespaces/vap", {"metadata": {"labels": {"x": "y"}}}),
    ("POST", "/apis/autoscaling/v2/namespaces/vap/horizontalpodautoscalers", SCALER),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
]
ABOUT = ("request.operation + ' ' + request.resource.version + ' ' + request.kind.kind + ' ' + request.requestKind.kind + ' ' + "
         "(has(request.subResource) ? request.subResource : '-') + ' ' + (has(request.name) ? request.name : '-') + ' ' + "
         "(has(request.namespace) ? request.namespace : '-') + ' ' + (object == null ? 'none' : object.kind) + ' ' + "
         "(oldObject == null ? 'none' : oldObject.kind) + ' ' + (namespaceObject == null ? 'none' : namespaceObject.metadata.name)")


def test_rules(pair):
    """Every request against every kind of rule, each in a namespace of its own; the message shows what the policy sees."""
    for name, match in MATCHES.items():
        namespace(pair, f"m-{name}", {"rules": name})
        for api in pair:
            api.post(f"/api/v1/namespaces/m-{name}/pods", POD)
            api.post(f"/apis/apps/v1/namespaces/m-{name}/deployments", DEPLOYMENT)
        selected = {"namespaceSelector": {"matchLabels": {"rules": name}}}
        install(pair, policy(f"m-{name}", [validation("false", messageExpression=ABOUT)], match),
                binding(f"m-{name}", match=selected))
    # The last one, about what no other case creates, shows that the kube-apiserver has all.
    install(pair, policy("w", [validation("false")]), binding("w"), active=(
        "POST", f"{NS}/configmaps", config_map("w", "active")))
    different = []
    for name in MATCHES:
        for method, path, body in REQUESTS:
            body = json.loads(json.dumps(body).replace('"vap"', f'"m-{name}"'))
            path = path.replace("/namespaces/vap", f"/namespaces/m-{name}", 1) if "vap-other" not in path else path
            here, there = both(pair, method, path, body, dryRun="All")
            if here != there:
                different.append(f"{name} {method} {path}\n  ours {here}\n  real {there}")
    assert not different, f"{len(different)}\n" + "\n".join(different)


def test_conditions_see_the_requested_resource(pair):
    """A policy about autoscaling/v1 judges a request of v2: its conditions see the resource of v2, and the kind of v1."""
    shown = "request.resource.version + ' ' + request.kind.version + ' ' + request.requestResource.version"
    install(pair, policy("versions", [validation("false", messageExpression=shown)], MATCHES["scalers"], matchConditions=[
        {"name": "resource", "expression": "request.resource.version == 'v2'"},
        {"name": "kind", "expression": "request.kind.version == 'v1' && request.requestKind.version == 'v2'"},
        {"name": "object", "expression": "object.apiVersion == 'autoscaling/v1'"}]), binding("versions"))
    scaler = {**SCALER, "metadata": {"name": "versions", "labels": {"case": "versions"}}}
    request = ("POST", "/apis/autoscaling/v2/namespaces/vap/horizontalpodautoscalers", scaler)
    install(pair, active=request)
    code, text, _ = both(pair, *request, dryRun="All")[0]
    assert code == 422 and "v1 v1 v2" in str(text), text
    dry(pair, "versions", *request)


def test_conditions_cannot_name_variables(pair):
    here, there = both(pair, "POST", ROOT + "ies", policy("refused", [validation("true")], variables=[
        {"name": "a", "expression": "1"}], matchConditions=[{"name": "n", "expression": "variables.a == 1"}]), dryRun="All")
    assert here == there and here[0] == 422, (here, there)


# ---- parameters ----

PARAMS = {
    "by-name": {"name": "limits", "parameterNotFoundAction": "Deny"},
    "elsewhere": {"name": "limits", "namespace": "vap-other", "parameterNotFoundAction": "Deny"},
    "missing": {"name": "none", "parameterNotFoundAction": "Deny"},
    "missing-allowed": {"name": "none", "parameterNotFoundAction": "Allow"},
    "selected": {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"},
    "selected-none": {"selector": {"matchLabels": {"limits": "no"}}, "parameterNotFoundAction": "Allow"},
}


def test_params(pair):
    for api in pair:
        for ns, most in (("vap", "3"), ("vap-other", "9")):
            api.post(f"/api/v1/namespaces/{ns}/configmaps", {
                "metadata": {"name": "limits", "labels": {"limits": "yes"}}, "data": {"most": most}})
    for name, ref in PARAMS.items():
        install(pair, policy(f"p-{name}", [validation(
            "int(object.data.n) <= int(params.data.most)", messageExpression="'at most ' + params.data.most")],
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), binding(f"p-{name}", paramRef=ref))
    install(pair, policy("p-unbound", [validation("params == null")], paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            binding("p-unbound"))
    for name in ("by-name", "missing", "selected"):
        install(pair, active=("POST", f"{NS}/configmaps", config_map(f"p-{name}")))
    for name in [*PARAMS, "unbound"]:
        for n in ("2", "5", "x"):
            dry(pair, name, "POST", f"{NS}/configmaps", config_map(f"p-{name}", n=n))


# ---- a way out ----

def test_refusing_everything_can_be_undone(pair):
    here = pair[0]
    install((here,), policy("wall", [validation("false", message="nothing passes")], rules(["*"], ["*"], ["*"], ["*"])),
            binding("wall", match={}))
    code, _, data = here.raw("POST", f"{NS}/configmaps", {"metadata": {"name": "x"}})
    assert code == 422 and b"nothing passes" in data, data
    here.patch(f"{ROOT}ies/wall", {"metadata": {"labels": {"a": "b"}}})
    here.delete(f"{ROOT}ybindings/wall")
    here.delete(f"{ROOT}ies/wall")
    code, _, data = here.raw("POST", f"{NS}/configmaps", {"metadata": {"name": "x"}})
    assert code == 201, data
