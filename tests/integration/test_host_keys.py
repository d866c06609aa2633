# SPDX-License-Identifier: Apache-2.0
"""policy.labels.fromHost and policy.annotations.fromHost: what controllers of the host write into host objects comes up,
follows them, and goes again; what the tenant wrote under such a key stays."""
import pytest

from testenv import eventually

CORE, NETWORKING, TEAM = "/api/v1", "/apis/networking.k8s.io/v1", "/apis/team.example/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
       "metadata": {"name": "gadgets.team.example"},
       "spec": {"group": "team.example", "scope": "Namespaced",
                "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
                "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                              "schema": {"openAPIV3Schema": {"type": "object",
                                                             "x-kubernetes-preserve-unknown-fields": True}}}]}}
POLICY = {"labels": {"fromHost": ["zone.example/", "both.example/l"], "allow": ["both.example/"]},
          "annotations": {"fromHost": ["lb.example/", "both.example/a"], "allow": ["both.example/"]},
          "storageClasses": ["fast"]}
TO_HOST = {"ingresses": {"enabled": True, "classes": ["nginx"], "hosts": ["*.team.example"]},
           "customResources": {"gadgets.team.example": {"enabled": True}}}
RECORD = "sublet.dev/host-keys"

# Of a status, this schema prunes what the host's schema has.
NARROW = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                           "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}

KINDS = {
    "pods": (CORE, {"spec": {"containers": [{"name": "c", "image": "app:1"}]}}),
    "services": (CORE, {"spec": {"ports": [{"port": 80}]}}),
    "persistentvolumeclaims": (CORE, {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                                               "resources": {"requests": {"storage": "1Gi"}}}}),
    "ingresses": (NETWORKING, {"spec": {"rules": [{"host": "a.team.example", "http": {"paths": [
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}}),
    "gadgets": (TEAM, {"apiVersion": "team.example/v1", "kind": "Gadget", "spec": {"size": 1}}),
}


@pytest.fixture
def vc(tenant, real_host):
    real_host.api.post(CRDS, CRD)
    eventually(lambda: real_host.api.get(f"{TEAM}/gadgets"), 60, "the host to serve gadgets", also=[429])
    made = tenant("research", config={"policy": POLICY, "sync": {"toHost": TO_HOST}})
    made.api.post(CRDS, {**CRD, "spec": {**CRD["spec"], "versions": [
        {**CRD["spec"]["versions"][0], "schema": {"openAPIV3Schema": NARROW}}]}})
    eventually(lambda: made.api.get(f"{TEAM}/gadgets"), 30, "the tenant to serve gadgets", also=[429])
    yield made
    real_host.api.delete(f"{CRDS}/gadgets.team.example")


class Pair:
    """An object of a tenant, and its host object."""

    def __init__(self, vc, plural):
        self.vc, self.plural, (self.root, self.body) = vc, plural, KINDS[plural]
        self.path = f"{self.root}/namespaces/default/{plural}"
        vc.api.post(self.path, {**self.body, "metadata": {
            "name": "x", "labels": {"zone.example/own": "tenant"}, "annotations": {"lb.example/own": "tenant"}}})
        eventually(self.on_host, 60, f"{plural} on the host")

    def on_host(self):
        return next((o for o in self.vc.host_objects(self.root, self.plural)
                     if o["metadata"]["annotations"].get("sublet.dev/name") == "x"), None)

    def write_on_host(self, host, labels, annotations):
        name = self.on_host()["metadata"]["name"]
        host.api.patch(f"{self.root}/namespaces/{self.vc.namespace}/{self.plural}/{name}",
                       {"metadata": {"labels": labels, "annotations": annotations}})

    def get(self):
        return self.vc.api.get(f"{self.path}/x")["metadata"]

    def shows(self, labels, annotations):
        """Waits until these keys, and no other of the listed ones, are shown; a record beside them, if one is needed."""
        def is_so():
            meta = self.get()
            notes = meta.get("annotations", {})
            keys = {k: v for k, v in notes.items() if k.startswith(("lb.example/", "both.example/", "hidden"))}
            shown = {k: v for k, v in meta.get("labels", {}).items() if not k.startswith("topology.kubernetes.io/")}
            return (shown == {"zone.example/own": "tenant", **labels}
                    and keys == {"lb.example/own": "tenant", **annotations}
                    and (RECORD in notes) == bool({**labels, **annotations}))
        eventually(is_so, 60, f"{self.plural} with {labels} {annotations}")


def test_keys_come_up(vc, host):
    pairs = [Pair(vc, plural) for plural in KINDS]
    gadget = pairs[-1].on_host()["metadata"]["name"]
    host.api.patch(f"{TEAM}/namespaces/{vc.namespace}/gadgets/{gadget}/status",
                   {"status": {"phase": "Ready", "detail": "pruned in the tenant"}})
    for pair in pairs:
        pair.write_on_host(host, {"zone.example/name": "z1", "zone.example/own": "host", "hidden": "x"},
                           {"lb.example/address": "192.0.2.1", "lb.example/own": "host", "hidden": "x",
                            "both.example/a": "host", "lb.example/long": "v" * 5000})
    for pair in pairs:
        pair.shows({"zone.example/name": "z1"}, {"lb.example/address": "192.0.2.1", "both.example/a": "host"})

    # None of it is a host's key of ours, so the host can change it and take it away.
    for pair in pairs:
        meta = pair.on_host()["metadata"]
        assert "zone.example/name" not in meta["annotations"].get("sublet.dev/owned", "")
        assert "both.example/a" not in meta["annotations"].get("sublet.dev/owned", "")
        assert RECORD not in meta["annotations"] and meta["labels"]["zone.example/own"] == "host"
        pair.write_on_host(host, {"zone.example/name": "z2"}, {"both.example/a": "host:2", "lb.example/address": None})
    for pair in pairs:
        pair.shows({"zone.example/name": "z2"}, {"both.example/a": "host:2"})

    # The tenant's edit makes a key the tenant's; what the tenant removes comes up again.
    for pair in pairs:
        vc.api.patch(f"{pair.path}/x", {"metadata": {"labels": {"zone.example/name": None},
                                                     "annotations": {"both.example/a": "mine"}}})
    for pair in pairs:
        pair.shows({"zone.example/name": "z2"}, {"both.example/a": "mine"})
        eventually(lambda p=pair: p.on_host()["metadata"]["annotations"]["both.example/a"] == "mine", 60, "it to go down")
        vc.api.patch(f"{pair.path}/x", {"metadata": {"annotations": {"both.example/a": None}}})
    for pair in pairs:
        eventually(lambda p=pair: "both.example/a" not in p.on_host()["metadata"]["annotations"], 60, "it to go")
        pair.shows({"zone.example/name": "z2"}, {})

    # No longer configured.
    vc.stop()
    vc.write_config({"policy": {"labels": {"fromHost": None}, "annotations": {"fromHost": None}}})
    vc.start()
    for pair in pairs:
        pair.shows({}, {})
        assert pair.on_host()["metadata"]["labels"]["zone.example/name"] == "z2"
