# SPDX-License-Identifier: Apache-2.0
"""x-kubernetes-validations judge custom resources as those of a kube-apiserver: the same CRDs and the same objects go to
both."""
import copy
import json
import os
import re

import pytest
import yaml

from alike import both
from differential.servers import start_pair
from rule_cases import CASES, GOOD, RATCHETED, RATCHETS, SCHEMAS, bounded, obj, rule, typed
from testenv import binaries, eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AT = "/apis/rules.example.com/v1/"


def crd(plural, spec, root=(), status=None, properties=None):
    kind = plural[:-1].capitalize()
    schema = {"type": "object", "properties": {"spec": bounded(spec), **({"status": bounded(status)} if status else {}), **(properties or {})}}
    if root:
        schema["x-kubernetes-validations"] = list(root)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + ".rules.example.com"},
            "spec": {"group": "rules.example.com", "scope": "Cluster", "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                     "versions": [version]}}


def custom(plural, name, **parts):
    return {"apiVersion": "rules.example.com/v1", "kind": plural[:-1].capitalize(), "metadata": {"name": name}, **parts}


def told(answered):
    """Upstream names the type of self anew at each write."""
    return re.sub(r"selfType\d+[\w.@]*", "object", str(answered))


def install(pair, body):
    for api in pair:
        api.post(CRDS, body)
        eventually(lambda a=api: a.raw("GET", AT + body["spec"]["names"]["plural"])[0] == 200, 30, "the custom resource")


def compare(different, pair, what, *request, **query):
    here, there = both(pair, *request, **query)
    if told(here) != told(there):
        different.append(f"{what}\n  ours {told(here)}\n  real {told(there)}")
    return here


def applied(api, path, body):
    code, _, data = api.raw("PATCH", path, json.dumps(body).encode(), "application/apply-patch+yaml", query={"fieldManager": "t"})
    return code, json.loads(data)


@pytest.fixture(scope="module")
def pair(workdir):
    here, there = start_pair(os.path.join(workdir, "rules"))
    yield here.api, there.api
    try:
        here.close()
    finally:
        there.stop()


@pytest.fixture(scope="module")
def rules(pair):
    install(pair, crd("rules", obj({name: schema for name, (schema, _, _) in CASES.items()})))


@pytest.mark.parametrize("name", CASES)
def test_rules(pair, rules, name):
    _, created, updated = CASES[name]
    different = []
    for value in created:
        compare(different, pair, f"create {value}", "POST", AT + "rules", custom("rules", "a", spec={name: value}), dryRun="All")
    for i, (before, value) in enumerate(updated):
        body = custom("rules", f"{name}-{i}", spec={} if before is None else {name: before})
        for api in pair:
            api.post(AT + "rules", body)
        body["spec"] = {name: value}
        compare(different, pair, f"update {before} to {value}", "PUT", f"{AT}rules/{name}-{i}", body, dryRun="All")
    assert not different, "\n".join(different)


def test_refused_schemas(pair):
    different = []
    for name, schema in SCHEMAS.items():
        code = compare(different, pair, name, "POST", CRDS, crd("refused", schema), dryRun="All")[0]
        assert code in (201, 422), (name, code)
    assert not different, f"{len(different)} of {len(SCHEMAS)}\n" + "\n".join(different)


def test_unchanged_values_are_warned_about(pair):
    """A rule that a stored value breaks refuses it only once it changes."""
    def bare(schema):
        if isinstance(schema, dict):
            return {k: bare(v) for k, v in schema.items() if k != "x-kubernetes-validations"}
        return schema

    body = crd("kepts", bare(obj(RATCHETED)))
    install(pair, body)
    for name, before, _ in RATCHETS:
        for api in pair:
            api.post(AT + "kepts", custom("kepts", name, spec=before))
    ruled = crd("kepts", obj(RATCHETED, rule("!has(self.n) || self.n == 1 || has(self.b)", message="whole")))
    for api in pair:
        ruled["metadata"]["resourceVersion"] = api.get(CRDS + "/kepts.rules.example.com")["metadata"]["resourceVersion"]
        api.put(CRDS + "/kepts.rules.example.com", ruled)
        eventually(lambda a=api: a.raw("POST", AT + "kepts", custom("kepts", "probe", spec={"a": "bad"}), query={"dryRun": "All"})[0] == 422,
                   30, "the rules")
    different = []
    for name, _, value in RATCHETS:
        compare(different, pair, name, "PUT", f"{AT}kepts/{name}", custom("kepts", name, spec=value), dryRun="All")
    assert not different, "\n".join(different)


def test_every_way_to_write(pair):
    """create, update, both patches, apply, and the status: rules see the whole object."""
    root = [rule("self.metadata.name.startsWith('r')", message="name"), rule("self.kind == 'Root'"),
            rule("!has(self.status) || self.status.n <= self.spec.n", message="status must not exceed spec")]
    install(pair, crd("roots", obj({"n": typed("integer", rule("self >= oldSelf", message="grows"))}), root, obj({"n": typed("integer"), "s": GOOD})))
    different = []
    compare(different, pair, "name", "POST", AT + "roots", custom("roots", "x", spec={"n": 1}))
    compare(different, pair, "create", "POST", AT + "roots", custom("roots", "r", spec={"n": 3}))
    compare(different, pair, "smaller", "PUT", AT + "roots/r", custom("roots", "r", spec={"n": 2}))
    for api in pair:
        for content in ("application/merge-patch+json", "application/json-patch+json"):
            patch = {"spec": {"n": 2}} if "merge" in content else [{"op": "replace", "path": "/spec/n", "value": 2}]
            code, _, data = api.raw("PATCH", AT + "roots/r", json.dumps(patch).encode(), content)
            assert code == 422 and b"grows" in data, data
        code, status = applied(api, AT + "roots/new", custom("roots", "new", spec={"n": 1}))
        assert code == 422 and "Invalid value: name" in status["message"], status
        code, status = applied(api, AT + "roots/rr", custom("roots", "rr", spec={"n": 1}))
        assert code == 201, status
    compare(different, pair, "status", "PUT", AT + "roots/r/status", custom("roots", "r", spec={"n": 3}, status={"n": 4}))
    compare(different, pair, "status and string", "PUT", AT + "roots/r/status", custom("roots", "r", spec={"n": 3}, status={"n": 4, "s": "bad"}))
    compare(different, pair, "status fits", "PUT", AT + "roots/r/status", custom("roots", "r", spec={"n": 3}, status={"n": 3}))
    compare(different, pair, "spec below", "PUT", AT + "roots/r", custom("roots", "r", spec={"n": 4}, status={"n": 9}))
    assert not different, "\n".join(different)


def test_budget(pair):
    """A rule that costs too much ends, on both, and the server answers at once."""
    install(pair, crd("dears", obj({"l": typed("array", rule("self.all(x, self.all(y, x + y >= 0))", message="m"), items={"type": "integer"}, maxItems=600)})))
    for api in pair:
        code, _, data = api.raw("POST", AT + "dears", custom("dears", "a", spec={"l": [1] * 600}))
        assert code == 422 and b"no further validation rules will be run" in data, data
        assert api.raw("GET", "/readyz")[0] == 200


def gateway_objects():
    """Objects of the Gateway API, good ones and those its rules refuse."""
    def of(kind, version, spec):
        return {"apiVersion": "gateway.networking.k8s.io/" + version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}

    def listener(**more):
        return {"name": "http", "port": 80, "protocol": "HTTP", **more}

    def gateway(*listeners, **more):
        return of("Gateway", "v1", {"gatewayClassName": "c", "listeners": list(listeners), **more})

    def route(*rules_, **more):
        return of("HTTPRoute", "v1", {"parentRefs": [{"name": "g"}], "rules": list(rules_), **more})

    backend = {"name": "s", "port": 80}
    redirect = {"type": "RequestRedirect", "requestRedirect": {"statusCode": 301}}
    rewrite = {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}}}
    return [
        gateway(listener()), gateway(listener(tls={"mode": "Terminate"})), gateway(listener(protocol="HTTPS", tls={"mode": "Terminate"})),
        gateway(listener(protocol="HTTPS", tls={"mode": "Passthrough"})), gateway(listener(protocol="TCP", hostname="a.b")),
        gateway(listener(), listener()), gateway(listener(), listener(name="b")), gateway(listener(), listener(name="b", hostname="x.y")),
        gateway(listener(), addresses=[{"type": "IPAddress", "value": "1.2.3.4"}, {"type": "IPAddress", "value": "1.2.3.4"}]),
        gateway(listener(), addresses=[{"type": "Hostname", "value": "a.b"}, {"type": "IPAddress", "value": "x"}]),
        route({"backendRefs": [backend]}), route({"backendRefs": [{"name": "s"}]}), route({"filters": [redirect], "backendRefs": [backend]}),
        route({"filters": [redirect]}), route({"filters": [redirect, redirect]}), route({"filters": [rewrite], "backendRefs": [backend]}),
        route({"filters": [rewrite], "backendRefs": [backend], "matches": [{"path": {"type": "PathPrefix", "value": "/a"}}]}),
        route({"filters": [rewrite], "backendRefs": [backend], "matches": [{"path": {"type": "Exact", "value": "/a"}}]}),
        route({"matches": [{"path": {"type": "PathPrefix", "value": "a"}}]}), route({"matches": [{"path": {"type": "Exact", "value": "/a//b"}}]}),
        route({"matches": [{"path": {"type": "Exact", "value": "/a/../b"}}]}), route({"matches": [{"path": {"type": "Exact", "value": "/a%2f"}}]}),
        route({"filters": [{"type": "RequestMirror"}]}), route({"filters": [{"type": "RequestHeaderModifier", "requestMirror": {"backendRef": backend}}]}),
        route({"timeouts": {"request": "1s", "backendRequest": "2s"}}), route({"timeouts": {"request": "3s", "backendRequest": "2s"}}),
        route({"name": "a"}, {"name": "a"}), route({}, parentRefs=[{"name": "g"}, {"name": "g"}]),
        route({}, parentRefs=[{"name": "g", "sectionName": "a"}, {"name": "g", "sectionName": "b"}]),
        of("GRPCRoute", "v1", {"rules": [{"matches": [{"method": {"type": "Exact"}}]}]}),
        of("GRPCRoute", "v1", {"rules": [{"matches": [{"method": {"type": "Exact", "service": "a b"}}]}]}),
        of("ReferenceGrant", "v1beta1", {"from": [{"group": "", "kind": "Service", "namespace": "n"}], "to": [{"group": "", "kind": "Secret"}]}),
    ]


def plural_of(kind):
    return kind.lower() + ("es" if kind.endswith("Class") else "s")


def test_gateway_api(pair):
    bodies = []
    for path in binaries.crds("gateway-api"):
        with open(path, encoding="utf-8") as f:
            bodies += [d for d in yaml.safe_load_all(f) if d and d.get("kind") == "CustomResourceDefinition"]
    assert any("x-kubernetes-validations" in json.dumps(b) for b in bodies)
    for body in bodies:
        for api in pair:
            api.post(CRDS, body)
    at = "/apis/gateway.networking.k8s.io/"
    for api in pair:
        for o in ("v1/gateways", "v1/httproutes", "v1/grpcroutes", "v1beta1/referencegrants"):
            eventually(lambda a=api, p=o: a.raw("GET", at + p)[0] == 200, 60, o)
    different, codes = [], []
    for body in gateway_objects():
        version = body["apiVersion"].split("/")[1]
        path = f"{at}{version}/namespaces/default/{plural_of(body['kind'])}"
        codes.append(compare(different, pair, json.dumps(body["spec"]), "POST", path, copy.deepcopy(body), dryRun="All")[0])
    assert not different, f"{len(different)}\n" + "\n".join(different)
    assert codes.count(201) > 8 and codes.count(422) > 12, codes
