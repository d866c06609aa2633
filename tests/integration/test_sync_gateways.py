# SPDX-License-Identifier: Apache-2.0
"""The Gateway API by sync.toHost, with its real definitions: Gateways and routes down, their status up, and ReferenceGrants
and allowedRoutes of the virtual cluster in force although all its namespaces are one on the host."""
import copy
import json
import secrets

import pytest

from testenv import ApiError, eventually
from testenv.fixtures import install_crds

GATEWAY = "/apis/gateway.networking.k8s.io/v1"
CONFIG = {"sync": {"toHost": {
    "gatewayApi": {"enabled": True, "classes": ["shared"], "hosts": ["*.team.example"]}, "tlsRoutes": {"enabled": True},
    "backendTLSPolicies": {"enabled": True}}}}
NEEDED = ("gateways", "httproutes", "grpcroutes", "tlsroutes", "backendtlspolicies", "referencegrants")
LISTENER = {"name": "web", "hostname": "a.team.example", "port": 443, "protocol": "HTTPS",
            "tls": {"certificateRefs": [{"name": "cert"}]}}
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def vc(tenant, gateway_api):
    made = tenant("research", config=CONFIG)
    install_crds(made.api, [c for c in gateway_api if c["spec"]["names"]["plural"] in NEEDED])
    return made


def create(vc, plural, name, spec, namespace="default", kind=None, **metadata):
    kinds = {"gateways": "Gateway", "httproutes": "HTTPRoute", "grpcroutes": "GRPCRoute", "tlsroutes": "TLSRoute",
             "backendtlspolicies": "BackendTLSPolicy", "referencegrants": "ReferenceGrant"}
    return vc.api.post(f"{GATEWAY}/namespaces/{namespace}/{plural}", {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind or kinds[plural],
        "metadata": {"name": name, **metadata},
        "spec": spec})


def on_host(vc, plural, name, root=GATEWAY):
    found = [o for o in vc.host_objects(root, plural) if o["metadata"]["annotations"]["sublet.dev/name"] == name]
    return found[0] if found else None


def arrives(vc, plural, name, root=GATEWAY):
    return eventually(lambda: on_host(vc, plural, name, root), 60, f"{plural} {name} on the host")


def host_path(vc, plural, name):
    return f"{GATEWAY}/namespaces/{vc.namespace}/{plural}/{on_host(vc, plural, name)['metadata']['name']}"


def refused(call, *parts):
    with pytest.raises(ApiError) as e:
        call()
    assert e.value.code == 403, e.value
    for part in parts:
        assert part in str(e.value), e.value


def events(vc, name, reason, namespace="default"):
    return [e["message"] for e in vc.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
            if e["involvedObject"]["name"] == name and e["reason"] == reason]


def namespace(vc, name, **labels):
    vc.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})


def condition(of, generation, status="True"):
    return {"type": of, "status": status, "reason": of, "message": "", "lastTransitionTime": NOW,
            "observedGeneration": generation}


def life(vc, host, plural, name, changed, drift, settled=lambda spec: True):
    """A change here, one on the host while this process is away, a deletion there, a kill, and the end.

    settled: whether a spec on the host is the last one, where what it refers to may have come back just now.
    """
    path, first = f"{GATEWAY}/namespaces/default/{plural}/{name}", arrives(vc, plural, name)

    def written():
        spec = on_host(vc, plural, name)["spec"]
        return spec != first["spec"] and settled(spec) and spec
    eventually(lambda: vc.api.put(path, {**vc.api.get(path), "spec": changed}), 60, "the write beside those of its status")
    wanted = eventually(written, 60, "the change")
    vc.stop()
    host.api.patch(host_path(vc, plural, name), {"spec": drift})
    assert on_host(vc, plural, name)["spec"] != wanted
    vc.start()
    eventually(lambda: on_host(vc, plural, name)["spec"] == wanted, 60, "the host's change to be put right")
    uid = on_host(vc, plural, name)["metadata"]["uid"]
    host.api.delete(host_path(vc, plural, name))
    eventually(lambda: on_host(vc, plural, name) and on_host(vc, plural, name)["metadata"]["uid"] != uid, 60,
               "it again on the host")
    vc.kill()
    vc.start()
    vc.api.delete(path)
    eventually(lambda: not on_host(vc, plural, name), 60, f"no {plural} on the host")


def test_a_gateway(vc, host):
    vc.kubectl("create", "secret", "generic", "cert", "--from-literal=tls.crt=x")
    spec = {"gatewayClassName": "shared", "listeners": [{**LISTENER, "allowedRoutes": {"namespaces": {"from": "All"}}}]}
    create(vc, "gateways", "gw", spec)
    first = arrives(vc, "gateways", "gw")
    listener = first["spec"]["listeners"][0]
    secret = arrives(vc, "secrets", "cert", "/api/v1")
    assert listener["tls"]["certificateRefs"][0]["name"] == secret["metadata"]["name"]
    assert listener["allowedRoutes"]["namespaces"] == {"from": "Same"} and listener["hostname"] == "a.team.example"

    host.api.patch(f"{host_path(vc, 'gateways', 'gw')}/status", {"status": {
        "addresses": [{"type": "IPAddress", "value": "192.0.2.7"}],
        "conditions": [condition("Programmed", first["metadata"]["generation"])],
        "listeners": [{"name": "web", "attachedRoutes": 1, "supportedKinds": [], "conditions": [
            condition("ResolvedRefs", first["metadata"]["generation"])]}]}})

    def programmed():
        gateway = vc.api.get(f"{GATEWAY}/namespaces/default/gateways/gw")
        return [c for c in gateway["status"].get("conditions", []) if c["type"] == "Programmed" and c["status"] == "True"
                and c["observedGeneration"] == gateway["metadata"]["generation"]] and gateway["status"]

    status = eventually(programmed, 60, "the status")
    assert status["addresses"] == [{"type": "IPAddress", "value": "192.0.2.7"}]
    assert status["listeners"][0]["attachedRoutes"] == 1

    changed = copy.deepcopy(spec)
    changed["listeners"].append({"name": "other", "hostname": "*.team.example", "port": 80, "protocol": "HTTP"})
    life(vc, host, "gateways", "gw", changed, {"listeners": [{**LISTENER, "hostname": "stolen.example"}]})
    eventually(lambda: not on_host(vc, "secrets", "cert", "/api/v1"), 60, "no Secret without its Gateway")


ROUTES = {
    "httproutes": {"matches": [{"path": {"type": "PathPrefix", "value": "/a"}}], "filters": [
        {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "svc", "port": 80}}},
        {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}]},
    "grpcroutes": {"matches": [{"method": {"service": "s", "method": "m"}}]},
    "tlsroutes": {},
}


@pytest.mark.parametrize("plural", ROUTES)
def test_a_route(vc, host, plural):
    create(vc, "gateways", "gw", {"gatewayClassName": "shared", "listeners": [
        {"name": "web", "hostname": "a.team.example", "port": 443, "protocol": "TLS", "tls": {"mode": "Passthrough"}}]})
    vc.api.post("/api/v1/namespaces/default/services", {"metadata": {"name": "svc"}, "spec": {
        "ports": [{"port": 80}], "selector": {"app": "web"}}})
    spec = {"parentRefs": [{"name": "gw"}], "hostnames": ["a.team.example"],
            "rules": [{**ROUTES[plural], "backendRefs": [{"name": "svc", "port": 80}]}]}
    create(vc, plural, "r", spec)
    first, service = arrives(vc, plural, "r"), arrives(vc, "services", "svc", "/api/v1")["metadata"]["name"]
    gateway = arrives(vc, "gateways", "gw")["metadata"]["name"]
    rule = first["spec"]["rules"][0]
    assert first["spec"]["parentRefs"][0]["name"] == gateway and rule["backendRefs"][0]["name"] == service
    if plural == "httproutes":
        assert rule["filters"][0]["requestMirror"]["backendRef"]["name"] == service
        assert rule["filters"][1] == ROUTES[plural]["filters"][1] and rule["matches"] == ROUTES[plural]["matches"]

    host.api.patch(f"{host_path(vc, plural, 'r')}/status", {"status": {"parents": [
        {"parentRef": {"name": gateway, "namespace": vc.namespace}, "controllerName": "example.com/c",
         "conditions": [condition("Accepted", first["metadata"]["generation"])]}]}})

    def parents():
        return vc.api.get(f"{GATEWAY}/namespaces/default/{plural}/r").get("status", {}).get("parents")

    parent = eventually(parents, 60, "the status")[0]
    assert parent["parentRef"]["name"] == "gw" and "namespace" not in parent["parentRef"]
    assert parent["conditions"][0]["observedGeneration"] == 1

    changed = copy.deepcopy(spec)
    changed["rules"][0]["backendRefs"][0]["port"] = 81
    life(vc, host, plural, "r", changed, {"rules": [{"backendRefs": [{"name": "victim", "port": 80}]}]})


def test_a_policy_for_backends(vc, host):
    namespace(vc, "edge")
    create(vc, "gateways", "gw", {"gatewayClassName": "shared", "listeners": [
        {"name": "web", "hostname": "a.team.example", "port": 80, "protocol": "HTTP"}]}, "edge")
    vc.kubectl("create", "configmap", "ca", "--from-literal=ca.crt=x")
    vc.api.post("/api/v1/namespaces/default/services", {"metadata": {"name": "svc"}, "spec": {
        "ports": [{"port": 443}], "selector": {"app": "web"}}})
    spec = {"targetRefs": [{"group": "", "kind": "Service", "name": "svc"}], "validation": {
        "hostname": "svc.team.example", "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca"}]}}
    create(vc, "backendtlspolicies", "b", spec)
    first = arrives(vc, "backendtlspolicies", "b")
    service, authority = (arrives(vc, *of, "/api/v1")["metadata"]["name"] for of in (("services", "svc"), ("configmaps", "ca")))
    assert first["spec"] == {"targetRefs": [{**spec["targetRefs"][0], "name": service}], "validation": {
        "hostname": "svc.team.example", "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": authority}]}}

    # The status: of the tenant's Gateway, not of another one.
    gateway = arrives(vc, "gateways", "gw")["metadata"]["name"]
    host.api.patch(f"{host_path(vc, 'backendtlspolicies', 'b')}/status", {"status": {"ancestors": [
        {"ancestorRef": {"name": name, "namespace": "infra"}, "controllerName": "example.com/c",
         "conditions": [condition("Accepted", first["metadata"]["generation"])]} for name in ("of-others", gateway)]}})

    def ancestors():
        return vc.api.get(f"{GATEWAY}/namespaces/default/backendtlspolicies/b").get("status", {}).get("ancestors")

    found = eventually(ancestors, 60, "the status")
    assert [a["ancestorRef"] for a in found] == [
        {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw", "namespace": "edge"}]
    assert found[0]["conditions"][0]["observedGeneration"] == 1

    changed = copy.deepcopy(spec)
    changed["validation"]["hostname"] = "other.team.example"
    life(vc, host, "backendtlspolicies", "b", changed, {"validation": {"hostname": "stolen.example"}})
    refused(lambda: create(vc, "backendtlspolicies", "c", {**spec, "options": {"a.example/b": "c"}}), "spec.options")
    refused(lambda: create(vc, "backendtlspolicies", "c", {**spec, "targetRefs": [
        {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}]}), "only Services")


def backend(vc, name="r"):
    found = on_host(vc, "httproutes", name)
    return found and found["spec"]["rules"][0]["backendRefs"][0]["name"]


def test_a_backend_of_another_namespace_needs_a_grant(vc):
    namespace(vc, "other")
    vc.api.post("/api/v1/namespaces/other/services", {"metadata": {"name": "svc"}, "spec": {
        "ports": [{"port": 80}], "selector": {"app": "web"}}})
    service = arrives(vc, "services", "svc", "/api/v1")["metadata"]["name"]
    create(vc, "httproutes", "r", {"rules": [{"backendRefs": [{"name": "svc", "namespace": "other", "port": 80}]}]})
    eventually(lambda: (backend(vc) or "").startswith("not-permitted-"), 60, "the route, without its backend")
    said = eventually(lambda: events(vc, "r", "RefNotPermitted"), 60, "an Event")
    assert 'namespace "other" has no ReferenceGrant for Service "svc"' in said[0]

    create(vc, "referencegrants", "g", {"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute",
                                                  "namespace": "default"}], "to": [{"group": "", "kind": "Service"}]},
           "other")
    eventually(lambda: backend(vc) == service, 60, "the backend that is granted")
    vc.restart()
    assert backend(vc) == service
    vc.stop()  # the grant is no part of the route: what follows it does so after a restart as well
    vc.start()
    vc.api.delete(f"{GATEWAY}/namespaces/other/referencegrants/g")
    eventually(lambda: backend(vc).startswith("not-permitted-"), 60, "no backend without the grant")
    assert not vc.host_objects(GATEWAY, "referencegrants")


def test_a_certificate_of_another_namespace_needs_a_grant(vc):
    namespace(vc, "other")
    vc.kubectl("create", "secret", "generic", "cert", "-n", "other", "--from-literal=tls.crt=x")
    listener = {**LISTENER, "tls": {"certificateRefs": [{"name": "cert", "namespace": "other"}]}}
    create(vc, "gateways", "gw", {"gatewayClassName": "shared", "listeners": [listener]})

    def certificate():
        found = on_host(vc, "gateways", "gw")
        return found["spec"]["listeners"][0]["tls"]["certificateRefs"][0]["name"] if found else ""

    eventually(lambda: certificate().startswith("not-permitted-"), 60, "the Gateway, without its certificate")
    assert not on_host(vc, "secrets", "cert", "/api/v1")
    create(vc, "referencegrants", "g", {"from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway",
                                                  "namespace": "default"}], "to": [{"group": "", "kind": "Secret"}]},
           "other")
    secret = arrives(vc, "secrets", "cert", "/api/v1")["metadata"]["name"]
    eventually(lambda: certificate() == secret, 60, "the certificate that is granted")
    vc.api.delete(f"{GATEWAY}/namespaces/other/referencegrants/g")
    eventually(lambda: certificate().startswith("not-permitted-") and not on_host(vc, "secrets", "cert", "/api/v1"), 60,
               "neither without the grant")


def test_a_gateway_takes_routes_of_the_namespaces_it_allows(vc):
    namespace(vc, "infra")
    create(vc, "httproutes", "r", {"parentRefs": [{"name": "gw", "namespace": "infra"}]})

    def parents():
        found = on_host(vc, "httproutes", "r")
        return [(p["name"], p.get("sectionName")) for p in found["spec"]["parentRefs"]] if found else []

    def is_denied():
        return len(parents()) == 1 and parents()[0][0].startswith("not-permitted-")

    eventually(is_denied, 60, "a route to a Gateway that is not there")
    said = eventually(lambda: events(vc, "r", "RefNotPermitted"), 60, "an Event")
    assert 'namespace "infra" has no Gateway "gw" with a listener that allows routes of this namespace' in said[0]
    listeners = [{"name": n, "hostname": f"{n}.team.example", "port": 80, "protocol": "HTTP"} for n in ("a", "b")]
    create(vc, "gateways", "gw", {"gatewayClassName": "shared", "listeners": listeners}, "infra")
    gateway = arrives(vc, "gateways", "gw")["metadata"]["name"]
    assert is_denied()
    path = f"{GATEWAY}/namespaces/infra/gateways/gw"
    listeners[0]["allowedRoutes"] = {"namespaces": {"from": "All"}}
    vc.api.patch(path, {"spec": {"listeners": listeners}})
    eventually(lambda: parents() == [(gateway, "a")], 60, "the listener that allows it")
    listeners[1]["allowedRoutes"] = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"tier": "web"}}}}
    listeners[0]["allowedRoutes"] = {"namespaces": {"from": "Same"}}
    vc.api.patch(path, {"spec": {"listeners": listeners}})
    eventually(is_denied, 60, "no listener that allows it")
    vc.kubectl("label", "namespace", "default", "tier=web")
    eventually(lambda: parents() == [(gateway, "b")], 60, "the listener that selects its namespace")
    vc.kubectl("label", "namespace", "default", "tier-")
    eventually(is_denied, 60, "a namespace that is not selected any more")


def test_what_may_not_go_down_is_refused(vc):
    def gateway(**spec):
        return lambda: create(vc, "gateways", "gw", {"gatewayClassName": "shared", "listeners": [LISTENER], **spec})

    refused(gateway(gatewayClassName="other"), "spec.gatewayClassName", "sync.toHost.gateways.classes")
    refused(gateway(listeners=[{**LISTENER, "hostname": "bank.example"}]), "spec.listeners[0].hostname",
            "sync.toHost.gateways.hosts")
    refused(gateway(listeners=[{k: v for k, v in LISTENER.items() if k != "hostname"}]), "without a hostname")
    refused(gateway(addresses=[{"value": "192.0.2.1"}]), "spec.addresses")
    refused(gateway(infrastructure={"annotations": {"a": "b"}}), "spec.infrastructure")
    refused(lambda: create(vc, "httproutes", "r", {"parentRefs": [{"group": "", "kind": "Service", "name": "s"}]}),
            "only Gateways")
    gateway()()
    arrives(vc, "gateways", "gw")
    refused(lambda: vc.api.patch(f"{GATEWAY}/namespaces/default/gateways/gw", {
        "spec": {"listeners": [{**LISTENER, "hostname": "*.example"}]}}), "sync.toHost.gateways.hosts")
    assert on_host(vc, "gateways", "gw")["spec"]["listeners"][0]["hostname"] == "a.team.example"


def secrets_on_host(vc):
    return {o["metadata"]["annotations"]["sublet.dev/name"]: o["metadata"]["name"]
            for o in vc.host_objects("/api/v1", "secrets")}


def test_annotations_are_translated_and_judged(tenant, gateway_api):
    """As those of an Ingress: what they name is of this tenant, and what takes a host name is one of the list."""
    vc = tenant("research", config={**CONFIG, "policy": {"annotations": {"allow": [
        "konghq.com/", "nginx.org/", "external-dns.kubernetes.io/", "cert-manager.io/cluster-issuer", "cert-manager.io/"]}}})
    install_crds(vc.api, [c for c in gateway_api if c["spec"]["names"]["plural"] in NEEDED])
    for name in ("users", "authority"):
        vc.kubectl("create", "secret", "generic", name, "--from-literal=a=x")
    made = {"gateways": {"gatewayClassName": "shared", "listeners": [
                {**LISTENER, "tls": {"certificateRefs": [{"name": "users"}]}}]},
            "httproutes": {"parentRefs": [{"name": "x"}], "hostnames": ["a.team.example"]}}
    notes = {"nginx.org/basic-auth-secret": "default/users", "konghq.com/ca-certificates-secrets": "authority",
             "konghq.com/strip-path": "true", "external-dns.kubernetes.io/hostname": "a.team.example",
             "cert-manager.io/cluster-issuer": "internal", "other.example/secret": "kube-system/s"}
    for plural, spec in made.items():
        create(vc, plural, "x", spec, annotations=notes)
        found = arrives(vc, plural, "x")["metadata"]["annotations"]
        down = eventually(lambda: len(secrets_on_host(vc)) == 2 and secrets_on_host(vc), 60, "the Secrets on the host")
        assert found["nginx.org/basic-auth-secret"] == f"{vc.namespace}/{down['users']}"
        assert found["konghq.com/ca-certificates-secrets"] == down["authority"]
        assert {k: found[k] for k in ("konghq.com/strip-path", "external-dns.kubernetes.io/hostname",
                                      "cert-manager.io/cluster-issuer")}.items() <= notes.items()
        assert "other.example/secret" not in found
        for key, value, why in (("konghq.com/plugins", "victim:p", "lists its prefix only"),
                                ("konghq.com/host-aliases", "bank.example", "sync.toHost.gateways.hosts"),
                                ("external-dns.kubernetes.io/hostname", "bank.example", "sync.toHost.gateways.hosts"),
                                ("cert-manager.io/alt-names", "a.team.example,bank.example", "sync.toHost.gateways.hosts"),
                                ("nginx.org/basic-auth-secret", "kube-system/s", "a namespace other than its own")):
            refused(lambda k=key, v=value: vc.api.patch(f"{GATEWAY}/namespaces/default/{plural}/x", {
                "metadata": {"annotations": {k: v}}}), f"metadata.annotations[{key}]", why)
        assert arrives(vc, plural, "x")["metadata"]["annotations"] == found


def test_the_status_of_a_gateway_class_follows(tenant, host, gateway_api):
    definitions = [c for c in gateway_api if c["spec"]["names"]["plural"] == "gatewayclasses"]
    classes = f"{GATEWAY}/gatewayclasses"
    host.api.post(classes, {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                            "metadata": {"name": "shown"}, "spec": {"controllerName": "example.com/c"}})
    vc = tenant("research", config={"sync": {"fromHost": {"gatewayClasses": {"enabled": True}}}})
    install_crds(vc.api, definitions)
    eventually(lambda: vc.api.get(f"{classes}/shown"), 60, "the class")

    def report(status):
        accepted = {**condition("Accepted", 1, status), "message": "by parameters infra/secret-of-the-host"}
        host.api.patch(f"{classes}/shown/status", {"status": {"conditions": [accepted],
                                                              "supportedFeatures": [{"name": "HTTPRoute"}]}})

    def is_shown(status):
        now = vc.api.get(f"{classes}/shown").get("status", {})
        return [c["status"] for c in now.get("conditions", [])] == [status] and now

    report("True")
    now = eventually(lambda: is_shown("True"), 60, "the status")
    assert now["supportedFeatures"] == [{"name": "HTTPRoute"}] and "secret-of-the-host" not in str(now)
    vc.api.patch(f"{classes}/shown/status", {"status": {"conditions": [condition("Accepted", 1, "False")]}})
    eventually(lambda: is_shown("True"), 60, "the tenant's change to be put right")
    vc.stop()
    report("False")
    vc.start()
    eventually(lambda: is_shown("False"), 60, "the status after a restart")
    host.api.delete(f"{classes}/shown")


def test_the_classes_of_gateway_api_are_shown(tenant, host, gateway_api):
    """No others, and a tenant that is shown them all has them by fromHost."""
    classes = f"{GATEWAY}/gatewayclasses"
    for name in ("shared", "other"):
        host.api.post(classes, {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                                "metadata": {"name": name}, "spec": {"controllerName": "example.com/c"}})
    try:
        vc = tenant("research", config=CONFIG)
        install_crds(vc.api, [c for c in gateway_api if c["spec"]["names"]["plural"] in NEEDED + ("gatewayclasses",)])
        eventually(lambda: vc.api.get(f"{classes}/shared"), 60, "the class", also=[404])
        assert [c["metadata"]["name"] for c in vc.api.get(classes)["items"]] == ["shared"]
        refused(lambda: create(vc, "gateways", "gw", {"gatewayClassName": "other", "listeners": [LISTENER]}), "other")
        create(vc, "gateways", "gw", {"gatewayClassName": "shared", "listeners": [LISTENER]})
        arrives(vc, "gateways", "gw")
    finally:
        for name in ("shared", "other"):
            host.api.delete(f"{classes}/{name}")


@pytest.fixture
def infra(host, gateway_api):
    """A namespace of the host with a Gateway that tenants share."""
    name = f"infra-{secrets.token_hex(3)}"
    host.create_namespace(name)
    yield name
    host.delete_namespace(name)


def shared_gateway(host, infra, name="edge", labels=None, **listener):
    return host.api.post(f"{GATEWAY}/namespaces/{infra}/gateways", {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": name, "labels": labels or {}},
        "spec": {"gatewayClassName": "of-the-admin", "infrastructure": {"labels": {"rack": "SECRET-VALUE"}}, "listeners": [
            {"name": "web", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "SECRET-VALUE".lower()}]},
             "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"tenant": "yes"}}}},
             **listener}]}})


def add_listener(host, infra, name, **listener):
    path = f"{GATEWAY}/namespaces/{infra}/gateways/edge"
    listeners = [one for one in host.api.get(path)["spec"]["listeners"] if one["name"] != name]
    host.api.patch(path, {"spec": {"listeners": listeners + [{"name": name, "protocol": "HTTP", **listener}]}})


def find(vc, path):
    code, _, body = vc.api.raw("GET", path)
    return json.loads(body) if code == 200 else None


def test_listeners_of_other_tenants_are_not_shown(tenant, host, gateway_api, infra):
    """Of a Gateway with a listener for each tenant a copy shows those that a route of this tenant can use, in spec and status."""
    shared_gateway(host, infra, hostname="*.example")
    add_listener(host, infra, "bank", port=80, hostname="secret.bank.example")
    shown = {"enabled": True, "hosts": ["*.team.example"], "mappings": {"byName": {f"{infra}/edge": "edge/public"}}}
    config = {"sync": {"toHost": CONFIG["sync"]["toHost"], "fromHost": {"gateways": shown}}}
    vc = tenant("research", config=config)
    install_crds(vc.api, [c for c in gateway_api if c["spec"]["names"]["plural"] in NEEDED])
    copy_path = f"{GATEWAY}/namespaces/edge/gateways/public"

    def names():
        now = find(vc, copy_path) or {"spec": {"listeners": []}}
        return [one["name"] for one in now["spec"]["listeners"]]

    eventually(lambda: names() == ["web"], 60, "the listener of the tenant's hosts")
    host.api.patch(f"{GATEWAY}/namespaces/{infra}/gateways/edge/status", {"status": {
        "listeners": [{"name": n, "attachedRoutes": 1, "supportedKinds": [], "conditions": []} for n in ("bank", "web")]}})
    status = eventually(lambda: (find(vc, copy_path).get("status") or {}).get("listeners"), 60, "its status")
    assert [one["name"] for one in status] == ["web"] and "bank" not in json.dumps(find(vc, copy_path))

    # No route names what is not shown, nor every name of several labels below the tenant's.
    spec = {"parentRefs": [{"name": "public", "namespace": "edge", "sectionName": "bank"}], "hostnames": ["a.team.example"]}
    create(vc, "httproutes", "probe", spec)
    arrives(vc, "httproutes", "probe")

    def leads(name):
        parent = on_host(vc, "httproutes", name)["spec"]["parentRefs"][0]
        return parent.get("namespace") == infra and parent["name"] == "edge"

    assert not leads("probe")
    refused(lambda: create(vc, "httproutes", "wild", {**spec, "hostnames": ["*.team.example"]}), "spec.hostnames",
            "sync.fromHost.gateways.wildcards")
    # It is shown once it serves this tenant, and no longer once it does not, also while this process is away.
    add_listener(host, infra, "bank", port=80, hostname="b.team.example")
    eventually(lambda: sorted(names()) == ["bank", "web"] and leads("probe"), 60, "both listeners")
    vc.stop()
    add_listener(host, infra, "bank", port=80, hostname="secret.bank.example")
    vc.start()
    eventually(lambda: names() == ["web"] and not leads("probe"), 60, "one listener")
    add_listener(host, infra, "web", port=443, hostname="other.example")
    eventually(lambda: not find(vc, copy_path), 60, "no Gateway without a listener for this tenant")
    # By a setting of its own the pattern itself is a host name.
    vc.stop()
    vc.write_config({"sync": {"toHost": CONFIG["sync"]["toHost"], "fromHost": {"gateways": {**shown, "wildcards": True}}}})
    vc.start()
    add_listener(host, infra, "web", port=443, hostname="a.b.team.example")
    eventually(lambda: names() == ["web"], 60, "the listener below the pattern")
    create(vc, "httproutes", "wild", {"parentRefs": [{"name": "public", "namespace": "edge"}], "hostnames": ["*.team.example"]})
    arrives(vc, "httproutes", "wild")
    eventually(lambda: leads("wild"), 60, "the route")


def test_a_gateway_of_the_host(tenant, host, gateway_api, infra):
    """Shown read-only under a name here; routes that name it lead to the host's, for the admin's host names alone."""
    shared_gateway(host, infra)
    shared_gateway(host, infra, "hidden")
    shared_gateway(host, infra, "neighbours", {"sublet.dev/cluster": "another"})
    shown = {"enabled": True, "hosts": ["*.team.example"], "mappings": {"byName": {
        f"{infra}/edge": "edge/public", f"{infra}/neighbours": "edge/stolen"}}}
    config = {"sync": {"toHost": CONFIG["sync"]["toHost"], "fromHost": {"gateways": shown, "gatewayClasses": {
        "enabled": True, "selector": {"matchLabels": {"show": "none"}}}}}}
    vc = tenant("research", config=config)
    install_crds(vc.api, [c for c in gateway_api if c["spec"]["names"]["plural"] in NEEDED + ("gatewayclasses",)])
    copy_path = f"{GATEWAY}/namespaces/edge/gateways/public"
    now = eventually(lambda: find(vc, copy_path), 60, "the Gateway")
    listener = now["spec"]["listeners"][0]
    assert now["spec"]["gatewayClassName"] == "of-the-admin" and "secret-value" not in json.dumps(now).lower()
    assert listener["allowedRoutes"]["namespaces"] == {"from": "All"} and listener["port"] == 443

    # What the host says of it, but of no one else's routes.
    host.api.patch(f"{GATEWAY}/namespaces/{infra}/gateways/edge/status", {"status": {
        "addresses": [{"type": "IPAddress", "value": "192.0.2.9"}], "conditions": [
            {**condition("Programmed", 1), "message": f"as {infra}/secret-value"}],
        "listeners": [{"name": "web", "attachedRoutes": 7, "supportedKinds": [], "conditions": []}]}})
    status = eventually(lambda: (find(vc, copy_path).get("status") or {}).get("addresses") and find(vc, copy_path)["status"],
                        60, "its status")
    assert status["addresses"] == [{"type": "IPAddress", "value": "192.0.2.9"}] and infra not in json.dumps(status)
    assert status["listeners"][0]["attachedRoutes"] == 0

    # A route of any namespace names it; on the host that is the host's Gateway.
    vc.api.post("/api/v1/namespaces/default/services", {"metadata": {"name": "svc"}, "spec": {
        "ports": [{"port": 80}], "selector": {"app": "web"}}})
    spec = {"parentRefs": [{"name": "public", "namespace": "edge", "sectionName": "web"}], "hostnames": ["a.team.example"],
            "rules": [{"backendRefs": [{"name": "svc", "port": 80}]}]}
    create(vc, "httproutes", "r", spec)
    first = arrives(vc, "httproutes", "r")
    theirs = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge", "namespace": infra,
               "sectionName": "web"}]
    assert first["spec"]["parentRefs"] == theirs
    host.api.patch(f"{host_path(vc, 'httproutes', 'r')}/status", {"status": {"parents": [
        {"parentRef": theirs[0], "controllerName": "example.com/c", "conditions": [
            {**condition("Accepted", first["metadata"]["generation"], "False"), "reason": "NotAllowedByListeners",
             "message": f"conflicts with {infra}/of-another"}]}]}})
    parents = eventually(lambda: vc.api.get(f"{GATEWAY}/namespaces/default/httproutes/r").get("status", {}).get("parents"),
                         60, "the route's status")
    assert [p["parentRef"] for p in parents] == [{**theirs[0], "name": "public", "namespace": "edge"}]
    assert parents[0]["conditions"][0]["reason"] == "NotAllowedByListeners" and infra not in json.dumps(parents)

    # Host names of others, and every one, are refused, also when a stored route is changed.
    refused(lambda: create(vc, "httproutes", "x", {**spec, "hostnames": ["bank.example"]}), "spec.hostnames",
            "sync.fromHost.gateways.hosts")
    refused(lambda: create(vc, "grpcroutes", "x", {"parentRefs": spec["parentRefs"]}), "spec.hostnames")
    refused(lambda: vc.api.patch(f"{GATEWAY}/namespaces/default/httproutes/r", {"spec": {"hostnames": ["bank.example"]}}),
            "sync.fromHost.gateways.hosts")
    # What is not listed, and what is a virtual cluster's, is not to be reached by any name.
    create(vc, "httproutes", "probe", {**spec, "parentRefs": [
        {"name": n, "namespace": ns} for n, ns in (("hidden", infra), ("edge", infra), ("hidden", "edge"), ("stolen", "edge"))]})
    names = [p for p in arrives(vc, "httproutes", "probe")["spec"]["parentRefs"]]
    assert all(p["name"].startswith("not-permitted-") and "namespace" not in p for p in names) and len(names) == 4
    assert not find(vc, f"{GATEWAY}/namespaces/edge/gateways/stolen")

    # The copy stays what it is, and never goes down.
    vc.api.patch(copy_path, {"spec": {"listeners": [{**LISTENER, "hostname": "stolen.example"}]}})
    eventually(lambda: find(vc, copy_path)["spec"] == now["spec"], 60, "the edit to be put right")
    vc.api.delete(copy_path)
    eventually(lambda: find(vc, copy_path), 60, "it again")
    eventually(lambda: on_host(vc, "httproutes", "r")["spec"]["parentRefs"] == theirs, 60, "the route as it was")
    assert not vc.host_objects(GATEWAY, "gateways")

    changed = copy.deepcopy(spec)
    changed["rules"][0]["backendRefs"][0]["port"] = 81
    life(vc, host, "httproutes", "r", changed, {"parentRefs": [{"name": "hidden", "namespace": infra}]},
         lambda spec: spec["parentRefs"] == theirs and spec["rules"][0]["backendRefs"][0]["port"] == 81)

    # Changed and deleted there while this process is away: the route leads nowhere then.
    create(vc, "httproutes", "s", {**spec, "parentRefs": [{"name": "public", "namespace": "edge"}]})
    arrives(vc, "httproutes", "s")
    vc.stop()
    host.api.patch(f"{GATEWAY}/namespaces/{infra}/gateways/edge", {"spec": {"gatewayClassName": "another"}})
    vc.start()
    eventually(lambda: find(vc, copy_path)["spec"]["gatewayClassName"] == "another", 60, "the change")
    vc.kill()
    host.api.delete(f"{GATEWAY}/namespaces/{infra}/gateways/edge")
    vc.start()
    eventually(lambda: not find(vc, copy_path), 60, "no Gateway")
    eventually(lambda: on_host(vc, "httproutes", "s")["spec"]["parentRefs"][0]["name"].startswith("not-permitted-"), 60,
               "a route that leads nowhere")

    # A Gateway of the tenant's own, marked alike and under the mapped name, is its own.
    create(vc, "gateways", "public", {"gatewayClassName": "shared", "listeners": [
        {"name": "web", "hostname": "a.team.example", "port": 80, "protocol": "HTTP",
         "allowedRoutes": {"namespaces": {"from": "All"}}}]}, "edge")
    vc.api.patch(copy_path, {"metadata": {"annotations": {"sublet.dev/from-host": "sync"}}})
    own = arrives(vc, "gateways", "public")["metadata"]["name"]
    shared_gateway(host, infra)
    eventually(lambda: events(vc, "public", "NotShown", "edge"), 60, "an Event")
    eventually(lambda: on_host(vc, "httproutes", "s")["spec"]["parentRefs"][0]["name"] == own, 60, "its own")
    assert "namespace" not in on_host(vc, "httproutes", "s")["spec"]["parentRefs"][0]
    vc.api.delete(copy_path)
    eventually(lambda: (find(vc, copy_path) or {"spec": {}})["spec"].get("gatewayClassName") == "of-the-admin", 60,
               "the host's, once the name is free")
    eventually(lambda: on_host(vc, "httproutes", "s")["spec"]["parentRefs"][0]["name"] == "edge", 60, "the host's")

    # No longer configured: it leaves, and the host's stays.
    vc.stop()
    vc.write_config({"sync": {"toHost": CONFIG["sync"]["toHost"], "fromHost": None}})
    vc.start()
    eventually(lambda: not find(vc, copy_path), 60, "no Gateway")
    eventually(lambda: on_host(vc, "httproutes", "s")["spec"]["parentRefs"][0]["name"].startswith("not-permitted-"), 60,
               "a route that leads nowhere")
    assert host.api.get(f"{GATEWAY}/namespaces/{infra}/gateways/edge")["spec"]["gatewayClassName"] == "of-the-admin"
