# SPDX-License-Identifier: Apache-2.0
"""Built-in admission beside the real thing: what quotas, limit ranges, priorities, default classes and the like make of
an object or refuse. Both servers run without controllers, so a quota's status is written by hand, as its controller
would."""
import itertools
import os
import threading

import pytest

from alike import alike, namespace
from differential.servers import prepare, start_pair
from testenv import eventually
from testenv.api import ApiError


@pytest.fixture(scope="module")
def pair(workdir):
    here, there = start_pair(os.path.join(workdir, "admission"))
    for api in (here.api, there.api):
        prepare(api, "admission")
    yield here.api, there.api
    try:
        here.close()
    finally:
        there.stop()


def make(pair, path, *objects):
    for api in pair:
        for o in objects:
            api.post(path, o)


def meta(name, **over):
    return {"metadata": {"name": name, **over}}


def pod(name, resources=None, **spec):
    c = {"name": "c", "image": "i", **({"resources": resources} if resources else {})}
    return {**meta(name), "spec": {"containers": [c], **spec}}


# ---- ResourceQuota ----

MARK = "/api/v1/namespaces/q-mark/resourcequotas"
LEASES = "count/leases.coordination.k8s.io"
marks = itertools.count(1)


@pytest.fixture(scope="module")
def marked(pair):
    """A quota of its own, which shows whether a kube-apiserver's cache of quotas is current."""
    namespace(pair, "q-mark")
    pair[1].post(MARK, {**meta("mark"), "spec": {"hard": {LEASES: "1"}}})


def quotas_are_known(pair):
    """Waits until upstream's admission knows of every write of a quota until now: its cache gets them in order."""
    n = str(next(marks))
    pair[1].patch(f"{MARK}/mark/status", {"status": {"hard": {LEASES: n}, "used": {LEASES: n}}})

    def seen():
        code, _, data = pair[1].raw("POST", "/apis/coordination.k8s.io/v1/namespaces/q-mark/leases", meta("l"),
                                    query={"dryRun": "All"})
        return code == 403 and f"used: {LEASES}={n}," in data.decode()
    eventually(seen, 60, f"mark {n} of the quotas")


def quota(pair, ns, hard, used=None, **spec):
    path = namespace(pair, ns)
    body = {**meta("q"), "spec": {"hard": hard, **spec}}
    for api in pair:
        api.post(f"{path}/resourcequotas", body)
        api.patch(f"{path}/resourcequotas/q/status",
                  {"status": {"hard": hard, "used": used or {k: "0" for k in hard}}})
    quotas_are_known(pair)
    return path


CPU = {"requests": {"cpu": "600m"}, "limits": {"cpu": "700m"}}
AFFINE = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "k", "labelSelector": {}, "namespaces": ["x"]}]}}}


def scoped(name, operator, *values):
    return {"scopeSelector": {"matchExpressions": [
        {"scopeName": name, "operator": operator, **({"values": list(values)} if values else {})}]}}


def service(name, kind, *ports, **spec):
    return {**meta(name), "spec": {"type": kind, "ports": [{"name": f"p{i}", "port": p} for i, p in enumerate(ports)],
                                   **spec}}


def claim(name, size, over=None, **spec):
    return {"metadata": {"name": name, **(over or {})}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}}


def devices(name, *requests):
    return {**meta(name), "spec": {"devices": {"requests": list(requests)}}}


def exactly(name, **over):
    return {"name": name, "exactly": {"deviceClassName": "gpu", **over}}


DRA = "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims"
WORDLESS = pod("a", initContainers=[{"name": "z", "image": "i"}, {"name": "b", "image": "i", "restartPolicy": "Always"}])
POD_LEVEL = pod("b")
POD_LEVEL["spec"]["resources"] = {"requests": {"memory": "1Mi"}}
ONE_GPU = {"gpu.deviceclass.resource.k8s.io/devices": "3", "count/resourceclaims.resource.k8s.io": "4"}
# name: (hard, more of the spec, [(collection below the namespace, object)])
QUOTAS = {
    "pods": ({"pods": "1"}, {}, [("pods", pod("a")), ("pods", pod("b"))]),
    "cpu": ({"cpu": "1", "limits.cpu": "1"}, {}, [("pods", pod("a")), ("pods", pod("b", CPU)), ("pods", pod("c", CPU))]),
    "memory": ({"requests.memory": "1Gi"}, {}, [
        ("pods", pod("a", {"requests": {"memory": "700Mi"}})), ("pods", pod("b", {"requests": {"memory": "700Mi"}}))]),
    "words": ({"cpu": "1", "memory": "1Gi", "requests.memory": "1Gi", "limits.cpu": "1", "limits.memory": "1Gi"}, {}, [
        ("pods", WORDLESS), ("pods", POD_LEVEL), ("pods", pod("c", CPU))]),
    "extended": ({"requests.nvidia.com/gpu": "3"}, {}, [
        ("pods", pod("a", {"limits": {"nvidia.com/gpu": "2"}})), ("pods", pod("b", {"limits": {"nvidia.com/gpu": "2"}}))]),
    "terminating": ({"pods": "0"}, {"scopes": ["Terminating"]}, [
        ("pods", pod("a")), ("pods", pod("b", activeDeadlineSeconds=5))]),
    "not-terminating": ({"pods": "0"}, {"scopes": ["NotTerminating"]}, [
        ("pods", pod("a")), ("pods", pod("b", activeDeadlineSeconds=5))]),
    "best-effort": ({"pods": "0"}, {"scopes": ["BestEffort"]}, [("pods", pod("a")), ("pods", pod("b", CPU))]),
    "not-best-effort": ({"pods": "0"}, {"scopes": ["NotBestEffort"]}, [("pods", pod("a")), ("pods", pod("b", CPU))]),
    "cross": ({"pods": "0"}, {"scopes": ["CrossNamespacePodAffinity"]}, [("pods", pod("a")), ("pods", pod("b", **AFFINE))]),
    "two-scopes": ({"pods": "0"}, {"scopes": ["BestEffort", "Terminating"]}, [
        ("pods", pod("a")), ("pods", pod("b", activeDeadlineSeconds=5))]),
    **{f"class-{op.lower()}": ({"pods": "0"}, scoped("PriorityClass", op, *values), [
        ("pods", pod("a")), ("pods", pod("b", priorityClassName="high")), ("pods", pod("c", priorityClassName="low"))])
       for op, values in (("In", ["high"]), ("NotIn", ["high"]), ("Exists", []), ("DoesNotExist", []))},
    "class-scope": ({"pods": "0"}, {"scopes": ["PriorityClass"]}, [
        ("pods", pod("a")), ("pods", pod("b", priorityClassName="high"))]),
    **{f"attributes-{op.lower()}": ({"persistentvolumeclaims": "0"}, scoped("VolumeAttributesClass", op, *values), [
        ("persistentvolumeclaims", claim("a", "1Gi")),
        ("persistentvolumeclaims", claim("b", "1Gi", volumeAttributesClassName="gold")),
        ("persistentvolumeclaims", claim("c", "1Gi", volumeAttributesClassName="tin"))])
       for op, values in (("In", ["gold"]), ("NotIn", ["gold"]), ("Exists", []), ("DoesNotExist", []))},
    "claims": ({"requests.storage": "3Gi", "persistentvolumeclaims": "9",
                "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}, {}, [
        ("persistentvolumeclaims", claim("a", "1Gi", storageClassName="gold")),
        ("persistentvolumeclaims", claim("b", "500m", storageClassName="gold")),
        ("persistentvolumeclaims", claim("c", "1Gi", {"annotations": {
            "volume.beta.kubernetes.io/storage-class": "gold"}})),
        ("persistentvolumeclaims", claim("d", "2Gi", storageClassName="tin")),
        ("persistentvolumeclaims", claim("e", "1", storageClassName="tin"))]),
    "services": ({"services": "9", "services.nodeports": "2", "services.loadbalancers": "1"}, {}, [
        ("services", service("a", "NodePort", 1, 2, 3)), ("services", service("b", "ClusterIP", 1, 2, 3)),
        ("services", service("c", "LoadBalancer", 1, 2, allocateLoadBalancerNodePorts=False)),
        ("services", service("d", "LoadBalancer", 1)), ("services", service("e", "NodePort", 1, 2))]),
    "objects": ({"configmaps": "1", "count/secrets": "1", "count/deployments.apps": "0", "count/widgets.quota.test": "1"},
                {}, [("configmaps", meta("a")), ("configmaps", meta("b")), ("secrets", meta("a")), ("secrets", meta("b"))]),
}


@pytest.fixture(scope="module")
def classes(pair):
    """Two of priority and two of storage, known to upstream's admission, which reads both from caches."""
    make(pair, "/apis/scheduling.k8s.io/v1/priorityclasses", {**meta("high"), "value": 9}, {**meta("low"), "value": 1})
    make(pair, "/apis/storage.k8s.io/v1/storageclasses",
         {**meta("gold"), "provisioner": "a.b/c", "allowVolumeExpansion": True}, {**meta("tin"), "provisioner": "a.b/c"})
    path = namespace(pair, "classes")
    for name in ("high", "low"):
        accepted(pair, f"{path}/pods", pod("probe", priorityClassName=name))
    make(pair, f"{path}/persistentvolumeclaims", claim("probe", "1Gi", storageClassName="gold", volumeName="v"))
    for api in pair:
        api.patch(f"{path}/persistentvolumeclaims/probe/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
    bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    eventually(lambda: pair[1].raw("PATCH", f"{path}/persistentvolumeclaims/probe", bigger, "application/merge-patch+json",
                                   query={"dryRun": "All"})[0] == 200, 60, "the class gold")


def accepted(pair, path, body):
    eventually(lambda: pair[1].raw("POST", path, body, query={"dryRun": "All"})[0] == 201, 60, f"{body} to be accepted")


@pytest.mark.parametrize("name", QUOTAS)
def test_quotas(pair, marked, classes, name):
    hard, spec, steps = QUOTAS[name]
    path = quota(pair, f"q-{name}", hard, **spec)
    codes = [alike(pair, f"{name} {o['metadata']['name']}", "POST", f"{path}/{plural}", o)[0] for plural, o in steps]
    assert 201 in codes and 403 in codes, codes


def test_quota_of_devices(pair, marked):
    quota(pair, "q-devices", ONE_GPU)
    path = DRA % "q-devices"
    either = {"name": "r", "firstAvailable": [
        {"name": "a", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
        {"name": "b", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}]}
    codes = [alike(pair, o["metadata"]["name"], "POST", path, o)[0] for o in (
        devices("a", exactly("r", allocationMode="All")), devices("b", either), devices("c", exactly("r"), exactly("s")),
        devices("d", exactly("r")), devices("e", exactly("r")))]
    assert codes == [403, 201, 403, 201, 403]


def test_quota_of_custom_resources(pair, marked):
    crd = {**meta("widgets.quota.test"), "spec": {
        "group": "quota.test", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True,
                      "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
    make(pair, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    quota(pair, "q-custom", {"count/widgets.quota.test": "1"})
    path = "/apis/quota.test/v1/namespaces/q-custom/widgets"
    for api in pair:
        eventually(lambda a=api: a.get(path), 30, "the widgets to be served", also=(429,))
    widget = {"apiVersion": "quota.test/v1", "kind": "Widget"}
    assert alike(pair, "first", "POST", path, {**widget, **meta("a")})[0] == 201
    assert alike(pair, "second", "POST", path, {**widget, **meta("b")})[0] == 403


def test_dry_runs_charge_nothing(pair, marked):
    path = quota(pair, "q-dry", {"pods": "1"})
    for i in range(3):
        assert alike(pair, "dry", "POST", f"{path}/pods", pod(f"d{i}"), dryRun="All")[0] == 201
    assert alike(pair, "real", "POST", f"{path}/pods", pod("a"))[0] == 201
    assert alike(pair, "dry", "POST", f"{path}/pods", pod("b"), dryRun="All")[0] == 403


def test_updates_are_charged(pair, marked):
    path = quota(pair, "q-update", {"services.nodeports": "1", "requests.storage": "2Gi"})
    make(pair, f"{path}/services", service("s", "ClusterIP", 1, 2))
    assert alike(pair, "type", "PATCH", f"{path}/services/s", {"spec": {"type": "NodePort"}})[0] == 403
    assert alike(pair, "label", "PATCH", f"{path}/services/s", {"metadata": {"labels": {"a": "b"}}})[0] == 200


def test_a_resize_is_charged_beside_what_is_in_use(pair, marked):
    path = quota(pair, "q-resize", {"requests.cpu": "3", "limits.cpu": "4"})
    given = {"name": "c", "image": "i", "imageID": "i", "ready": True, "restartCount": 0,
             "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "allocatedResources": {"cpu": "2"},
             "resources": {"requests": {"cpu": "1500m"}, "limits": {"cpu": "3"}}}
    stuck = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}

    def body(requests, limits):
        return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": requests},
                                                                    "limits": {"cpu": limits}}}]}}

    def resize(requests, limits):
        return alike(pair, f"{requests} {limits}", "PATCH", f"{path}/pods/p/resize", body(requests, limits),
                     dryRun="All")[0]
    for api in pair:
        api.post(f"{path}/pods", pod("p", {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}))
        api.patch(f"{path}/pods/p/status", {"status": {"phase": "Running", "containerStatuses": [given]}})
        api.patch(f"{path}/resourcequotas/q/status", {"status": {"used": {"requests.cpu": "2", "limits.cpu": "3"}}})
    quotas_are_known(pair)
    assert [resize("2", "3"), resize("3", "4"), resize("3100m", "4"), resize("3", "4100m")] == [200, 200, 403, 403]
    for api in pair:
        api.patch(f"{path}/pods/p/status", {"status": {"conditions": [stuck]}})
    assert resize("90", "100") == 200  # no component grants it


def test_no_race_gets_past_a_quota(pair, marked):
    here = pair[0]
    path = quota(pair, "q-race", {"pods": "10", "requests.cpu": "100"})
    codes, start = [], threading.Barrier(32)

    def create(i):
        api = here.clone()
        start.wait()
        for k in range(4):
            code, _, _ = api.raw("POST", f"{path}/pods", pod(f"r{i}-{k}", CPU))
            codes.append(code)
        api.close()

    threads = [threading.Thread(target=create, args=(i,)) for i in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (codes.count(201), codes.count(403), len(codes)) == (10, 118, 128)
    assert len(here.get(f"{path}/pods")["items"]) == 10


# ---- LimitRanger ----

LIMITS = {
    "container": {"type": "Container", "min": {"cpu": "100m", "memory": "1Mi"}, "max": {"cpu": "1", "memory": "1Gi"},
                  "default": {"cpu": "500m", "memory": "1Mi"}, "defaultRequest": {"cpu": "200m", "memory": "1Mi"}},
    "ratio": {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
    "pod": {"type": "Pod", "min": {"cpu": "300m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "3"}},
    "minimum": {"type": "Container", "min": {"cpu": "300m"}},
    "maximum": {"type": "Container", "max": {"memory": "300Mi"}},
}
SIZES = [None, {"requests": {"cpu": "50m"}}, {"limits": {"cpu": "2"}}, {"requests": {"cpu": "300m"}, "limits": {"cpu": "1"}},
         {"requests": {"cpu": "1"}}, {"limits": {"memory": "2Gi"}}, {"requests": {"memory": "2Gi"}},
         {"requests": {"cpu": "0"}, "limits": {"cpu": "1"}}]


def limit(pair, path, limits):
    """A limit range, known to upstream's admission, which may have looked before and remembers that there was none."""
    make(pair, f"{path}/limitranges", {**meta("l"), "spec": {"limits": [limits]}})
    what, body = ("pods", pod("probe", {"requests": {"cpu": "1m", "memory": "1Gi"}, "limits": {"cpu": "10", "memory": "9Gi"}}))
    if limits["type"] == "PersistentVolumeClaim":
        what, body = ("persistentvolumeclaims", claim("probe", "9Gi"))
    eventually(lambda: pair[1].raw("POST", f"{path}/{what}", body, query={"dryRun": "All"})[0] == 403, 60,
               f"{limits} to be obeyed")


@pytest.mark.parametrize("name", LIMITS)
def test_limit_ranges(pair, name):
    path = namespace(pair, f"l-{name}")
    limit(pair, path, LIMITS[name])
    for i, size in enumerate(SIZES):
        alike(pair, f"{name} {size}", "POST", f"{path}/pods", pod(f"p{i}", size), dryRun="All",
              shown=["spec.containers.0.resources"])


@pytest.mark.parametrize("name", LIMITS)
def test_limit_ranges_of_a_resize(pair, name):
    """The defaults are filled in there too, and what several containers lack is reported once."""
    path = namespace(pair, f"lr-{name}")
    twins = pod("twins", {"requests": {"cpu": "200m"}})
    twins["spec"]["initContainers"] = [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "200m"}}}]
    make(pair, f"{path}/pods", pod("p", {"requests": {"cpu": "200m"}}), twins)
    limit(pair, path, LIMITS[name])
    for cpu in ("50m", "300m", "2"):
        for which in ("p", "twins"):
            body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
            alike(pair, f"{name} {cpu}", "PATCH", f"{path}/pods/{which}/resize", body, dryRun="All",
                  shown=["spec.containers.0.resources", "metadata.annotations"])
    alike(pair, name, "POST", f"{path}/pods", {**twins, **meta("q")}, dryRun="All")


def test_limit_range_of_claims(pair):
    path = namespace(pair, "l-claims")
    limit(pair, path, {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}})
    for size, code in (("512Mi", 403), ("1Gi", 201), ("3Gi", 403)):
        assert alike(pair, size, "POST", f"{path}/persistentvolumeclaims", claim("c", size), dryRun="All")[0] == code


# ---- other kinds ----

def test_priorities(pair, classes):
    path = namespace(pair, "priorities") + "/pods"
    shown = ["spec.priority", "spec.preemptionPolicy", "spec.priorityClassName"]
    for what, spec in (("none", {}), ("class", {"priorityClassName": "high"}), ("unknown", {"priorityClassName": "x"}),
                       ("its number", {"priorityClassName": "high", "priority": 9}),
                       ("a number", {"priorityClassName": "high", "priority": 8}), ("number alone", {"priority": 8}),
                       ("zero", {"priority": 0}), ("policy", {"preemptionPolicy": "Never"}),
                       ("same policy", {"preemptionPolicy": "PreemptLowerPriority"}),
                       ("system", {"priorityClassName": "system-node-critical"})):
        alike(pair, what, "POST", path, pod("p", **spec), dryRun="All", shown=shown)


def test_there_is_one_default_priority(pair):
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    make(pair, path, {**meta("usual"), "value": 3, "globalDefault": True})

    other = {**meta("other"), "value": 4, "globalDefault": True}
    eventually(lambda: pair[1].raw("POST", path, other, query={"dryRun": "All"})[0] == 403, 30, "the default")
    assert alike(pair, "second", "POST", path, other, dryRun="All")[0] == 403
    assert alike(pair, "itself", "PATCH", f"{path}/usual", {"description": "d"})[0] == 200
    for api in pair:
        api.delete(f"{path}/usual")
    accepted(pair, path, other)


def default(name, key, **over):
    return {**meta(name, annotations={f"{key}.kubernetes.io/is-default-class": "true"}), **over}


def test_the_newest_default_class_is_taken(pair):
    path = namespace(pair, "defaults")
    storage, ingress = "/apis/storage.k8s.io/v1/storageclasses", "/apis/networking.k8s.io/v1/ingressclasses"
    net = "/apis/networking.k8s.io/v1/namespaces/defaults/ingresses"
    back = {"backend": {"service": {"name": "s", "port": {"number": 1}}}}
    ing = {**meta("i"), "spec": {"defaultBackend": back["backend"]}}
    annotated = {**meta("i", annotations={"kubernetes.io/ingress.class": "x"}), "spec": ing["spec"]}
    alike(pair, "no default", "POST", net, ing, dryRun="All", shown=["spec.ingressClassName"])
    for name in ("older", "newer"):
        make(pair, storage, default(name, "storageclass", provisioner="a.b/c"))
        make(pair, ingress, default(name, "ingressclass", spec={"controller": "a.b/c"}))
        eventually(lambda n=name: seen(pair[1], net, ing, n), 30, f"the class {name} to be the default")
        for api in pair:  # creation times have seconds
            eventually(lambda a=api: a.post(f"{path}/configmaps", meta("tick"), dryRun="All")["metadata"][
                "creationTimestamp"] > a.get(f"{ingress}/{name}")["metadata"]["creationTimestamp"], 30, "a second")
    for what, o in (("plain", ing), ("annotated", annotated)):
        alike(pair, what, "POST", net, o, dryRun="All", shown=["spec.ingressClassName"])
    eventually(lambda: pair[1].post(f"{path}/persistentvolumeclaims", claim("c", "1Gi"), dryRun="All")["spec"].get(
        "storageClassName") == "newer", 60, "the newer class of storage")
    alike(pair, "claim", "POST", f"{path}/persistentvolumeclaims", claim("c", "1Gi"), dryRun="All",
          shown=["spec.storageClassName"])
    for api in pair:
        for name in ("older", "newer"):
            api.delete(f"{storage}/{name}")
            api.delete(f"{ingress}/{name}")


def seen(api, net, ing, name):
    return api.post(net, ing, dryRun="All")["spec"].get("ingressClassName") == name


def test_claims_grow_where_their_class_lets_them(pair, classes):
    path = namespace(pair, "growing") + "/persistentvolumeclaims"
    for name, phase, cls in (("pending", "Pending", "gold"), ("stiff", "Bound", "tin"), ("elastic", "Bound", "gold"),
                             ("classless", "Bound", "")):
        make(pair, path, claim(name, "1Gi", storageClassName=cls, volumeName="v"))
        for api in pair:
            api.patch(f"{path}/{name}/status", {"status": {"phase": phase, "capacity": {"storage": "1Gi"}}})
        bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        code = alike(pair, name, "PATCH", f"{path}/{name}", bigger)[0]
        assert code == {"elastic": 200, "pending": 422}.get(name, 403), name


NODE = {**meta("zoned", labels={"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r",
                                "kubernetes.io/os": "linux"})}


@pytest.fixture(scope="module")
def node(pair):
    windows = meta("windows", labels={"kubernetes.io/os": "windows"})
    make(pair, "/api/v1/nodes", NODE, windows)
    for api in pair:
        for name in ("zoned", "windows"):
            api.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}})
    path = namespace(pair, "nodes") + "/pods"
    size = {"requests": {"cpu": "1"}}
    make(pair, path, pod("zoned", size, nodeName="zoned"))
    bigger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}
    eventually(lambda: b"allocatable: 2000" in pair[1].raw(
        "PATCH", f"{path}/zoned/resize", bigger, "application/strategic-merge-patch+json", query={"dryRun": "All"})[2],
        60, "upstream's admission to know the nodes")


def test_pods_learn_their_zone(pair, node):
    path = namespace(pair, "zones") + "/pods"
    make(pair, path, pod("bound"))
    target = {"target": {"kind": "Node", "name": "zoned"}, "metadata": {"name": "bound"}}
    assert alike(pair, "binding", "POST", f"{path}/bound/binding", target)[0] == 201
    alike(pair, "labels", "GET", f"{path}/bound", None, shown=["metadata.labels", "spec.nodeName"])
    alike(pair, "fixed", "POST", path, pod("fixed", nodeName="zoned"), shown=["metadata.labels"])
    alike(pair, "unknown", "POST", path, pod("lost", nodeName="nowhere"), shown=["metadata.labels"])


def test_pods_grow_within_their_node(pair, node):
    path = namespace(pair, "sizes") + "/pods"
    size = {"requests": {"cpu": "1", "memory": "100Mi"}}
    make(pair, path, pod("p", size, nodeName="zoned"), pod("w", size, nodeName="windows"), pod("n", size, nodeName="gone"))

    def resize(name, **requests):
        body = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
        return alike(pair, f"{name} {requests}", "PATCH", f"{path}/{name}/resize", body)[0]

    assert resize("p", cpu="3") == 403 and resize("p", cpu="3", memory="2Gi") == 403
    assert resize("w", cpu="1500m") == 403 and resize("n", cpu="1500m") == 403
    assert resize("p", cpu="1500m") == 200


def test_a_resize_changes_amounts_alone(pair):
    path = namespace(pair, "amounts") + "/pods"
    whole = pod("p")
    whole["spec"]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    make(pair, path, pod("c", {"requests": {"cpu": "1"}}), whole)
    shown = ["metadata.labels", "metadata.generation", "spec.resources", "spec.activeDeadlineSeconds",
             "spec.containers.0.resources", "spec.containers.0.image"]

    def resize(name, body):
        return alike(pair, name, "PATCH", f"{path}/{name}/resize", body, shown)[0]

    assert resize("p", {"spec": {"resources": {"requests": {"cpu": "1500m"}}}}) == 200
    assert resize("p", {"spec": {"resources": None}}) == 422
    assert resize("p", {"spec": {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}}) == 422
    more = {"metadata": {"labels": {"a": "b"}}, "spec": {"activeDeadlineSeconds": 5}}
    more["spec"]["containers"] = [{"name": "c", "image": "j", "resources": {"requests": {"cpu": "2"}}}]
    assert resize("c", more) == 200
    assert resize("c", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": None, "memory": "1"}}}]}}) == 422
    assert resize("c", {"spec": {"containers": [{"name": "d", "image": "i"}]}}) == 422


def test_what_may_hold_a_namespace(pair):
    path = namespace(pair, "held")
    for names, code in ((["kubernetes", "x"], 422), (["a b", "example.com/a"], 422), (["example.com/a"], 200), ([], 200)):
        body = {**meta("held"), "spec": {"finalizers": names}}
        assert alike(pair, str(names), "PUT", path + "/finalize", body, ["spec"], dryRun="All")[0] == code
    bad = {**meta("never"), "spec": {"finalizers": ["x"]}}
    assert alike(pair, "create", "POST", "/api/v1/namespaces", bad, dryRun="All")[0] == 422


def test_namespaces_that_stay(pair):
    for name in ("default", "kube-system", "kube-public"):
        assert alike(pair, name, "DELETE", f"/api/v1/namespaces/{name}", None, dryRun="All")[0] == 403
    alike(pair, "kube-node-lease", "DELETE", "/api/v1/namespaces/kube-node-lease", None, dryRun="All")
    with pytest.raises(ApiError):
        pair[0].post("/api/v1/namespaces/nowhere/configmaps", meta("c"))
    alike(pair, "nowhere", "POST", "/api/v1/namespaces/nowhere/configmaps", meta("c"))
