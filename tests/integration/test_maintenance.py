# SPDX-License-Identifier: Apache-2.0
"""Maintenance and conversion of a GPUPool on a real host, as its nodes, its tenants and an admin see it."""
import datetime
import json
import os
import secrets

import pytest

from testenv import eventually
from testenv.api import ApiError

from test_grants import GROUP, Grants, bindings_of, condition
from test_pools import warned, workload
from test_tenant import GPU, host_pod, pod, running

POOL = f"{GROUP}/gpupools/a100"
SLICE = "nvidia.com/mig-1g.10gb"
FOLLOWING = {"fleet": {"bindings": True, "lendAfter": "1s"}, "sync": {"nodes": "perPool"}}


@pytest.fixture
def grants(host, gpu_crds, workdir, pools, tmp_path):
    tag = secrets.token_hex(3)
    made = Grants(host, os.path.join(workdir, f"maintenance-{tag}"), tag, pools)
    try:
        made.allow(tmp_path)
        yield made
    finally:
        made.close()


def maintain(host, **maintenance):
    """Sets `maintenance` as a whole; without members it is over."""
    host.api.patch(POOL, {"spec": {"maintenance": None}})
    if maintenance:
        host.api.patch(POOL, {"spec": {"maintenance": maintenance}})


def pool_says(host, kind, status, reason, words=""):
    """Waits for a condition of the pool."""
    def said():
        found = [c for c in host.api.get(POOL).get("status", {}).get("conditions", []) if c["type"] == kind]
        return found and (found[0]["status"], found[0]["reason"]) == (status, reason) and words in found[0]["message"]
    eventually(said, 60, f"{kind} {status} {reason} {words}")


def states_of(grants):
    """What the metrics of the fleet say of the pool; nothing: it is as usual."""
    found = grants.fleet.metrics().get("sublet_fleet_pool_unavailable", {})
    assert all(value == 1 and dict(labels)["pool"] == "a100" for labels, value in found.items()), found
    return {dict(labels)["state"] for labels in found}


def hard(host, vc, resource):
    """What the host admits of a resource in the namespace of a tenant."""
    quota = host.api.get(f"/api/v1/namespaces/{vc.namespace}/resourcequotas/sublet-gpu")
    return int(quota["spec"]["hard"].get(f"requests.{resource}", "0"))


def refused_by_host(host, vc, resource):
    """A pod that the process of a tenant has not made: the host itself refuses it."""
    limits = {"limits": {resource: "1"}}
    with pytest.raises(ApiError) as raised:
        host.api.post(f"/api/v1/namespaces/{vc.namespace}/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "beside"},
            "spec": {"containers": [{"name": "main", "image": "example.com/x", "resources": limits}]}})
    assert raised.value.code == 403 and "exceeded quota: sublet-gpu" in str(raised.value), raised.value


def unavailable(k):
    return k.json("get", "gpuusage", "a100")["status"].get("unavailable", "")


def node_says(vc, name="a100"):
    """(reason, message) of the condition of a node the tenant sees, where it is closed to new pods; else None."""
    node = vc.api.get(f"/api/v1/nodes/{name}")
    said = [c for c in node["status"]["conditions"] if c["type"] == "PoolMaintenance"]
    assert bool(said) or not node["spec"].get("unschedulable"), node
    return (said[0]["reason"], said[0]["message"]) if said and node["spec"].get("unschedulable") else None


def events_of(k, name):
    return [e["message"] for e in k.items("events", "--field-selector", f"involvedObject.name={name}")
            if e["reason"] == "PoolUnavailable"]


def ready(vc):
    return vc.api.get("/apis/apps/v1/namespaces/default/deployments/work")["status"].get("readyReplicas", 0)


def test_a_cordoned_pool_takes_no_new_pods(host, grants, tenant):
    """What runs stays, across a restart of the fleet; what is new waits or is refused, with the reason, until it is over."""
    queues, rejects = (tenant(name, config=FOLLOWING, on=host) for name in ("queues", "rejects"))
    grants.bind(queues.namespace, guarantee="4", overQuota="queue", default=True)
    grants.bind(rejects.namespace, guarantee="4", overQuota="reject", default=True)
    grants.fleet.start()
    for vc in (queues, rejects):
        grants.until(vc.namespace, grant="4")
    k = queues.kubectl
    eventually(lambda: "a100" in k.names("nodes"), 60, "the node of the pool")
    k.apply(pod("stays", 2))
    running(k, "stays")
    uid = host_pod(queues, "stays")["metadata"]["uid"]

    maintain(host, state="cordon", reason="driver upgrade")
    said = 'pool "a100" takes no new pods: driver upgrade'
    pool_says(host, "Maintenance", "True", "Cordoned", "driver upgrade")
    grants.until(queues.namespace, grant="2")
    grants.until(rejects.namespace, grant="0")
    for vc in (queues, rejects):
        eventually(lambda v=vc: unavailable(v.kubectl) == said, 60, "the tenant to know")
        eventually(lambda v=vc: node_says(v) == ("Cordoned", said), 60, "its node to be closed")
    assert f"PoolUnavailable: {said}" in warned(k, "apply", "-f", "-", stdin=json.dumps(pod("waits", 2)))
    eventually(lambda: said in " ".join(events_of(k, "waits")), 60, "an Event of the pod that waits")
    refusal = rejects.kubectl.fails("create", "-f", "-", stdin=json.dumps(pod("refused", 1)))
    assert "forbidden" in refusal.lower() and f"PoolUnavailable: {said}" in refusal, refusal
    eventually(lambda: hard(host, queues, GPU) == 2 and hard(host, rejects, GPU) == 0, 60, "the bounds of the host")
    refused_by_host(host, queues, GPU)
    refused_by_host(host, rejects, GPU)

    grants.fleet.kill()
    grants.fleet.start()
    pool_says(host, "Maintenance", "True", "Cordoned")
    assert [p["metadata"]["uid"] for p in queues.host_pods()] == [uid], "what runs stays, and nothing else runs"
    assert "reclaim" not in grants.until(queues.namespace, grant="2")

    eventually(lambda: states_of(grants) == {"cordoned"}, 60, "the count of the fleet that began again")
    host.api.patch(POOL, {"spec": {"maintenance": {"until": "2026-01-01T00:00:00Z"}}})
    pool_says(host, "Maintenance", "True", "Overdue", "driver upgrade; until 2026-01-01T00:00:00Z")
    eventually(lambda: states_of(grants) == {"cordoned", "overdue"}, 60, "what the alert is of")

    maintain(host)
    running(k, "waits")
    assert host_pod(queues, "stays")["metadata"]["uid"] == uid
    grants.until(rejects.namespace, grant="4")
    for vc in (queues, rejects):
        eventually(lambda v=vc: not unavailable(v.kubectl) and not node_says(v), 60, "the pool to be as usual")
    assert "PoolUnavailable" not in warned(rejects.kubectl, "apply", "-f", "-", stdin=json.dumps(pod("refused", 1)))
    pool_says(host, "Maintenance", "False", "Open")
    assert not states_of(grants)


def test_nodes_of_the_host_are_shown_closed(host, grants, tenant):
    """Where a tenant sees the host's own nodes, those of the pool are closed to it, and no others; on the host none is."""
    vc = tenant("machines", config={"fleet": FOLLOWING["fleet"]}, on=host)
    grants.bind(vc.namespace, guarantee="4", default=True)
    grants.fleet.start()
    grants.until(vc.namespace, grant="4")
    own = ("gpu-a100-1", "gpu-a100-2")
    eventually(lambda: set(own) <= set(vc.kubectl.names("nodes")), 60, "the nodes of the pool")
    maintain(host, state="cordon", reason="driver upgrade")
    said = ("Cordoned", 'pool "a100" takes no new pods: driver upgrade')
    for name in own:
        eventually(lambda n=name: node_says(vc, n) == said, 60, "a node to be closed")
    shown = vc.kubectl("get", "nodes")
    assert sorted(line.split()[0] for line in shown.splitlines() if "SchedulingDisabled" in line) == list(own), shown
    assert not any(n["spec"].get("unschedulable") for n in host.api.get("/api/v1/nodes")["items"])
    maintain(host)
    for name in own:
        eventually(lambda n=name: not node_says(vc, n), 60, "a node to be as usual")


def test_a_drained_pool_is_given_back(host, grants, tenant):
    """Pods end after the grace and not before, though the fleet is killed meanwhile; then none holds or may hold a GPU."""
    vc = tenant("drained", config=FOLLOWING, on=host)
    k = vc.kubectl
    grants.bind(vc.namespace, guarantee="8", overQuota="queue", default=True)
    grants.fleet.start()
    grants.until(vc.namespace, grant="8")
    k.apply(workload("Deployment", "work", replicas=3))
    eventually(lambda: ready(vc) == 3, 120, "the pods to run")
    began = {p["metadata"]["uid"] for p in vc.host_pods()}

    maintain(host, state="drain", reason="new firmware", grace="30s")
    pool_says(host, "Maintenance", "True", "Draining", "new firmware")
    grants.until(vc.namespace, grant="0")
    notice = eventually(lambda: grants.status(vc.namespace).get("reclaim"), 60, "the notice")
    grants.fleet.kill()
    not_before = datetime.datetime.fromisoformat(notice["notBefore"].replace("Z", "+00:00"))
    grants.fleet.start()
    assert notice["gpus"] == "3", notice
    kept = grants.status(vc.namespace).get("reclaim")
    assert kept is None or kept["notBefore"] == notice["notBefore"], (notice, kept)
    said = 'pool "a100" is drained: new firmware'
    eventually(lambda: unavailable(k) == said and node_says(vc) == ("Draining", said), 60, "the tenant to know")

    def ended():
        left = {p["metadata"]["uid"] for p in vc.host_pods() if "deletionTimestamp" not in p["metadata"]} & began
        now = datetime.datetime.now(datetime.timezone.utc)
        assert len(left) == 3 or now >= not_before, (left, now, not_before)
        return not left
    eventually(ended, 90, "the end of the pods")
    pool_says(host, "Maintenance", "True", "Drained")
    eventually(lambda: hard(host, vc, GPU) == 0, 60, "the bound of the host")
    refused_by_host(host, vc, GPU)
    waiting = k.names("pods", "-l", "app=work")
    assert len(waiting) >= 3
    eventually(lambda: any(said in " ".join(events_of(k, name)) for name in k.names("pods", "-l", "app=work")), 60, "an Event")
    assert not [p for p in vc.host_pods() if p["spec"].get("nodeName") and "deletionTimestamp" not in p["metadata"]]

    maintain(host)
    eventually(lambda: ready(vc) == 3, 120, "its Deployment to run again")
    grants.until(vc.namespace, grant="8")
    eventually(lambda: not unavailable(k) and not node_says(vc), 60, "the pool to be as usual")


def advertise(host, node, gpus, slices):
    """What the operator of the host makes of a machine."""
    devices = {GPU: gpus, SLICE: slices}
    patch = {"capacity": devices, "allocatable": devices}
    host.api.patch(f"/api/v1/nodes/{node}/status", {"status": patch})


def sliced(name, slices):
    body = pod(name)
    body["spec"]["containers"][0]["resources"] = {"limits": {SLICE: str(slices)}}
    return body


def test_a_pool_is_converted_node_by_node(host, grants, tenant):
    """exclusive -> MIG -> exclusive: drained by what is in force, converted, and at no moment promised as both."""
    vc = tenant("converts", config=FOLLOWING, on=host)
    k = vc.kubectl
    grants.bind(vc.namespace, guarantee="10", overQuota="queue", default=True)
    grants.fleet.start()
    grants.until(vc.namespace, grant="10")
    k.apply(pod("whole", 2))
    running(k, "whole")
    resources = host.api.get(POOL)["spec"]["resources"]
    try:
        maintain(host, state="none", reason="to MIG", grace="30s")
        host.api.patch(POOL, {"spec": {"mode": "mig", "resources": None, "profiles": {"1g.10gb": {"gpuEq": "1/7"}}}})
        pool_says(host, "Converting", "True", "Draining", "from exclusive to mig")
        grants.until(vc.namespace, grant="0")
        eventually(lambda: "from exclusive to mig" in unavailable(k), 60, "the tenant to know")
        grants.fleet.kill()
        status = host.api.get(POOL)["status"]
        assert (status["mode"], status["inForce"]["mode"]) == ("exclusive", "exclusive"), status
        grants.fleet.start()
        pool_says(host, "Converting", "True", "WaitingForNodes")
        eventually(lambda: not vc.host_pods(), 60, "the pod to have ended")
        eventually(lambda: host.api.get(POOL)["status"]["mode"] == "mig", 60, "MIG in force")
        assert (hard(host, vc, GPU), hard(host, vc, SLICE)) == (0, 0)
        refused_by_host(host, vc, GPU)
        refused_by_host(host, vc, SLICE)
        pool_says(host, "Converting", "True", "WaitingForNodes", "2 of 2 nodes do not have its devices yet")

        advertise(host, "gpu-a100-1", None, "56")
        pool_says(host, "Converting", "True", "WaitingForNodes", "1 of 2 nodes do not have its devices yet")
        eventually(lambda: (hard(host, vc, GPU), hard(host, vc, SLICE)) == (0, 56), 60, "what the first node has")
        grants.until(vc.namespace, grant="8")
        advertise(host, "gpu-a100-2", None, "56")
        pool_says(host, "Converting", "False", "AsSpecified")
        grants.until(vc.namespace, grant="10")
        k.apply(sliced("slices", 3))
        running(k, "slices")
        assert hard(host, vc, SLICE) == 70 and not unavailable(k)
        refused_by_host(host, vc, GPU)

        host.api.patch(POOL, {"spec": {"mode": "exclusive", "profiles": None, "resources": resources}})
        pool_says(host, "Converting", "True", "WaitingForNodes", "2 of 2 nodes do not have its devices yet")
        for node in ("gpu-a100-1", "gpu-a100-2"):
            advertise(host, node, "8", None)
        pool_says(host, "Converting", "False", "AsSpecified")
        grants.until(vc.namespace, grant="10")
        k.apply(pod("again", 2))
        running(k, "again")
        assert (hard(host, vc, GPU), hard(host, vc, SLICE)) == (10, 0)
        assert condition(host.api.get(f"{bindings_of(vc.namespace)}/a100"), "Ready")["reason"] == "Granted"
    finally:
        for node in ("gpu-a100-1", "gpu-a100-2"):
            advertise(host, node, "8", None)
