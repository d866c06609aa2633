# SPDX-License-Identifier: Apache-2.0
"""Services under names of the admin's: a tenant chooses neither the name nor what of the host is reached by it."""
import os
import secrets

import pytest

from testenv import eventually, never
from testenv.api import ApiError
from testenv.virtual import VirtualCluster

ALIAS = "sublet.dev/alias"


@pytest.fixture
def shops(field, workdir):
    """A tenant whose Service default/web has the name `shop` on the host, where `kitchen` is another's."""
    tag = "t" + secrets.token_hex(3)
    namespace = f"team-shops-{tag}"
    field.host.create_namespace(namespace)
    vc = VirtualCluster("shops", os.path.join(workdir, "escape", tag), field.host, namespace, {
        "policy": {"annotations": {"allow": ["shown.example/"]}},
        "sync": {"toHost": {"services": {"mappings": {"byName": {"default/web": "shop"}}}}}}).start()
    field.host.api.post(f"/api/v1/namespaces/{namespace}/services", {
        "metadata": {"name": "kitchen"}, "spec": {"selector": {"app": "kitchen"}, "ports": [{"port": 80}]}})
    try:
        yield vc
    finally:
        vc.close()
        field.host.delete_namespace(namespace)


def on_host(vc):
    return {s["metadata"]["name"]: s for s in vc.host.api.get(f"/api/v1/namespaces/{vc.namespace}/services")["items"]}


def test_a_tenant_chooses_no_name(field, shops):
    """Marks and labels that it writes stay with it, and a Service of this name in another namespace is another."""
    marks = {ALIAS: "kitchen", "sublet.dev/name": "x", "sublet.dev/uid": "y", "sublet.dev/epoch": "z"}
    labels = {"sublet.dev/cluster": field.words["victim_cluster"], "sublet.dev/alias": "kitchen"}
    shops.api.post("/api/v1/namespaces", {"metadata": {"name": "second"}})
    for namespace, name in (("default", "kitchen"), ("second", "web"), ("default", "shop")):
        shops.api.post(f"/api/v1/namespaces/{namespace}/services", {
            "metadata": {"name": name, "annotations": marks, "labels": labels},
            "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}})
    eventually(lambda: len(shops.host_objects("/api/v1", "services")) == 3, 30, "three Services")
    never(lambda: "shop" in on_host(shops), 2, "a Service that no mapping gives")
    for made in shops.host_objects("/api/v1", "services"):
        notes = made["metadata"]["annotations"]
        assert ALIAS not in notes and notes["sublet.dev/name"] in ("kitchen", "web", "shop")
        assert made["metadata"]["labels"]["sublet.dev/cluster"] != field.words["victim_cluster"]
    assert on_host(shops)["kitchen"]["spec"]["selector"] == {"app": "kitchen"}


def test_a_name_leads_to_the_tenants_pods_alone(field, shops):
    """Whatever type, address, selector or marks its Service has."""
    web = "/api/v1/namespaces/default/services/web"
    before = on_host(shops)["kitchen"]
    shops.api.post("/api/v1/namespaces/default/services", {
        "metadata": {"name": "web", "annotations": {ALIAS: "kitchen"}},
        "spec": {"type": "LoadBalancer", "selector": {"sublet.dev/cluster": field.words["victim_cluster"], "app": "gold"},
                 "ports": [{"port": 80}], "allocateLoadBalancerNodePorts": True}})
    shop = eventually(lambda: on_host(shops).get("shop"), 60, "the name")
    assert shop["spec"]["type"] == "ClusterIP" and "nodePort" not in shop["spec"]["ports"][0]
    assert shop["spec"]["selector"]["sublet.dev/cluster"] not in ("", field.words["victim_cluster"])
    assert shop["metadata"]["annotations"][ALIAS] == "shop"
    for spec, refused in (({"externalIPs": ["10.0.0.1"]}, "externalIPs"), ({"clusterIP": before["spec"]["clusterIP"]}, "clusterIP"),
                          ({"loadBalancerIP": "10.0.0.1"}, "loadBalancerIP")):
        with pytest.raises(ApiError, match=refused) as e:
            shops.api.patch(web, {"spec": spec})
        assert e.value.code in (403, 422)
    shops.api.patch(web, {"spec": {"type": "ExternalName", "externalName": "kitchen", "clusterIP": None, "clusterIPs": None,
                                   "ports": None, "selector": None, "allocateLoadBalancerNodePorts": None,
                                   "externalTrafficPolicy": None}})
    eventually(lambda: "shop" not in on_host(shops), 60, "it to leave: it has no pods")
    shops.api.delete(web)
    assert on_host(shops)["kitchen"] == before
