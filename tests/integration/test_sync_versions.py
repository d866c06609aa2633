# SPDX-License-Identifier: Apache-2.0
"""Kinds of which hosts serve different versions: the one that is there is found, and followed when it changes."""
import copy

import pytest

from testenv import eventually
from testenv.fixtures import install_crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "gateway.networking.k8s.io"
KINDS = {"tlsroutes": ("TLSRoute", "tlsRoutes"), "backendtlspolicies": ("BackendTLSPolicy", "backendTLSPolicies")}
SPECS = {"tlsroutes": {"hostnames": ["a.team.example"], "parentRefs": [{"name": "g"}],
                       "rules": [{"name": "r", "backendRefs": [{"name": "web", "port": 443, "weight": 2}]}]},
         "backendtlspolicies": {"targetRefs": [{"group": "", "kind": "Service", "name": "web"}],
                                "validation": {"hostname": "web.example", "wellKnownCACertificates": "System"}}}
CHANGED = {"tlsroutes": {"hostnames": ["b.team.example"]},
           "backendtlspolicies": {"validation": {"hostname": "b.example", "wellKnownCACertificates": "System"}}}


def definition(plural, *versions):
    """Like those of the Gateway API in all that matters here; the first version is stored."""
    kind = KINDS[plural][0]
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": f"{plural}.{GROUP}", "annotations": {"api-approved.kubernetes.io": "https://example.com/pull/1"}}, "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": v, "served": True, "storage": v == versions[0], "subresources": {"status": {}}, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}} for v in versions]}}


@pytest.fixture(params=[("tlsroutes", "v1alpha2", "v1"), ("tlsroutes", "v1alpha3", "v1alpha2"), ("tlsroutes", "v1", "v1alpha3"),
                        ("backendtlspolicies", "v1alpha3", "v1")], ids="-".join)
def versions(request, real_host):
    plural, there, here = request.param
    install_crds(real_host.api, [definition(plural, there)])
    yield plural, there, here
    real_host.api.delete(f"{CRDS}/{plural}.{GROUP}")
    eventually(lambda: real_host.api.raw("GET", f"{CRDS}/{plural}.{GROUP}")[0] == 404, 60, "the definition to be gone")


def test_the_version_that_the_host_serves(tenant, real_host, versions):
    plural, there, here = versions
    kind, key = KINDS[plural]
    vc = tenant("research", config={"sync": {"toHost": {key: {"enabled": True}}}})
    install_crds(vc.api, [definition(plural, here)])
    path = f"/apis/{GROUP}/{here}/namespaces/default/{plural}"

    def on_host(version=there):
        return next((o for o in vc.host_objects(f"/apis/{GROUP}/{version}", plural)
                     if o["metadata"]["annotations"]["sublet.dev/name"] == "x"), None)

    def named(spec):
        return spec["hostnames"][0] if "hostnames" in spec else spec["validation"]["hostname"]

    vc.api.post(path, {"apiVersion": f"{GROUP}/{here}", "kind": kind, "metadata": {"name": "x"}, "spec": SPECS[plural]})
    found = eventually(on_host, 60, f"the {kind} on the host")
    assert found["apiVersion"] == f"{GROUP}/{there}" and named(found["spec"]) == named(SPECS[plural])
    vc.api.patch(f"{path}/x", {"spec": CHANGED[plural]})
    eventually(lambda: named(on_host()["spec"]) == named(CHANGED[plural]), 60, "the change on the host")
    vc.restart(kill=True)
    vc.api.patch(f"{path}/x", {"metadata": {"labels": {"a": "b"}}, "spec": SPECS[plural]})
    eventually(lambda: named(on_host()["spec"]) == named(SPECS[plural]), 60, "the next change on the host")
    assert on_host()["metadata"]["uid"] == found["metadata"]["uid"]
    vc.api.delete(f"{path}/x")
    eventually(lambda: not on_host(), 60, "it to be gone on the host")


def test_a_host_that_is_upgraded(tenant, real_host):
    """The version that was used stops being served: objects stay, and are followed in the one that is."""
    crd = definition("tlsroutes", "v1alpha3")
    install_crds(real_host.api, [crd])
    try:
        vc = tenant("research", config={"sync": {"toHost": {"tlsRoutes": {"enabled": True}}}})
        install_crds(vc.api, [definition("tlsroutes", "v1")])
        path = f"/apis/{GROUP}/v1/namespaces/default/tlsroutes"
        vc.api.post(path, {"apiVersion": f"{GROUP}/v1", "kind": "TLSRoute", "metadata": {"name": "x"}, "spec": SPECS["tlsroutes"]})
        old = eventually(lambda: vc.host_objects(f"/apis/{GROUP}/v1alpha3", "tlsroutes"), 60, "the route on the host")[0]
        new = copy.deepcopy(real_host.api.get(f"{CRDS}/{crd['metadata']['name']}"))
        new["spec"]["versions"] = definition("tlsroutes", "v1", "v1alpha3")["spec"]["versions"]
        new["spec"]["versions"][1]["served"] = False
        real_host.api.put(f"{CRDS}/{crd['metadata']['name']}", new)
        eventually(lambda: real_host.api.get(f"/apis/{GROUP}/v1/tlsroutes"), 60, "v1 on the host", also=[404, 429])
        vc.api.patch(f"{path}/x", {"spec": CHANGED["tlsroutes"]})
        now = eventually(lambda: next((o for o in vc.host_objects(f"/apis/{GROUP}/v1", "tlsroutes")
                                       if o["spec"]["hostnames"] == ["b.team.example"]), None), 120, "the change in v1")
        assert now["metadata"]["uid"] == old["metadata"]["uid"]
        vc.api.delete(f"{path}/x")
        eventually(lambda: not vc.host_objects(f"/apis/{GROUP}/v1", "tlsroutes"), 60, "it to be gone on the host")
    finally:
        real_host.api.delete(f"{CRDS}/{crd['metadata']['name']}")
        eventually(lambda: real_host.api.raw("GET", f"{CRDS}/{crd['metadata']['name']}")[0] == 404, 60, "no definition")
