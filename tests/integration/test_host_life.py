# SPDX-License-Identifier: Apache-2.0
"""What a host does to the pods of a tenant, as the tenant sees it: admission policies that inject and rewrite, eviction,
preemption by the real scheduler, nodes that fail and nodes that are deleted. The tenant sees what it would see of a cluster
of its own: the condition first, then the deletion, and its controllers replace the pod."""
import contextlib
import json
import threading

import pytest

from testenv import UNSET, eventually, nodes
from testenv.wait import AWAY

from test_tenant import host_pod, pod

PODS = "/api/v1/namespaces/default/pods"
ADMISSION = "/apis/admissionregistration.k8s.io"
EXPRESSION = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


class Seen(threading.Thread):
    """Every version of the tenant's pods, as a watch delivers it, until the tenant's process ends."""

    def __init__(self, vc):
        super().__init__(daemon=True)
        self.vc, self.events = vc, []
        self.start()

    def run(self):
        with contextlib.suppress(*AWAY):
            for event in self.vc.api.watch(PODS):
                self.events.append((event["type"], event["object"]))

    def of(self, uid):
        return [(kind, p) for kind, p in list(self.events) if p["metadata"]["uid"] == uid]

    def gone(self, uid):
        return [p for kind, p in self.of(uid) if kind == "DELETED"]


@pytest.fixture
def vc(tenant):
    return tenant("life", config={"policy": {"labels": {"allow": ["app"]}}})


@pytest.fixture
def seen(vc):
    return Seen(vc)


def get(vc, name):
    return vc.api.get(f"{PODS}/{name}")


def pods(vc):
    """Those that nothing deletes."""
    return [p for p in vc.api.get(PODS)["items"] if "deletionTimestamp" not in p["metadata"]]


def ready(vc, count=1):
    def found():
        now = [p for p in pods(vc) if condition(p, "Ready").get("status") == "True"]
        return now if len(now) == count else None
    return eventually(found, 60, f"{count} ready pods", also=UNSET)


def condition(p, kind):
    return next((c for c in p.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def disrupted(seen, uid, reason):
    """The condition is seen before the deletion begins."""
    def found():
        before = [p for _, p in seen.of(uid) if "deletionTimestamp" not in p["metadata"]]
        return [p for p in before if condition(p, "DisruptionTarget").get("reason") == reason]
    found = eventually(found, 120, f"the condition with {reason} before the deletion")[-1]
    assert condition(found, "DisruptionTarget")["status"] == "True"
    return condition(found, "DisruptionTarget")


def replaced(vc, old):
    """A ReplicaSet has made another pod, and it runs."""
    def found():
        now = [p for p in pods(vc) if p["metadata"]["uid"] != old["metadata"]["uid"] and
               p["status"].get("phase") == "Running"]
        return now[0] if now else None
    return eventually(found, 120, "a pod in its place", also=UNSET)


def hides_the_host(vc, text):
    for secret in (vc.namespace, "sublet.dev", vc.host.api.get(f"/api/v1/namespaces/{vc.namespace}")["metadata"]["uid"]):
        assert secret not in text, text


# --- admission policies ---

def policy(name, namespace, operations, mutations, unless):
    return {"metadata": {"name": name}, "spec": {
        "matchConstraints": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                             "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": operations,
                                                "resources": ["pods"]}]},
        "matchConditions": [{"name": "unless", "expression": f"!({unless})"}],
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": kind, EXPRESSION[kind]: {"expression": m}} for kind, m in mutations]}}


@contextlib.contextmanager
def policies(host, vc):
    """A mesh's sidecars, one of each form, and a registry's mirror, in the versions that this host serves."""
    group = next(g for g in host.api.get("/apis")["groups"] if g["name"] == "admissionregistration.k8s.io")
    served = [v["version"] for v in group["versions"] if any(
        r["name"] == "mutatingadmissionpolicies" for r in host.api.get(f"{ADMISSION}/{v['version']}")["resources"])]
    assert served, "the host has no MutatingAdmissionPolicy"
    root = f"{ADMISSION}/{served[0]}"
    names = {
        f"mesh-{vc.namespace}": policy(
            f"mesh-{vc.namespace}", vc.namespace, ["CREATE"],
            [("ApplyConfiguration", 'Object{metadata: Object.metadata{labels: {"mesh.example/injected": "true"}}, '
              'spec: Object.spec{containers: [Object.spec.containers{name: "mesh", image: "mesh:1"}], initContainers: '
              '[Object.spec.initContainers{name: "proxy", image: "proxy:1", restartPolicy: "Always"}]}}')],
            'object.spec.containers.exists(c, c.name == "mesh")'),
        f"mirror-{vc.namespace}": policy(
            f"mirror-{vc.namespace}", vc.namespace, ["CREATE", "UPDATE"],
            [("JSONPatch", '[JSONPatch{op: "replace", path: "/spec/containers/0/image", '
              'value: "mirror.example/" + object.spec.containers[0].image}]')],
            'object.spec.containers[0].image.startsWith("mirror.example/")'),
    }
    for name, body in names.items():
        host.api.post(f"{root}/mutatingadmissionpolicies", body)
        host.api.post(f"{root}/mutatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": {"policyName": name}})
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    def applied():
        made = host.api.request("POST", f"/api/v1/namespaces/{vc.namespace}/pods", probe, query={"dryRun": "All"})
        return [c["image"] for c in made["spec"]["containers"]] == ["mirror.example/i", "mesh:1"]
    try:
        yield eventually(applied, 60, "the policies to apply", also=[422, 500])
    finally:
        for name in names:
            host.api.delete(f"{root}/mutatingadmissionpolicybindings/{name}")
            host.api.delete(f"{root}/mutatingadmissionpolicies/{name}")


def containers(p, field="containers"):
    return {c["name"]: c["image"] for c in p["spec"].get(field, [])}


def test_policies_that_inject_and_rewrite(vc, host):
    with policies(host, vc):
        vc.kubectl("create", "deployment", "web", "--image=web:1")
        first = ready(vc)[0]
        name = first["metadata"]["name"]
        below = host_pod(vc, name)
        assert containers(below) == {"web": "mirror.example/web:1", "mesh": "mesh:1"}
        assert containers(below, "initContainers") == {"proxy": "proxy:1"}

        # The tenant's spec is as it was written, its status has its own containers, with the image that runs.
        assert containers(first) == {"web": "web:1"} and "initContainers" not in first["spec"]
        assert [c["name"] for c in first["status"]["containerStatuses"]] == ["web"]
        assert first["status"]["containerStatuses"][0]["image"] == "mirror.example/web:1"
        assert not first["status"].get("initContainerStatuses")
        assert "injected" not in json.dumps(first["metadata"])
        assert vc.kubectl("get", "pod", name, "--no-headers").split()[1] == "1/1"

        # A change of the tenant's goes down once, and is the policy's to rewrite; what it injected stays.
        vc.kubectl("set", "image", f"pod/{name}", "web=web:2")
        eventually(lambda: containers(host_pod(vc, name)) == {"web": "mirror.example/web:2", "mesh": "mesh:1"}, 60,
                   "the other image on the host")
        now = eventually(lambda: (p := get(vc, name))["status"].get("observedGeneration") == 2 and p, 60,
                         "the generation to be observed")
        assert containers(now) == {"web": "web:2"}
        vc.kubectl("label", "pod", name, "app=other", "--overwrite")  # its ReplicaSet makes another
        eventually(lambda: host_pod(vc, name)["metadata"]["labels"].get("app") == "other", 60, "the label on the host")
        assert host_pod(vc, name)["metadata"]["labels"]["mesh.example/injected"] == "true"
        ready(vc, 2)
        version = host_pod(vc, name)["metadata"]["resourceVersion"]
        vc.restart()
        vc.kubectl("rollout", "restart", "deployment/web")
        vc.kubectl("rollout", "status", "deployment/web", "--timeout=180s")
        assert host_pod(vc, name)["metadata"]["resourceVersion"] == version, "the host pod is written again"
    assert "SyncError" not in vc.kubectl("get", "events")


# --- eviction ---

def evict_on_host(host, vc, name):
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/pods/{name}/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": vc.namespace}})


def test_an_eviction_by_the_host(vc, host, seen):
    vc.kubectl("create", "deployment", "web", "--image=web:1")
    first = ready(vc)[0]
    below = host_pod(vc, first["metadata"]["name"])
    eventually(lambda: seen.of(first["metadata"]["uid"]), 30, "the watch")
    evict_on_host(host, vc, below["metadata"]["name"])
    told = disrupted(seen, first["metadata"]["uid"], "EvictionByEvictionAPI")
    hides_the_host(vc, json.dumps(told))
    replaced(vc, first)
    eventually(lambda: seen.gone(first["metadata"]["uid"]), 60, "the first to be gone")
    assert len(vc.host_pods()) == 1


def test_an_eviction_by_a_kubelet(vc, host, seen):
    """Of a node under pressure: the pod ends as Failed and stays, as on any cluster."""
    vc.kubectl("create", "deployment", "web", "--image=web:1")
    first = ready(vc)[0]
    name = first["metadata"]["name"]
    below = host_pod(vc, name)
    path = f"/api/v1/namespaces/{vc.namespace}/pods/{below['metadata']['name']}"
    kept = [c for c in below["status"]["conditions"] if c["type"] != "DisruptionTarget"]
    host.api.patch(f"{path}/status", {"status": {
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
        "conditions": kept + [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]}},
        kind="merge")
    now = eventually(lambda: (p := get(vc, name))["status"]["phase"] == "Failed" and p, 60, "the pod to have failed")
    assert now["status"]["reason"] == "Evicted" and "low on resource" in now["status"]["message"]
    assert condition(now, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    replaced(vc, first)
    host.api.delete(path)  # the host collects what has ended
    eventually(lambda: not [p for p in vc.host_pods() if p["metadata"]["uid"] == below["metadata"]["uid"]], 60,
               "it gone on the host")


# --- preemption ---

@pytest.fixture
def machine(host):
    """machine(name, simulated=True) -> name: a small node with a label of its own; else the test is its kubelet."""
    made = []

    def add(name, simulated=True):
        node = nodes.cpu_node(name, cpu="2", memory="4Gi", pods="20", labels={"life": name})
        if not simulated:
            node["metadata"]["annotations"] = {}
            node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        made.append(name)
        host.add_node(node)
        return name
    yield add
    for name in made:
        with contextlib.suppress(AssertionError):
            host.remove_node(name)


def preempted(vc, pod):
    events = vc.api.get("/api/v1/namespaces/default/events")["items"]
    return [e for e in events if e.get("reason") == "Preempted" and e["involvedObject"]["uid"] == pod["metadata"]["uid"]]


def test_a_preemption(vc, host, seen, machine):
    machine("life-small")
    host.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "life-high"}, "value": 1000000})
    try:
        want = pod("low", nodeSelector={"life": "life-small"})
        want["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1500m"}}
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "low"}, "spec": {
            "selector": {"matchLabels": {"app": "low"}},
            "template": {"metadata": {"labels": {"app": "low"}}, "spec": want["spec"]}}}
        vc.kubectl.apply(deployment)
        first = ready(vc)[0]
        assert first["spec"]["nodeName"] == "life-small"
        eventually(lambda: seen.of(first["metadata"]["uid"]), 30, "the watch")
        host.create_namespace(f"high-{vc.namespace}")
        host.api.post(f"/api/v1/namespaces/high-{vc.namespace}/pods", {"metadata": {"name": "high"}, "spec": {
            "priorityClassName": "life-high", "nodeSelector": {"life": "life-small"},
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1500m"}}}]}})
        told = disrupted(seen, first["metadata"]["uid"], "PreemptionByScheduler")
        hides_the_host(vc, json.dumps(told))
        eventually(lambda: seen.gone(first["metadata"]["uid"]), 60, "the preempted pod to be gone")
        event = eventually(lambda: preempted(vc, first), 30, "the scheduler's Event about it")
        hides_the_host(vc, json.dumps(event))

        # Its ReplicaSet makes another, which waits for room, and says so.
        def waiting():
            now = [p for p in pods(vc) if p["metadata"]["uid"] != first["metadata"]["uid"]]
            return now[0] if now and condition(now[0], "PodScheduled").get("reason") == "Unschedulable" else None
        second = eventually(waiting, 60, "another pod that waits for room", also=UNSET)
        hides_the_host(vc, json.dumps(second["status"]))
        host.delete_namespace(f"high-{vc.namespace}")
        replaced(vc, first)
    finally:
        host.delete_namespace(f"high-{vc.namespace}")
        host.api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/life-high")


# --- node loss ---

def run_on(host, vc, name):
    """The pods that the scheduler placed on the node run, as its kubelet reports; returns the virtual one."""
    below = eventually(lambda: [p for p in vc.host_pods() if p["spec"].get("nodeName") == name], 60, f"a pod on {name}")[0]
    host.api.patch(f"/api/v1/namespaces/{vc.namespace}/pods/{below['metadata']['name']}/status", {"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]}})
    return ready(vc)[0]


def end_on(host, vc, below, phase):
    """Its containers have ended, and the kubelet lets a pod go that is being deleted."""
    path = f"/api/v1/namespaces/{vc.namespace}/pods/{below['metadata']['name']}"
    now = host.api.get(path)
    host.api.patch(f"{path}/status", {"status": {"phase": phase}}, kind="merge")
    if "deletionTimestamp" in now["metadata"]:
        host.api.delete(path, body={"gracePeriodSeconds": 0, "preconditions": {"uid": now["metadata"]["uid"]}})


def test_a_job_does_not_count_disruptions(vc, host, seen, machine):
    name = machine("life-job", simulated=False)
    vc.kubectl.apply({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
        "spec": {"backoffLimit": 0, "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
            "template": {"spec": {"nodeSelector": {"life": name}, "restartPolicy": "Never",
                                  "containers": [{"name": "c", "image": "i"}]}}}})

    def job():
        return vc.api.get("/apis/batch/v1/namespaces/default/jobs/train")["status"]
    first = run_on(host, vc, name)
    eventually(lambda: seen.of(first["metadata"]["uid"]), 30, "the watch")
    below = host_pod(vc, first["metadata"]["name"])
    evict_on_host(host, vc, below["metadata"]["name"])
    disrupted(seen, first["metadata"]["uid"], "EvictionByEvictionAPI")
    assert not job().get("failed") and len(vc.host_pods()) == 1, "replaced before it has ended"
    end_on(host, vc, below, "Failed")
    eventually(lambda: seen.gone(first["metadata"]["uid"]), 60, "the first to be gone")

    second = run_on(host, vc, name)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    end_on(host, vc, host_pod(vc, second["metadata"]["name"]), "Succeeded")
    eventually(lambda: job().get("succeeded") == 1, 60, "the Job to end")
    assert not job().get("failed"), job()
    assert [c["type"] for c in job()["conditions"] if c["status"] == "True"] == ["SuccessCriteriaMet", "Complete"]


def fail_node(host, name):
    """The node lifecycle controller taints it, and no kubelet is there to end its pods."""
    host.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "gone"}]}})


def spread(vc, node, kind="Deployment", **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 5,
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [{"key": "life", "operator": "In", "values": [node]}]}}]}},
        "tolerations": [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute",
                         "tolerationSeconds": 1} for k in ("not-ready", "unreachable")]}}
    vc.kubectl.apply({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}})


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_node_that_fails_and_is_deleted(vc, host, seen, machine, kind):
    name = machine(f"life-lost-{kind.lower()}", simulated=False)
    spread(vc, name, kind, **({"serviceName": "web"} if kind == "StatefulSet" else {}))
    first = run_on(host, vc, name)
    uid = first["metadata"]["uid"]
    eventually(lambda: seen.of(uid), 30, "the watch")
    fail_node(host, name)
    told = disrupted(seen, uid, "DeletionByTaintManager")
    hides_the_host(vc, json.dumps(told))
    now = eventually(lambda: (p := get(vc, first["metadata"]["name"]))["metadata"].get("deletionTimestamp") and p, 60,
                     "its deletion")
    assert now["metadata"]["uid"] == uid and now["metadata"]["deletionGracePeriodSeconds"] == 5
    assert eventually(lambda: condition(vc.api.get(f"/api/v1/nodes/{name}"), "Ready")["status"] == "False", 60,
                      "the tenant to see the node fail")
    if kind == "Deployment":
        assert replaced(vc, first)["spec"]["nodeName"] != name
    else:  # a StatefulSet never runs two of one name: it waits for the node
        assert [p["metadata"]["uid"] for p in vc.api.get(PODS)["items"]] == [uid]
    assert get(vc, first["metadata"]["name"])["metadata"]["uid"] == uid  # until its node answers, or is gone

    host.remove_node(name)
    eventually(lambda: seen.gone(uid), 180, "the pod of the deleted node to be gone")
    assert replaced(vc, first)["spec"]["nodeName"] != name
    eventually(lambda: name not in vc.kubectl.names("nodes"), 60, "the node to be gone for the tenant")
    eventually(lambda: len(vc.host_pods()) == 1, 60, "one pod on the host")


def test_a_node_that_is_deleted(vc, host, seen, machine):
    """Nothing says why before: the host's collector of pods marks and removes them."""
    name = machine("life-deleted", simulated=False)
    spread(vc, name)
    first = run_on(host, vc, name)
    uid = first["metadata"]["uid"]
    eventually(lambda: seen.of(uid), 30, "the watch")
    host.remove_node(name)
    disrupted(seen, uid, "DeletionByPodGC")
    last = eventually(lambda: seen.gone(uid), 180, "the pod of the deleted node to be gone")[0]
    assert last["status"]["phase"] == "Failed"
    assert replaced(vc, first)["spec"]["nodeName"] != name
    eventually(lambda: len(vc.host_pods()) == 1, 60, "one pod on the host")
