# SPDX-License-Identifier: Apache-2.0
"""`sync.fromHost`: objects of a real host that an admin shows to a tenant, read-only."""
import base64
import copy
import json
import secrets

import pytest

from testenv import eventually, never
from testenv.api import ApiError

from test_crd import crd
from test_tenant import host_pod, pod, running

MARK = "sublet.dev/from-host"
SHOW = {"matchLabels": {"show": "yes"}}


def classes(*keys):
    return {"sync": {"fromHost": {k: {"enabled": True, "selector": SHOW} for k in keys}}}


class Kind:
    """One cluster-scoped kind: an object, a change, and what of it a tenant must see."""

    def __init__(self, key, path, api_version, kind, body, seen, change, changed, recreate=False):
        self.key, self.path, self.api_version, self.kind = key, path, api_version, kind
        self.body, self.seen, self.change, self.changed = body, seen, change, changed
        self.recreate = recreate  # the change is not possible in place

    def object(self, name, show="yes"):
        return {"apiVersion": self.api_version, "kind": self.kind,
                "metadata": {"name": name, "labels": {"show": show}, "finalizers": [],
                             "annotations": {"hidden.example/rack": "r17"}}, **copy.deepcopy(self.body)}


STORAGE = "/apis/storage.k8s.io/v1"
KINDS = [
    Kind("ingressClasses", "/apis/networking.k8s.io/v1/ingressclasses", "networking.k8s.io/v1", "IngressClass",
         {"spec": {"controller": "example.com/a", "parameters": {"kind": "Secretive", "name": "SECRET-VALUE"}}},
         {"spec": {"controller": "example.com/a"}},
         {"spec": {"controller": "example.com/b"}}, {"spec": {"controller": "example.com/b"}}, recreate=True),
    Kind("runtimeClasses", "/apis/node.k8s.io/v1/runtimeclasses", "node.k8s.io/v1", "RuntimeClass",
         {"handler": "secret-value", "overhead": {"podFixed": {"cpu": "250m"}},
          "scheduling": {"nodeSelector": {"rack": "SECRET-VALUE"}}},
         {"handler": "{name}"}, {"overhead": None}, {"handler": "{name}"}),
    Kind("priorityClasses", "/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass",
         {"value": 700, "description": "SECRET-VALUE"}, {"value": 700, "preemptionPolicy": "PreemptLowerPriority"},
         {"value": 800}, {"value": 800}, recreate=True),
    Kind("storageClasses", f"{STORAGE}/storageclasses", "storage.k8s.io/v1", "StorageClass",
         {"provisioner": "example.com/disks", "parameters": {"secret-name": "SECRET-VALUE"}, "mountOptions": ["ro"],
          "allowVolumeExpansion": True},
         {"provisioner": "example.com/disks", "allowVolumeExpansion": True},
         {"allowVolumeExpansion": False}, {"allowVolumeExpansion": False}),
    Kind("deviceClasses", "/apis/resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1", "DeviceClass",
         {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'SECRET-VALUE'"}}],
                   "config": [{"opaque": {"driver": "d.example.com", "parameters": {"k": "SECRET-VALUE"}}}]}},
         {}, {"metadata": {"labels": {"show": "yes", "more": "x"}}}, {}),
    Kind("csiDrivers", f"{STORAGE}/csidrivers", "storage.k8s.io/v1", "CSIDriver",
         {"spec": {"attachRequired": False, "podInfoOnMount": True, "tokenRequests": [{"audience": "SECRET-VALUE"}]}},
         {"spec.attachRequired": False, "spec.podInfoOnMount": True},
         {"spec": {"podInfoOnMount": False}}, {"spec.podInfoOnMount": False}),
]


def seen(o, name, wanted):
    for path, value in wanted.items():
        at = o
        for part in path.split("."):
            at = at.get(part)
        if isinstance(value, str):
            value = value.replace("{name}", name)
        if at != value:
            return False
    return True


@pytest.fixture
def made(host):
    """made(path, object) creates it on the host, and removes it at the end."""
    paths = []

    def make(path, body):
        paths.append(f"{path}/{body['metadata']['name']}")
        return host.api.post(path, body)

    yield make
    for path in paths:
        host.api.raw("DELETE", path)


def find(api, path):
    try:
        return api.get(path)
    except ApiError as e:
        if e.code != 404:
            raise
        return None


def gone(vc, path):
    eventually(lambda: find(vc.api, path) is None, 30, f"{path} to go")


def shown(vc, path):
    return eventually(lambda: find(vc.api, path), 30, f"{path} to be shown")


def events(vc, reason):
    return [e for e in vc.kubectl.items("events", "-A") if e["reason"] == reason]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.key)
def test_classes(host, tenant, made, kind):
    tag = "t" + secrets.token_hex(3)
    mine, other, taken = f"mine-{tag}", f"other-{tag}", f"taken-{tag}"
    vc = tenant("classes", config=classes(kind.key))
    path = f"{kind.path}/{mine}"

    # a tenant's own object is there before the host's
    own = kind.object(taken, "own")
    vc.api.post(kind.path, own)
    made(kind.path, kind.object(taken))

    # shown, cut, marked; what the selector does not pick is not
    made(kind.path, kind.object(mine))
    made(kind.path, kind.object(other, "no"))
    now = shown(vc, path)
    assert seen(now, mine, kind.seen), now
    assert now["metadata"]["annotations"] == {MARK: "sync"}
    for absent in ("labels", "ownerReferences", "finalizers"):
        assert absent not in now["metadata"]
    assert "secret-value" not in json.dumps(now).lower() and "r17" not in json.dumps(now)
    assert now["metadata"]["uid"] != host.api.get(path)["metadata"]["uid"]

    # changed on the host
    if kind.recreate:
        host.api.delete(path)
        host.api.post(kind.path, {**kind.object(mine), **kind.change})
    else:
        host.api.patch(path, kind.change)
    eventually(lambda: seen(vc.api.get(path), mine, kind.changed), 30, "the change", also=(404,))

    # the tenant's edits are put right, and a deletion
    vc.api.patch(path, {"metadata": {"labels": {"x": "y"}, "annotations": {MARK: None, "mine": "1"}}})
    eventually(lambda: vc.api.get(path)["metadata"]["annotations"] == {MARK: "sync"}
               and "labels" not in vc.api.get(path)["metadata"], 30, "the edit to be put right")
    vc.api.delete(path)
    shown(vc, path)

    # leaves the selector, and comes back
    host.api.patch(path, {"metadata": {"labels": {"show": "no"}}})
    gone(vc, path)
    host.api.patch(path, {"metadata": {"labels": {"show": "yes"}}})
    shown(vc, path)

    # a restart in between: what left meanwhile goes, what came meanwhile is shown
    vc.stop()
    host.api.delete(path)
    late = f"late-{tag}"
    made(kind.path, kind.object(late))
    vc.start()
    gone(vc, path)
    shown(vc, f"{kind.path}/{late}")

    # the tenant's own is as it was
    assert vc.api.get(f"{kind.path}/{taken}")["metadata"]["labels"] == {"show": "own"}
    assert "of this name, which is not shown" in events(vc, "NotShown")[0]["message"]
    assert find(vc.api, f"{kind.path}/{other}") is None
    vc.api.delete(f"{kind.path}/{taken}")
    eventually(lambda: vc.api.get(f"{kind.path}/{taken}")["metadata"]["annotations"][MARK] == "sync", 30,
               "the host's, once the name is free", also=(404,))

    # disabled: what was shown goes, and nothing else
    vc.stop()
    vc.write_config({"sync": {"fromHost": {kind.key: {"enabled": False}}}})
    keep = {**kind.object(f"keep-{tag}"), "metadata": {"name": f"keep-{tag}", "annotations": {MARK: "sync"}}}
    vc.start()
    vc.api.post(kind.path, keep)
    gone(vc, f"{kind.path}/{late}")
    vc.restart()
    assert find(vc.api, f"{kind.path}/keep-{tag}")


def test_nothing_is_deleted_because_the_host_is_away(host, tenant, made):
    tag = "t" + secrets.token_hex(3)
    kind = KINDS[0]
    vc = tenant("away", config=classes(kind.key))
    made(kind.path, kind.object(f"a-{tag}"))
    shown(vc, f"{kind.path}/a-{tag}")
    host.stop_component("kube-apiserver")
    try:
        vc.restart()
        never(lambda: find(vc.api, f"{kind.path}/a-{tag}") is None, 2, "the class to go")
    finally:
        host.start_component("kube-apiserver")
    host.wait_ready("kube-apiserver")
    made(kind.path, kind.object(f"b-{tag}"))
    shown(vc, f"{kind.path}/b-{tag}")
    assert find(vc.api, f"{kind.path}/a-{tag}")


def test_pods_name_only_what_is_shown(host, tenant, made):
    tag = "t" + secrets.token_hex(3)
    runtime, priority = KINDS[1], KINDS[2]
    vc = tenant("pods", config=classes("runtimeClasses", "priorityClasses"))
    for kind in (runtime, priority):
        body = kind.object(f"shown-{tag}")
        body.pop("overhead", None), body.pop("scheduling", None)
        made(kind.path, body)
        made(kind.path, {**body, "metadata": {"name": f"hidden-{tag}"}})
        shown(vc, f"{kind.path}/shown-{tag}")
    for kind in (runtime, priority):  # the tenant may have a class of that name; it says nothing about the host's
        body = kind.object(f"hidden-{tag}")
        body["metadata"] = {"name": f"hidden-{tag}", "annotations": {MARK: "sync"}}
        body.pop("overhead", None), body.pop("scheduling", None)
        vc.api.post(kind.path, body)
    good = pod("good")
    good["spec"].update(runtimeClassName=f"shown-{tag}", priorityClassName=f"shown-{tag}")
    vc.kubectl.apply(good)
    running(vc.kubectl, "good")
    on_host = host_pod(vc, "good")["spec"]
    assert on_host["runtimeClassName"] == f"shown-{tag}"
    assert on_host["priorityClassName"] == f"shown-{tag}" and on_host["priority"] == 700
    for field in ("runtimeClassName", "priorityClassName"):
        bad = pod("bad")
        bad["spec"][field] = f"hidden-{tag}"
        with pytest.raises(ApiError) as e:
            vc.api.post("/api/v1/namespaces/default/pods", bad)
        assert e.value.code == 403
        assert f'spec.{field}: "hidden-{tag}" is not offered to this virtual cluster' in str(e.value)


def test_claims_and_ingresses_name_only_what_is_shown(host, tenant, made):
    tag = "t" + secrets.token_hex(3)
    ingress_class, storage = KINDS[0], KINDS[3]
    vc = tenant("claims", config=classes("ingressClasses", "storageClasses"))
    for kind in (ingress_class, storage):
        made(kind.path, kind.object(f"shown-{tag}"))
        made(kind.path, kind.object(f"hidden-{tag}", "no"))
        shown(vc, f"{kind.path}/shown-{tag}")

    def claim(name, cls):
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
                "spec": {"storageClassName": cls, "accessModes": ["ReadWriteOnce"],
                         "resources": {"requests": {"storage": "1Gi"}}}}

    def ingress(name, cls):
        return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name},
                "spec": {"ingressClassName": cls, "defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}}}

    claims, ingresses = "/api/v1/namespaces/default/persistentvolumeclaims", \
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
    vc.api.post(claims, claim("good", f"shown-{tag}"))
    vc.api.post(ingresses, ingress("good", f"shown-{tag}"))
    for path, body, field in ((claims, claim("bad", f"hidden-{tag}"), "spec.storageClassName"),
                              (ingresses, ingress("bad", f"hidden-{tag}"), "spec.ingressClassName")):
        with pytest.raises(ApiError) as e:
            vc.api.post(path, body)
        assert e.value.code == 403 and f'{field}: "hidden-{tag}" is not offered' in str(e.value)
    legacy = ingress("old", None)
    del legacy["spec"]["ingressClassName"]
    legacy["metadata"]["annotations"] = {"kubernetes.io/ingress.class": f"hidden-{tag}"}
    with pytest.raises(ApiError) as e:
        vc.api.post(ingresses, legacy)
    assert e.value.code == 403


def config_map(name, ns=None, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, kind="Opaque", labels=None, **data):
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": name, "labels": labels or {}},
            "data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}}


def test_config_maps_and_secrets(host, tenant):
    tag = "t" + secrets.token_hex(3)
    source = f"source-{tag}"
    host.create_namespace(source)
    maps = {"enabled": True, "mappings": {"byName": {
        f"{source}/ca": "default/root-ca", f"{source}/*": "shared/*", "/own": "default/from-own"}}}
    vc = tenant("data", config={"sync": {"fromHost": {"configMaps": maps, "secrets": maps}}})
    hosts = f"/api/v1/namespaces/{source}"
    try:
        for plural, make in (("configmaps", config_map), ("secrets", secret)):
            def data(path, plural=plural):
                o = find(vc.api, path)
                return o and {k: v if plural == "configmaps" else base64.b64decode(v).decode()
                              for k, v in o["data"].items()}

            host.api.post(f"{hosts}/{plural}", make("ca", a="1"))
            host.api.post(f"{hosts}/{plural}", make("other", a="2"))
            host.api.post(f"/api/v1/namespaces/{vc.namespace}/{plural}", make("own", a="3"))
            host.api.post(f"/api/v1/namespaces/{vc.namespace}/{plural}", make("unmapped", a="4"))
            root, other = f"/api/v1/namespaces/default/{plural}/root-ca", f"/api/v1/namespaces/shared/{plural}/other"
            eventually(lambda: data(root) == {"a": "1"}, 30, "the one that is named")
            eventually(lambda: data(other) == {"a": "2"}, 30, "all of a namespace")
            eventually(lambda: data(f"/api/v1/namespaces/default/{plural}/from-own") == {"a": "3"}, 30, "our own")
            eventually(lambda: data(f"/api/v1/namespaces/shared/{plural}/ca") == {"a": "1"}, 30, "both targets")
            assert not [n for n in vc.kubectl.names(plural, "-A") if "unmapped" in n]

            host.api.patch(f"{hosts}/{plural}/ca", {"data": make("ca", a="x", b="y")["data"]})
            eventually(lambda: data(root) == {"a": "x", "b": "y"}, 30, "the change")
            vc.api.patch(root, {"data": {"a": None, "c": "ZA=="}})
            eventually(lambda: data(root) == {"a": "x", "b": "y"}, 30, "the edit to be put right")
            host.api.delete(f"{hosts}/{plural}/other")
            gone(vc, other)

        # what is of no type that may be shown, or belongs to a virtual cluster
        host.api.post(f"{hosts}/secrets", secret("release", "helm.sh/release.v1", release="x"))
        host.api.post(f"{hosts}/secrets", secret("neighbour", labels={"sublet.dev/cluster": "another"}, k="x"))
        host.api.post(f"{hosts}/secrets", secret("kubeconfig", labels={"app.kubernetes.io/managed-by": "sublet"}, k="x"))
        host.api.post(f"{hosts}/secrets", secret("last", k="x"))
        shown(vc, "/api/v1/namespaces/shared/secrets/last")
        names = [o["metadata"]["name"] for o in vc.api.get("/api/v1/namespaces/shared/secrets")["items"]]
        assert sorted(names) == ["ca", "last"]
        assert [o["metadata"]["name"] for o in vc.api.get("/api/v1/namespaces/shared/configmaps")["items"]
                if MARK in o["metadata"].get("annotations", {})] == ["ca"]

        # a pod uses it, as its own
        use = pod("uses")
        use["metadata"]["namespace"] = "shared"
        use["spec"]["volumes"] = [{"name": "v", "secret": {"secretName": "last"}}]
        eventually(lambda: find(vc.api, "/api/v1/namespaces/shared/serviceaccounts/default"), 30, "the account")
        vc.kubectl.apply(use)
        eventually(lambda: vc.kubectl.json("get", "pod", "-n", "shared", "uses")["status"]["phase"] == "Running", 60,
                   "the pod")
    finally:
        host.delete_namespace(source)


def service(name, labels=None, **spec):
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {
        "selector": {"app": name}, "ports": [{"name": "sql", "port": 5432, "targetPort": "pg"}], **spec}}


def host_services(vc):
    return [s["metadata"]["name"] for s in vc.host_objects("/api/v1", "services")]


def test_services(host, tenant):
    """A Service of the host under a name in the virtual cluster, with its address there, and without one on the host."""
    tag = "t" + secrets.token_hex(3)
    source = f"source-{tag}"
    host.create_namespace(source)
    hosts = f"/api/v1/namespaces/{source}/services"
    own, base = "/api/v1/namespaces/default/services", "/api/v1/namespaces/shared/services"
    vc = tenant("services", config={"sync": {"fromHost": {"services": {"enabled": True, "mappings": {"byName": {
        f"{source}/db": "default/database", f"{source}/*": "shared/*"}}}}}})

    def address(path):
        return (find(vc.api, path) or {"spec": {}})["spec"].get("clusterIP")

    try:
        ip = host.api.post(hosts, service("db", type="NodePort"))["spec"]["clusterIP"]
        eventually(lambda: address(f"{own}/database") == ip, 30, "the one that is named")
        spec = find(vc.api, f"{own}/database")["spec"]
        assert spec["type"] == "ClusterIP" and "selector" not in spec
        assert spec["ports"] == [{"name": "sql", "protocol": "TCP", "port": 5432, "targetPort": 5432}]

        # What is of a virtual cluster, or has no address, is not shown; the last one is.
        host.api.post(hosts, service("neighbours", labels={"sublet.dev/cluster": "another"}))
        host.api.post(hosts, service("headless", clusterIP="None"))
        host.api.post(hosts, {"metadata": {"name": "named"}, "spec": {"type": "ExternalName", "externalName": "x.example"}})
        host.api.post(hosts, service("last"))
        shown(vc, f"{base}/last")
        shown(vc, f"{base}/db")
        assert sorted(o["metadata"]["name"] for o in vc.api.get(base)["items"]) == ["db", "last"]

        # Changes on both sides, a restart between them.
        host.api.patch(f"{hosts}/db", {"spec": {"ports": [{"name": "sql", "port": 5433}]}})
        eventually(lambda: find(vc.api, f"{own}/database")["spec"]["ports"][0]["port"] == 5433, 30, "the change")
        vc.api.patch(f"{own}/database", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 1}]}, "metadata": {"annotations": None}})
        eventually(lambda: find(vc.api, f"{own}/database")["spec"]["ports"][0]["port"] == 5433, 30, "the edit to be put right")
        vc.restart(kill=True)
        vc.api.delete(f"{own}/database")
        eventually(lambda: address(f"{own}/database") == ip, 30, "it again")
        vc.stop()
        host.api.delete(f"{hosts}/db")
        other = host.api.post(hosts, service("db"))["spec"]["clusterIP"]
        vc.start()
        eventually(lambda: address(f"{own}/database") == other, 60, "the other address")
        assert not host_services(vc)

        # A Service of the tenant's own is left alone, and goes down as any.
        mine = vc.api.post(own, service("mine"))
        assert len(host_services(vc)) == 1 and mine["spec"]["clusterIP"]
        vc.api.post(base, service("wanted"))
        host.api.post(hosts, service("wanted"))
        events = "/api/v1/namespaces/shared/events"
        eventually(lambda: any(e["reason"] == "NotShown" for e in vc.api.get(events)["items"]), 60, "an Event")
        assert find(vc.api, f"{base}/wanted")["spec"]["selector"] == {"app": "wanted"}
        assert len(host_services(vc)) == 2

        # Its mark alone does not make a Service one of the host's.
        vc.api.patch(f"{own}/mine", {"metadata": {"annotations": {MARK: "sync"}}})
        never(lambda: len(host_services(vc)) != 2, 2, "a Service that left the host")

        # No longer configured: it leaves, and never goes down.
        vc.stop()
        vc.write_config({"sync": {"fromHost": None}})
        vc.start()
        gone(vc, f"{own}/database")
        gone(vc, f"{base}/last")
        assert len(host_services(vc)) == 2
        assert host.api.get(f"{hosts}/db")["spec"]["clusterIP"] == other
    finally:
        host.delete_namespace(source)


SLICES = "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices"
SERVICE_NAME = "kubernetes.io/service-name"


def host_slice(name, of, *addresses, kind="IPv4", port=15432, labels=None, **conditions):
    """An EndpointSlice of the host that names what a tenant is not to see."""
    return {"metadata": {"name": name, "labels": {SERVICE_NAME: of, **(labels or {})}}, "addressType": kind,
            "ports": [{"name": "sql", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [a], "conditions": conditions or {"ready": True}, "hostname": f"secret-{i}",
                           "nodeName": "secret-node", "zone": "secret-zone", "hints": {"forZones": [{"name": "secret-zone"}]},
                           "targetRef": {"kind": "Pod", "name": "secret-pod", "namespace": "secret"}}
                          for i, a in enumerate(addresses)]}


def test_headless_services(host, tenant):
    """Without an address of its own: the addresses are those of the host's EndpointSlices, which follow them."""
    source = "source-t" + secrets.token_hex(3)
    host.create_namespace(source)
    hosts, slices = f"/api/v1/namespaces/{source}/services", SLICES % source
    services, own, base = "/api/v1/namespaces/%s/services", SLICES % "default", SLICES % "shared"
    show = {"enabled": True, "headless": True, "mappings": {"byName": {
        f"{source}/db": "default/database", f"{source}/*": "shared/*"}}}
    vc = tenant("headless", config={"sync": {"fromHost": {"services": show}, "toHost": {
        "endpointSlices": {"enabled": True, "allowedCIDRs": ["10.0.0.0/8"]}}}})

    def copies(path):
        """{addresses: slice} of what is shown there; kubernetes' own is none."""
        return {",".join(sorted(a for e in s["endpoints"] for a in e["addresses"])): s for s in vc.api.get(path)["items"]
                if MARK in s["metadata"].get("annotations", {})}

    def become(path, *wanted):
        eventually(lambda: sorted(copies(path)) == sorted(wanted), 60, f"{wanted}", also=[404])

    try:
        host.api.post(hosts, {"metadata": {"name": "db"}, "spec": {"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]}})
        host.api.post(hosts, {"metadata": {"name": "plain"}, "spec": {"ports": [{"port": 80}]}})
        host.api.post(slices, host_slice("db-a", "db", "10.1.2.3", "10.1.2.4"))
        host.api.post(slices, host_slice("db-b", "db", "10.1.2.5", port=25432, ready=False, serving=True, terminating=True))
        host.api.post(slices, host_slice("db-c", "db", "db.example", kind="FQDN"))
        host.api.post(slices, host_slice("db-d", "db", "10.9.9.9", labels={"sublet.dev/cluster": "another"}))
        host.api.post(slices, host_slice("plain-a", "plain", "10.9.9.8"))
        host.api.post(slices, host_slice("none-a", "none", "10.9.9.7"))
        become(own, "10.1.2.3,10.1.2.4", "10.1.2.5")
        become(base, "10.1.2.3,10.1.2.4", "10.1.2.5")
        assert find(vc.api, services % "default" + "/database")["spec"]["clusterIP"] == "None"
        assert {s["metadata"]["name"] for s in copies(base).values()} == {"db-a", "db-b"}
        for s in copies(own).values():
            name, labels = s["metadata"]["name"], s["metadata"]["labels"]
            assert name.startswith("database-") and len(name) == len("database-") + 16
            assert labels == {SERVICE_NAME: "database", "endpointslice.kubernetes.io/managed-by": "sublet.dev"}
            assert "secret" not in json.dumps(s) and source not in json.dumps(s)
        second = copies(own)["10.1.2.5"]
        assert second["ports"] == [{"name": "sql", "protocol": "TCP", "port": 25432}]
        assert second["endpoints"][0]["conditions"] == {"ready": False, "serving": True, "terminating": True}
        versions = {s["metadata"]["uid"]: s["metadata"]["resourceVersion"] for s in copies(own).values()}

        # Changes on both sides; a crash between them.
        host.api.patch(f"{slices}/db-a", {"endpoints": [{"addresses": ["10.1.2.9"]}]})
        become(own, "10.1.2.9", "10.1.2.5")
        second = copies(own)["10.1.2.5"]
        assert versions[second["metadata"]["uid"]] == second["metadata"]["resourceVersion"]  # what is right is not written
        path = f"{own}/{second['metadata']['name']}"
        vc.api.patch(path, {"endpoints": [{"addresses": ["10.6.6.6"]}], "metadata": {"labels": {SERVICE_NAME: "mine", "x": "y"}}})
        become(own, "10.1.2.9", "10.1.2.5")
        eventually(lambda: "x" not in find(vc.api, path)["metadata"]["labels"], 30, "its labels")
        vc.restart(kill=True)
        vc.api.delete(path)
        become(own, "10.1.2.9", "10.1.2.5")
        vc.stop()
        host.api.delete(f"{slices}/db-a")
        host.api.post(slices, host_slice("db-e", "db"))
        vc.start()
        become(own, "", "10.1.2.5")
        empty = copies(own)[""]
        host.api.patch(f"{slices}/db-b", {"endpoints": [{"addresses": ["10.1.2.6"]}]})
        become(own, "", "10.1.2.6")
        assert copies(own)[""]["metadata"]["resourceVersion"] == empty["metadata"]["resourceVersion"]
        assert not vc.host_objects("/apis/discovery.k8s.io/v1", "endpointslices")

        # A Service that has an address now shows that; one that is deleted in the virtual cluster comes back with its slices.
        vc.api.delete(services % "default" + "/database")
        eventually(lambda: find(vc.api, services % "default" + "/database"), 30, "the Service again")
        become(own, "", "10.1.2.6")
        host.api.delete(f"{hosts}/db")
        ip = host.api.post(hosts, {"metadata": {"name": "db"}, "spec": {"ports": [{"port": 5432}]}})["spec"]["clusterIP"]
        eventually(lambda: (find(vc.api, services % "default" + "/database") or {"spec": {}})["spec"].get("clusterIP") == ip, 60,
                   "the address")
        become(own)
        become(base)
        host.api.delete(f"{hosts}/db")
        gone(vc, services % "default" + "/database")
        host.api.post(hosts, {"metadata": {"name": "db"}, "spec": {"clusterIP": "None"}})
        become(own, "", "10.1.2.6")

        # A slice of the tenant's own is left alone.
        mine = vc.api.post(base, {"metadata": {"name": "db-f", "labels": {SERVICE_NAME: "db"}}, "addressType": "IPv4",
                                  "endpoints": [{"addresses": ["10.7.7.7"]}]})
        host.api.post(slices, host_slice("db-f", "db", "10.1.2.7"))
        become(own, "", "10.1.2.6", "10.1.2.7")
        become(base, "", "10.1.2.6")
        assert find(vc.api, f"{base}/db-f")["metadata"]["uid"] == mine["metadata"]["uid"]

        # No longer configured: they leave, and the tenant's own stays.
        vc.stop()
        vc.write_config({"sync": {"fromHost": {"services": {**show, "headless": False}}}})
        vc.start()
        gone(vc, services % "default" + "/database")
        become(own)
        become(base)
        assert find(vc.api, f"{base}/db-f")
        assert len(host.api.get(slices)["items"]) == 7
    finally:
        host.delete_namespace(source)


def test_custom_resources(host, tenant):
    tag = "t" + secrets.token_hex(3)
    group, source = f"g{tag}.example.com", f"source-{tag}"
    host.create_namespace(source)
    definition = crd(group=group)
    host.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    path = f"/apis/{group}/v1/namespaces/%s/crontabs"
    body = {"apiVersion": f"{group}/v1", "kind": "CronTab", "metadata": {"name": "c"},
            "spec": {"cronSpec": "* * * * *"}}
    vc = tenant("custom", config={"sync": {"fromHost": {"customResources": {
        f"crontabs.{group}": {"enabled": True, "scope": "Namespaced",
                              "mappings": {"byName": {f"{source}/*": "jobs/*"}}}}}}})
    try:
        eventually(lambda: host.api.post(path % source, body), 60, "the definition on the host", also=(404,))
        vc.kubectl.apply(definition)  # later than the objects
        copied = shown(vc, path % "jobs" + "/c")
        assert copied["spec"] == {"cronSpec": "* * * * *", "replicas": 1}
        host.api.patch(path % source + "/c", {"spec": {"replicas": 3}})
        eventually(lambda: vc.api.get(path % "jobs" + "/c")["spec"]["replicas"] == 3, 30, "the change")
        vc.api.patch(path % "jobs" + "/c", {"spec": {"replicas": 9}})
        eventually(lambda: vc.api.get(path % "jobs" + "/c")["spec"]["replicas"] == 3, 30, "the edit to be put right")
        host.api.delete(path % source + "/c")
        gone(vc, path % "jobs" + "/c")
    finally:
        host.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.{group}")
        host.delete_namespace(source)


def test_patches_of_custom_resources(host, tenant):
    tag = "t" + secrets.token_hex(3)
    group, source = f"g{tag}.example.com", f"source-{tag}"
    host.create_namespace(source)
    definition = crd(group=group)
    path = f"/apis/{group}/v1/namespaces/%s/crontabs"
    shows = {"enabled": True, "scope": "Namespaced", "mappings": {"byName": {f"{source}/*": "jobs/*"}}}

    def config(*patches):
        return {"sync": {"fromHost": {"customResources": {f"crontabs.{group}": {**shows, "patches": list(patches)}}}}}

    host.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    vc = tenant("patched", config=config({"path": "spec.cronSpec", "value": "0 0 1 1 1"},
                                         {"path": "spec.image", "drop": True}))
    try:
        eventually(lambda: host.api.post(path % source, {
            "apiVersion": f"{group}/v1", "kind": "CronTab", "metadata": {"name": "c"},
            "spec": {"cronSpec": "* * * * *", "image": "registry.internal/SECRET"}}), 60, "the definition", also=(404,))
        vc.kubectl.apply(definition)
        assert shown(vc, path % "jobs" + "/c")["spec"] == {"cronSpec": "0 0 1 1 1", "replicas": 1}
        host.api.patch(path % source + "/c", {"spec": {"replicas": 3, "image": "registry.internal/SECRET:2"}})
        eventually(lambda: vc.api.get(path % "jobs" + "/c")["spec"] == {"cronSpec": "0 0 1 1 1", "replicas": 3}, 30,
                   "the change")
        vc.api.patch(path % "jobs" + "/c", {"spec": {"image": "mine"}})
        eventually(lambda: "image" not in vc.api.get(path % "jobs" + "/c")["spec"], 30, "the edit to be put right")

        # Another configuration changes the copy that exists.
        vc.stop()
        vc.write_config(config({"path": "spec.image", "value": "hidden"}))
        vc.start()
        eventually(lambda: vc.api.get(path % "jobs" + "/c")["spec"]
                   == {"cronSpec": "* * * * *", "replicas": 3, "image": "hidden"}, 30, "the other patches")
        assert host.api.get(path % source + "/c")["spec"]["image"] == "registry.internal/SECRET:2"
    finally:
        host.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.{group}")
        host.delete_namespace(source)


def test_a_default_in_place_of_a_dropped_field(host, tenant):
    """It makes the copy another than is wanted for ever; its status follows all the same."""
    tag = "t" + secrets.token_hex(3)
    group, source = f"g{tag}.example.com", f"source-{tag}"
    host.create_namespace(source)
    definition = crd(group=group)
    path = f"/apis/{group}/v1/namespaces/%s/crontabs"
    vc = tenant("defaults", config={"sync": {"fromHost": {"customResources": {f"crontabs.{group}": {
        "enabled": True, "scope": "Namespaced", "mappings": {"byName": {f"{source}/*": "jobs/*"}},
        "patches": [{"path": "spec.replicas", "drop": True}]}}}}})

    def status(n):
        host.api.patch(path % source + "/c/status", {"status": {"replicas": n}})
        eventually(lambda: vc.api.get(path % "jobs" + "/c").get("status") == {"replicas": n}, 30, "the status", also=(404,))

    host.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    try:
        eventually(lambda: host.api.post(path % source, {
            "apiVersion": f"{group}/v1", "kind": "CronTab", "metadata": {"name": "c"},
            "spec": {"cronSpec": "* * * * *", "replicas": 7}}), 60, "the definition", also=(404,))
        vc.kubectl.apply(definition)
        assert shown(vc, path % "jobs" + "/c")["spec"] == {"cronSpec": "* * * * *", "replicas": 1}
        status(1)
        status(2)
    finally:
        host.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.{group}")
        host.delete_namespace(source)


def test_csi_nodes_and_capacities(host, tenant):
    tag = "t" + secrets.token_hex(3)
    driver, zone = f"csi-{tag}.example.com", "topology.kubernetes.io/zone"
    place = f"topology.{driver}/place"
    vc = tenant("csi", config={"sync": {"fromHost": {
        "csiNodes": {"enabled": True}, "storageClasses": {"enabled": True},
        "csiStorageCapacities": {"enabled": True, "topologyKeys": [place]}}}})
    made = []

    def post(path, body):
        made.append(f"{path}/{body['metadata']['name']}")
        host.api.post(path, body)

    def node(name):
        return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
                "spec": {"drivers": [{"name": driver, "nodeID": "i-SECRET", "topologyKeys": [zone]}]}}

    def capacity(name, labels, cls):
        return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
                "metadata": {"name": name, "namespace": "kube-public"}, "storageClassName": cls, "capacity": "5Gi",
                "nodeTopology": {"matchLabels": labels}}

    try:
        existing = find(host.api, f"{STORAGE}/csinodes/cpu-1")
        for name in ("cpu-1", "gpu-a100-1"):
            if find(host.api, f"{STORAGE}/csinodes/{name}"):
                host.api.delete(f"{STORAGE}/csinodes/{name}")
            post(f"{STORAGE}/csinodes", node(name))
        cls = f"disks-{tag}"
        post(f"{STORAGE}/storageclasses", {**KINDS[3].object(cls)})
        capacities = f"{STORAGE}/namespaces/kube-public/csistoragecapacities"
        post(capacities, capacity(f"zone-{tag}", {zone: "z1"}, cls))
        post(capacities, capacity(f"node-{tag}", {"kubernetes.io/hostname": "gpu-a100-1"}, cls))
        post(capacities, capacity(f"place-{tag}", {place: "p1"}, cls))
        post(capacities, capacity(f"rack-{tag}", {"rack": "SECRET"}, cls))
        spec = shown(vc, f"{STORAGE}/csinodes/cpu-1")["spec"]
        assert spec["drivers"] == [{"name": driver, "nodeID": "cpu-1", "topologyKeys": [zone]}]
        there = f"{STORAGE}/namespaces/kube-system/csistoragecapacities"
        assert shown(vc, f"{there}/zone-{tag}")["capacity"] == "5Gi"
        shown(vc, f"{there}/place-{tag}")
        names = [o["metadata"]["name"] for o in vc.api.get(there)["items"]]
        assert names == [f"place-{tag}", f"zone-{tag}"]
        assert [o["metadata"]["name"] for o in vc.api.get(f"{STORAGE}/csinodes")["items"]
                if "gpu" in o["metadata"]["name"]] == []
        host.api.patch(f"{capacities}/zone-{tag}", {"capacity": "4Gi"})
        eventually(lambda: vc.api.get(f"{there}/zone-{tag}")["capacity"] == "4Gi", 30, "the change")
        host.api.delete(f"{capacities}/zone-{tag}")
        gone(vc, f"{there}/zone-{tag}")
        assert existing is None or existing
    finally:
        for path in made:
            host.api.raw("DELETE", path)


def test_a_host_without_the_kind_is_reported(host, tenant):
    vc = tenant("absent", config={"sync": {"fromHost": {"customResources": {
        "nothing.nowhere.example": {"enabled": True, "scope": "Cluster"}}}}})
    definition = crd(group="nowhere.example", plural="nothing", kind="Nothing", scope="Cluster")
    vc.kubectl.apply(definition)
    eventually(lambda: "nothing.nowhere.example" in vc.api.raw("GET", "/readyz/warnings")[2].decode(), 30,
               "the notice")
