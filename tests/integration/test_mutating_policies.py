# SPDX-License-Identifier: Apache-2.0
"""MutatingAdmissionPolicies of a tenant change objects as those of a kube-apiserver: the same policies and the same requests
go to both, and the objects that come back are compared as a whole."""
import json
import os
import re

import pytest

from alike import both, namespace
from differential.servers import prepare, start_pair
from policy_cases import rules
from testenv import eventually

ROOT = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
NS = "/api/v1/namespaces/map"
MAPS = rules(["configmaps"], ["CREATE", "UPDATE"])
OWN = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink")


@pytest.fixture(scope="module")
def pair(workdir):
    here, there = start_pair(os.path.join(workdir, "mutations"))
    for api in (here.api, there.api):
        prepare(api, "mutations")
    namespace((here.api, there.api), "map", {"team": "ml"})
    yield here.api, there.api
    try:
        here.close()
    finally:
        there.stop()


def apply(expression):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression):
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(name, mutations, match=MAPS, **spec):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": match}, "mutations": mutations, "reinvocationPolicy": "Never", **spec}}


def binding(name, **spec):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name, "matchResources": {"objectSelector": {"matchLabels": {"case": name}}}, **spec}}


def install(pair, *objects):
    for o in objects:
        for api in pair:
            api.post(ROOT + ("ies" if o["kind"] == "MutatingAdmissionPolicy" else "ybindings"), o)


def known(api, path, body):
    """The kube-apiserver learns of a policy later: once it changes an object, or refuses it, it knows all made before."""
    def seen():
        code, _, data = api.raw("POST", path, body, query={"dryRun": "All"})
        return code >= 400 or "mutated" in data.decode()
    eventually(seen, 60, "the kube-apiserver to apply the policy")


def plain(data):
    """What two servers must share of an answer; names that they draw are the same for all."""
    o = json.loads(re.sub(rb"kube-api-access-[a-z0-9]{5}", b"kube-api-access-x", data))
    if o.get("kind") == "Status":
        return {k: o.get(k) for k in ("reason", "message", "code", "details")}
    for key in OWN:
        o.get("metadata", {}).pop(key, None)
    return o


def answers(pair, method, path, body, **how):
    got = []
    for api in pair:
        code, headers, data = api.raw(method, path, body, query={"dryRun": "All"}, **how)
        got.append((code, plain(data), sorted(x.split('"', 1)[1] for x in headers.get_all("Warning") or [])))
    return got


def same(pair, what, *request, **how):
    here, there = answers(pair, *request, **how)
    assert here == there, f"{what}\n  ours {json.dumps(here)}\n  real {json.dumps(there)}"
    return here


def config_map(case, **data):
    return {"metadata": {"name": "m", "labels": {"case": case}}, "data": {"n": "5", **data}}


def pod(case, **spec):
    return {"metadata": {"name": "p", "labels": {"case": case}},
            "spec": {"containers": [{"name": "a", "image": "i", "args": ["x"], "env": [{"name": "E", "value": "1"}]},
                                    {"name": "b", "image": "j"}], **spec}}


def deployment(case):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    return {"metadata": {"name": "d", "labels": {"case": case}},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


PODS, DEPLOYMENTS = rules(["pods"], ["CREATE", "UPDATE"]), rules(["deployments"], ["CREATE", "UPDATE"], ["apps"])
LABEL = 'Object{metadata: Object.metadata{labels: {"mutated": "yes"}}}'
# name: (mutations, what a request has, more of the spec)
CASES = {
    "label": ([apply(LABEL)], config_map, {}),
    "value": ([apply('Object{data: {"twice": string(int(object.data.n) * 2)}}')], config_map, {}),
    "two": ([apply('Object{data: {"a": "1"}}'), apply('Object{data: {"b": object.data.a + "2"}}')], config_map, {}),
    "variable": ([apply('Object{data: {"v": variables.v}}')], config_map,
                 {"variables": [{"name": "v", "expression": "object.data.n + '!'"}]}),
    "namespace": ([apply('Object{data: {"team": namespaceObject.metadata.labels.team, "op": request.operation}}')], config_map, {}),
    "optional": ([apply('Object{data: {?"has": object.?data["n"], ?"lacks": object.?data["x"]}, ?immutable: optional.none()}')],
                 config_map, {}),
    "condition": ([apply(LABEL)], config_map, {"matchConditions": [{"name": "n", "expression": "object.data.n == '6'"}]}),
    "condition-error": ([apply(LABEL)], config_map, {"matchConditions": [{"name": "n", "expression": "object.data.x == '6'"}]}),
    "condition-ignored": ([apply(LABEL)], config_map, {
        "matchConditions": [{"name": "n", "expression": "object.data.x == '6'"}], "failurePolicy": "Ignore"}),
    "error": ([apply('Object{data: {"a": object.data.x}}'), apply('Object{data: {"b": object.data.y}}')], config_map, {}),
    "error-ignored": ([apply('Object{data: {"a": object.data.x}}'), apply(LABEL)], config_map, {"failurePolicy": "Ignore"}),
    "unknown-field": ([apply('Object{nothing: "x"}')], config_map, {}),
    "wrong-type": ([apply('Object{data: 5}')], config_map, {}),
    "wrong-name": ([apply('Object{metadata: Object.spec{labels: {"a": "b"}}}')], config_map, {}),
    "nothing": ([apply("Object{}")], config_map, {}),
    "no-kind": ([apply(LABEL)], config_map, {"paramKind": {"apiVersion": "none.example.com/v1", "kind": "None"}}),
    "dear": ([apply('Object{data: {"a": string(lists.range(100000).map(x, lists.range(100).sum()).size())}}')], config_map, {}),
    "patch": ([patch('[JSONPatch{op: "add", path: "/metadata/labels/mutated", value: "yes"}]')], config_map, {}),
    "patches": ([patch('[JSONPatch{op: "test", path: "/data/n", value: "5"}, JSONPatch{op: "replace", path: "/data/n", value: '
                       '"6"}, JSONPatch{op: "copy", from: "/data/n", path: "/data/o"}, JSONPatch{op: "remove", path: "/data/n"}]')],
                config_map, {}),
    "patch-test": ([patch('[JSONPatch{op: "test", path: "/data/n", value: "7"}, JSONPatch{op: "remove", path: "/data"}]'),
                    apply(LABEL)], config_map, {}),
    "patch-map": ([patch('[JSONPatch{op: "add", path: "/metadata/annotations", value: {"a": "b", "c": string(object.data.n)}}]')],
                  config_map, {}),
    "patch-key": ([patch('[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("e.com/k~"), value: "yes"}]'),
                   patch('[JSONPatch{op: "add", path: "/data/" + jsonpatch.escapeKey("a~/b"), value: "x"}]')], config_map, {}),
    "patch-loop": ([patch('["a", "b"].map(k, JSONPatch{op: "add", path: "/data/" + k, value: k})')], config_map, {}),
    "patch-none": ([patch("object.data.n == '6' ? [JSONPatch{op: \"remove\", path: \"/data\"}] : "
                          "[JSONPatch{op: \"add\", path: \"/data/x\", value: \"y\"}]")], config_map, {}),
    "patch-to-list": ([patch('[JSONPatch{op: "replace", path: "", value: [1]}]')], config_map, {}),
    "patch-metadata": ([patch('[JSONPatch{op: "replace", path: "/metadata", value: "x"}]')], config_map, {}),
    "rename": ([patch('[JSONPatch{op: "replace", path: "/metadata/name", value: "other"}]')], config_map, {}),
    "container": ([apply('Object{spec: Object.spec{containers: [Object.spec.containers{name: "b", image: "k"}, '
                         'Object.spec.containers{name: "sidecar", image: "s"}]}}')], pod, {}),
    "env": ([apply('Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, '
                   'env: [Object.spec.containers.env{name: "T", value: "v"}]})}}')], pod, {}),
    "init": ([patch('[JSONPatch{op: "add", path: "/spec/initContainers", value: []}, JSONPatch{op: "add", path: '
                    '"/spec/initContainers/-", value: Object.spec.initContainers{name: "m", image: "proxy", restartPolicy: '
                    '"Always", resources: Object.spec.initContainers.resources{requests: {"cpu": "100m"}}}}]')], pod, {}),
    "atomic": ([apply('Object{spec: Object.spec{containers: [Object.spec.containers{name: "a", args: ["y"]}]}}')], pod, {}),
    "toleration": ([apply('Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "k", operator: "Exists"}]}}')],
                   pod, {}),
    "invalid": ([apply('Object{spec: Object.spec{restartPolicy: "Sometimes"}}')], pod, {}),
    "bad-type": ([patch('[JSONPatch{op: "add", path: "/spec/hostNetwork", value: "yes"}]')], pod, {}),
    "replicas": ([apply('Object{spec: Object.spec{replicas: 3, strategy: Object.spec.strategy{type: "Recreate"}}}')], deployment, {}),
    "selector": ([apply('Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {"x": "y"}}}}')], deployment, {}),
    "template": ([apply('Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{'
                        'annotations: {"mutated": "yes"}}}}}')], deployment, {}),
}
PATHS = {config_map: (f"{NS}/configmaps", MAPS), pod: (f"{NS}/pods", PODS),
         deployment: ("/apis/apps/v1/namespaces/map/deployments", DEPLOYMENTS)}
@pytest.fixture(scope="module")
def installed(pair):
    for name, (mutations, body, spec) in CASES.items():
        made = policy(name, mutations, PATHS[body][1], **spec)
        made["spec"]["matchConstraints"]["objectSelector"] = {"matchLabels": {"case": name}}
        install(pair, made, binding(name))
    for make, (path, match) in PATHS.items():
        last = f"last-{make.__name__.replace('_', '-')}"
        install(pair, policy(last, [apply(LABEL)], match), binding(last))
        known(pair[1], path, make(last))


@pytest.mark.parametrize("name", CASES)
def test_mutations(pair, installed, name):
    path, _ = PATHS[CASES[name][1]]
    same(pair, name, "POST", path, CASES[name][1](name))


REFUSED = [
    apply("object"), apply("Object.spec{}"), apply('{"a": "b"}'), apply("Other{}"), apply("none"), apply('Object{data: {"a": "b", "c": object.data.n}}'), apply('Object{x: [1, object.x]}'), apply('JSONPatch{op: "add", path: "/a"}'), apply("   "), patch("[]"), patch('JSONPatch{op: "add"}'),
    patch('[JSONPatch{op: 5, path: "/a"}]'), patch('[JSONPatch{wrong: "x"}]'), patch('[Object{}]'), patch('["a"]'),
    patch('[JSONPatch{op: "add", path: "/a", value: none}]'),
]


@pytest.mark.parametrize("mutation", REFUSED, ids=json.dumps)
def test_refused_expressions(pair, mutation):
    here, there = both(pair, "POST", ROOT + "ies", policy("refused", [mutation]), dryRun="All")
    assert here == there, f"\n  ours {here}\n  real {there}"


def test_every_verb(pair, installed):
    """create, update, both patches and apply; a deletion has nothing to change."""
    at = f"{NS}/configmaps"
    for api in pair:
        api.post(at, {"metadata": {"name": "m"}, "data": {"n": "5"}})
    same(pair, "put", "PUT", f"{at}/m", config_map("label"))
    for kind in ("merge", "strategic-merge", "apply"):
        body = config_map("label") if kind != "apply" else {"apiVersion": "v1", "kind": "ConfigMap", **config_map("label")}
        content = f"application/{kind}-patch+" + ("yaml" if kind == "apply" else "json")
        got = []
        for api in pair:
            query = {"dryRun": "All", **({"fieldManager": "t", "force": "true"} if kind == "apply" else {})}
            code, _, data = api.raw("PATCH", f"{at}/m", json.dumps(body).encode(), content, query=query)
            got.append((code, plain(data)))
        assert got[0] == got[1] and got[0][1]["metadata"]["labels"]["mutated"] == "yes", f"{kind} {got}"
    for api in pair:
        api.delete(f"{at}/m")


def test_params_and_reinvocation(pair):
    """Parameters of a binding; a policy that is called again sees what a later one made, one that does not does not."""
    for api in pair:
        api.post(f"{NS}/configmaps", {"metadata": {"name": "values"}, "data": {"class": "gold"}})
    install(pair, policy("with-params", [apply('Object{data: {"class": params.data["class"]}}')],
                         paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            binding("with-params", paramRef={"name": "values", "parameterNotFoundAction": "Deny"}))
    for name, again in (("a-again", "IfNeeded"), ("b-never", "Never")):
        install(pair, policy(name, [apply(f'Object{{data: {{"{name}": has(object.data.z) ? "seen" : "not seen"}}}}')],
                             reinvocationPolicy=again),
                {**binding(name), "spec": {"policyName": name, "matchResources": {
                    "objectSelector": {"matchLabels": {"case": "again"}}}}})
    install(pair, policy("z-last", [apply('Object{metadata: Object.metadata{labels: {"mutated": "yes"}}, data: {"z": "z"}}')]),
            {**binding("z-last"), "spec": {"policyName": "z-last", "matchResources": {
                "objectSelector": {"matchLabels": {"case": "again"}}}}})
    known(pair[1], f"{NS}/configmaps", config_map("again"))
    here, there = answers(pair, "POST", f"{NS}/configmaps", config_map("again"))
    # A kube-apiserver runs policies in any order, we by name: what is not called again may see less.
    assert (here[1]["data"].pop("b-never"), there[1]["data"].pop("b-never") in ("seen", "not seen")) == ("not seen", True)
    assert here == there and here[1]["data"]["a-again"] == "seen", (here, there)
    here = same(pair, "params", "POST", f"{NS}/configmaps", config_map("with-params"))
    assert here[1]["data"]["class"] == "gold", here


def test_what_a_policy_makes_is_judged(pair, installed):
    """A pod that a policy makes privileged is refused by Pod Security of the namespace, as if its user had written it."""
    namespace(pair, "map-baseline", {"pod-security.kubernetes.io/enforce": "baseline"})
    install(pair, policy("host", [apply("Object{spec: Object.spec{hostNetwork: true}}")], PODS), binding("host"))
    install(pair, policy("host-z", [apply(LABEL)], PODS), binding("host-z"))
    known(pair[1], f"{NS}/pods", pod("host-z"))
    here, there = answers(pair, "POST", "/api/v1/namespaces/map-baseline/pods", pod("host"))
    assert here[0] == there[0] == 403 and "hostNetwork=true" in here[1]["message"], (here, there)


def test_identity_is_not_a_policys(pair):
    """uid, times and deletion stay what they are, whatever a policy writes; a wall of mutations can be taken down."""
    here = pair[0]
    change = ", ".join(f'JSONPatch{{op: "add", path: "/metadata/{k}", value: {v}}}' for k, v in (
        ("uid", '"00000000-0000-0000-0000-000000000000"'), ("creationTimestamp", '"2001-01-01T00:00:00Z"'),
        ("deletionTimestamp", '"2001-01-01T00:00:00Z"'), ("generation", "7")))
    install((here,), policy("forge", [patch(f"[{change}]")], rules(["*"], ["*"], ["*"], ["*"])), binding("forge", matchResources={}))
    made = here.post(f"{NS}/configmaps", {"metadata": {"name": "forged"}})
    meta = made["metadata"]
    assert meta["uid"] != "00000000-0000-0000-0000-000000000000" and meta["creationTimestamp"][:4] != "2001", meta
    assert "deletionTimestamp" not in meta and "generation" not in meta, meta
    install((here,), policy("wall", [apply("Object{nothing: 1}")], rules(["*"], ["*"], ["*"], ["*"])), binding("wall", matchResources={}))
    code, _, data = here.raw("POST", f"{NS}/configmaps", {"metadata": {"name": "x"}})
    assert code == 403 and b"field not declared in schema" in data, data
    for name in ("wall", "forge"):
        here.delete(f"{ROOT}ybindings/{name}")
        here.delete(f"{ROOT}ies/{name}")
    assert here.raw("POST", f"{NS}/configmaps", {"metadata": {"name": "x"}})[0] == 201


def test_what_a_scale_or_binding_is_about_is_left_alone(pair):
    """A policy about everything changes the Scale or the Binding of a request, not what they are about."""
    here = pair[0]
    at = "/apis/apps/v1/namespaces/map/deployments"
    here.post(at, {"metadata": {"name": "wide"}, "spec": {**deployment("none")["spec"], "replicas": 0}})
    here.post(f"{NS}/pods", {"metadata": {"name": "bound"}, "spec": {**pod("none")["spec"], "schedulerName": "own"}})
    spec = here.get(f"{NS}/pods/bound")["spec"]
    install((here,), policy("wide", [patch('[JSONPatch{op: "add", path: "/metadata/annotations", value: {"wide": "yes"}}]')],
                            rules(["*/*"], ["*"], ["*"], ["*"])), binding("wide", matchResources={}))
    code, _, data = here.raw("PUT", f"{at}/wide/scale", {"metadata": {"name": "wide"}, "spec": {"replicas": 2}})
    assert code == 200 and json.loads(data)["kind"] == "Scale", data
    assert here.get(f"{at}/wide")["spec"]["replicas"] == 2
    code, _, data = here.raw("POST", f"{NS}/pods/bound/binding", {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n"}})
    assert code == 201, data
    bound = here.get(f"{NS}/pods/bound")
    assert bound["kind"] == "Pod" and "target" not in bound and bound["spec"] == {**spec, "nodeName": "n"}, bound
    here.delete(f"{ROOT}ybindings/wide")
    here.delete(f"{ROOT}ies/wide")


def test_an_author_may_read_the_parameters(pair):
    """What an expression sees, it can show: policies and bindings name parameters that their author may read."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for api in pair:
        api.post(f"{rbac}/clusterroles", {"metadata": {"name": "author"}, "rules": [
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
        api.post(f"{rbac}/clusterrolebindings", {
            "metadata": {"name": "author"}, "subjects": [{"kind": "User", "name": "jo", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"}})

    def eve(what, path, body):
        return same(pair, what, "POST", path, body, headers={"Impersonate-User": "jo"})

    eventually(lambda: pair[1].raw("POST", ROOT + "ies", policy("mine", [apply(LABEL)]), query={"dryRun": "All"},
                                   headers={"Impersonate-User": "jo"})[0] == 201, 60, "the role")
    for kind, code in (("Secret", 422), ("ConfigMap", 201), ("Nothing", 422)):
        made = policy(f"of-{kind.lower()}", [apply(LABEL)], paramKind={"apiVersion": "v1", "kind": kind})
        assert eve(kind, ROOT + "ies", made)[0] == code
        install(pair, made)
        ref = {"namespace": "kube-system", "parameterNotFoundAction": "Deny"}
        assert eve(f"{kind} bound", ROOT + "ybindings", binding(made["metadata"]["name"], paramRef={**ref, "name": "x"}))[0] == code
        assert eve(f"{kind} listed", ROOT + "ybindings", binding(made["metadata"]["name"], paramRef={**ref, "selector": {}}))[0] == 422
    assert eve("none", ROOT + "ybindings", binding("missing", paramRef={"name": "x", "parameterNotFoundAction": "Deny"}))[0] == 422
    assert eve("no parameter", ROOT + "ybindings", binding("of-secret"))[0] == 201
    for api in pair:
        for kind in ("secret", "configmap", "nothing"):
            api.delete(f"{ROOT}ies/of-{kind}")
