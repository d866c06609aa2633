# SPDX-License-Identifier: Apache-2.0
"""A tenant follows the GPUBindings of its host namespace on a real host; the test is the fleet, which writes their status."""
import datetime
import json
import shutil

import pytest

from testenv import eventually
from testenv.nodes import pool_config

from test_explain import explain, gpu_pod
from test_host_check import check_host
from test_pools import workload
from test_restore import again, create, planned, sublet
from test_restore import pod as restorable
from test_tenant import GPU, pod, running

GROUP = "/apis/sublet.dev/v1alpha1"


class Binding:
    """A GPUBinding of the tenant's namespace, as the fleet writes it."""

    def __init__(self, vc, name="shared", pool=None, **spec):
        self.api = vc.host.api
        self.path = f"{GROUP}/namespaces/{vc.namespace}/gpubindings"
        self.name = name
        self.api.post(self.path, {"apiVersion": "sublet.dev/v1alpha1", "kind": "GPUBinding", "metadata": {"name": name},
                                  "spec": {"pool": name, "guarantee": "2", "burst": "6", "default": True, **spec}})
        self.pool = pool or pool_config("shared", "l4", kind="shared")

    def status(self, **status):
        self.api.patch(f"{self.path}/{self.name}/status", {"status": status})

    def grant(self, gpus, **more):
        self.status(grant=str(gpus), pool=self.pool, **more)

    def delete(self):
        self.api.delete(f"{self.path}/{self.name}")


@pytest.fixture
def vc(tenant, real_host, gpu_crds):
    return tenant("granted", config={"fleet": {"bindings": True}}, on=real_host)


def allocatable(k):
    return {n["metadata"]["name"]: n["status"]["allocatable"].get(GPU) for n in k.items("nodes")
            if GPU in n["status"]["allocatable"]}


def warnings(vc):
    return str(vc.api.raw("GET", "/readyz/warnings")[2])


def refused(k, name, gpus):
    return k.fails("create", "-f", "-", stdin=json.dumps(pod(name, gpus)))


def test_grants_take_effect_without_a_restart(vc):
    k = vc.kubectl
    assert "nvidia.com/gpu is not offered by any pool of this virtual cluster" in refused(k, "a", 1)
    binding = Binding(vc)
    binding.grant(2)
    eventually(lambda: set(allocatable(k).values()) == {"2"}, 60, "the nodes of the pool")
    k.apply(pod("a", 2))
    running(k, "a")
    assert 'pods "b" is forbidden: exceeded quota: gpu/shared, requested: gpu=1, used: gpu=2, limited: gpu=2' in refused(k, "b", 1)
    binding.grant(3)
    eventually(lambda: set(allocatable(k).values()) == {"3"}, 60, "the nodes of the pool")
    k.apply(pod("b", 1))
    running(k, "b")
    binding.grant(1)
    eventually(lambda: "limited: gpu=1" in refused(k, "c", 1), 60, "the lower grant")
    assert k.names("pods") == ["a", "b"]

    binding.delete()
    eventually(lambda: "is not offered by any pool" in refused(k, "c", 1), 60, "the end of the binding")
    running(k, "a")
    running(k, "b")


def test_a_raised_grant_starts_what_waits(vc):
    k = vc.kubectl
    binding = Binding(vc, overQuota="queue")
    binding.grant(0)
    eventually(lambda: set(allocatable(k).values()) == {"0"}, 60, "the nodes of the pool")
    k.apply(pod("a", 3))
    said = eventually(lambda: [c["message"] for c in k.json("get", "pod", "a")["status"].get("conditions", [])
                               if c.get("reason") == "SchedulingGated"], 60, "the line")
    assert said == ["waiting for 3 GPU in pool shared: position 1, ahead 0 GPU; granted now: 0"]
    assert vc.host_pods() == []
    binding.grant(4)
    running(k, "a")


def test_a_bad_binding_is_reported_and_the_last_grant_holds(vc):
    k = vc.kubectl
    binding = Binding(vc)
    binding.grant(2)
    eventually(lambda: set(allocatable(k).values()) == {"2"}, 60, "the nodes of the pool")
    binding.status(grant="8", pool={**binding.pool, "defaultTier": "missing"})  # the schema cannot see it
    eventually(lambda: "GPUBinding \\\"shared\\\" cannot be followed" in warnings(vc)
               or 'GPUBinding "shared" cannot be followed' in warnings(vc), 60, "the notice")
    vc.restart()
    assert "limited: gpu=2" in refused(k, "c", 3)
    k.apply(pod("a", 2))
    running(k, "a")
    assert "InvalidGPUBinding" in warnings(vc)
    binding.status(grant="4", pool={"defaultTier": None})
    eventually(lambda: set(allocatable(k).values()) == {"4"}, 60, "the nodes of the pool")
    eventually(lambda: "InvalidGPUBinding" not in warnings(vc), 60, "the end of the notice")


def test_the_last_grant_holds_while_the_host_is_away(vc, real_host):
    k = vc.kubectl
    Binding(vc).grant(2)
    eventually(lambda: set(allocatable(k).values()) == {"2"}, 60, "the nodes of the pool")
    real_host.stop_component("kube-apiserver")
    try:
        vc.restart()
        assert "limited: gpu=2" in refused(k, "c", 3)
        k.apply(pod("a", 2))
        assert "used: gpu=2, limited: gpu=2" in refused(k, "b", 1)
    finally:
        real_host.start_component("kube-apiserver")
    running(k, "a", 120)


def target(k, name):
    return [(c["status"], c["reason"], c["message"]) for c in k.json("get", "pod", name)["status"]["conditions"]
            if c["type"] == "DisruptionTarget"]


def stamp(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_what_is_taken_back_is_announced_and_ends(vc):
    k = vc.kubectl
    binding = Binding(vc)
    binding.grant(4)
    eventually(lambda: set(allocatable(k).values()) == {"4"}, 60, "the nodes of the pool")
    k.apply(pod("old", 1))
    running(k, "old")
    made = vc.host_pods()[0]["metadata"]["creationTimestamp"]
    eventually(lambda: stamp(0) > made, 30, "the next second: creation times have no smaller unit")
    k.apply(workload("ReplicaSet", "set", replicas=2))
    eventually(lambda: k.json("get", "rs", "set")["status"].get("readyReplicas") == 2, 60, "the set")
    binding.grant(2, reclaim={"gpus": "1", "notBefore": stamp(3600)})
    ours = eventually(lambda: [p for p in k.names("pods") if target(k, p)], 60, "the notice")
    assert len(ours) == 1 and ours[0].startswith("set-")
    status, reason, message = target(k, ours[0])[0]
    assert (status, reason) == ("True", "ReclaimedByFleet")
    assert message.startswith("pool shared takes GPUs back: 2 may be held now, and this pod ends after 20")
    assert any(e["reason"] == reason and e["involvedObject"]["name"] == ours[0] for e in k.items("events"))
    assert len(vc.host_pods()) == 3

    binding.grant(3, reclaim=None)
    eventually(lambda: target(k, ours[0])[0][0] == "False", 60, "the notice to be taken back")
    binding.grant(2, reclaim={"gpus": "1", "notBefore": stamp(-1)})
    eventually(lambda: len(vc.host_pods()) == 2, 60, "the newest pod to end")
    running(k, "old")
    said = eventually(lambda: [e["message"] for e in k.items("events") if e["reason"] == "FailedCreate"], 60, "the quota's word")
    assert "exceeded quota: gpu/shared, requested: gpu=1, used: " in str(said) and "limited: gpu=2" in str(said)
    binding.grant(3, reclaim=None)
    eventually(lambda: k.json("get", "rs", "set")["status"].get("readyReplicas") == 2, 60, "the replacement")


def test_commands_know_what_is_granted(vc, tmp_path):
    """explain shows the grant that applies, check --host what it grants, and a plan knows the pools of the backup."""
    binding = Binding(vc)
    binding.grant(4)
    eventually(lambda: set(allocatable(vc.kubectl).values()) == {"4"}, 60, "the nodes of the pool")
    code, out, err = explain(vc, gpu_pod())
    assert code == 0 and "pool shared: requested 1 GPU, used 0, limit 4 (granted of 8 by GPUBinding shared)\n" in out, out + err
    create(vc, ("pods", restorable("alike", 2)))
    running(vc.kubectl, "alike")
    more = gpu_pod(name="more")
    more["spec"]["containers"][0]["resources"]["limits"][GPU] = "3"
    code, out, _ = explain(vc, more)
    assert code == 1 and "pool shared: requested 3 GPU, used 2, limit 4" in out and "exceeded quota: gpu/shared" in out, out

    def checked():
        return check_host(tmp_path, vc.namespace, vc.host.kubeconfig, fleet={"bindings": True})[1]
    found = checked()
    assert found["GPUBinding shared"] == ("ok", "grants 4 GPU of pool shared")
    assert found["pool shared"][0] == "ok" and "nodes with its taint" in found["pool shared"][1], found
    assert "GPUBinding shared" not in check_host(tmp_path, vc.namespace, vc.host.kubeconfig)[1]

    copy = tmp_path / "copy.db"
    sublet(vc, "backup", "--output", copy)
    again(vc, restorable("alike", 2))
    vc.stop()
    shutil.rmtree(vc.store)
    text = sublet(vc, "restore", "--plan", "--input", copy)
    assert ("adopt", "pods", "alike", "") in planned(text), text

    binding.status(pool={**binding.pool, "defaultTier": "missing"})
    assert checked()["GPUBinding shared"][0] == "missing" and "status.pool" in checked()["GPUBinding shared"][1]
    binding.status(conditions=[{"type": "Ready", "status": "False", "reason": "Overcommitted", "message": "it does not fit",
                                "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    assert checked()["GPUBinding shared"] == ("warning", "grants nothing: Overcommitted: it does not fit")
    binding.delete()
    assert checked()["GPUBindings"] == ("warning", "none in the namespace: the fleet grants nothing")
