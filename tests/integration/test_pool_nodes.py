# SPDX-License-Identifier: Apache-2.0
"""`sync.nodes: perPool`: one Node for each pool, with what the tenant has and can still get, and no machine."""
import json

import pytest

from testenv import eventually

from test_tenant import GPU, host_pod, pod, running

pytestmark = pytest.mark.both_hosts

ON = {"sync": {"nodes": "perPool"}}
MACHINES = ("gpu-a100", "gpu-l4", "cpu-1", "cpu-2")


@pytest.fixture
def vc(tenant, pools):
    return tenant("research", config={**pools, **ON})


def allocatable(vc, node):
    return vc.api.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]


def node_of(k, name):
    return k("get", "pod", name, "-o", "jsonpath={.spec.nodeName}")


def machines(host, pool):
    return [n for n in host.api.get("/api/v1/nodes")["items"] if n["metadata"]["labels"].get("sublet.dev/pool") == pool]


def names_a_machine(*answers):
    return [m for m in MACHINES for a in answers if m in json.dumps(a)]


def test_a_tenant_sees_pools_and_no_machine(vc, host):
    k = vc.kubectl
    eventually(lambda: k.names("nodes") == ["a100", "no-pool", "shared"], 60, "a node for each pool")
    eventually(lambda: allocatable(vc, "a100").get(GPU) == "8", 60, "the guarantee, of sixteen")
    node = vc.api.get("/api/v1/nodes/a100")
    products = {m["metadata"]["labels"]["nvidia.com/gpu.product"] for m in machines(host, "a100")}
    assert {node["metadata"]["labels"]["nvidia.com/gpu.product"]} == products
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "a100"
    assert [c["status"] for c in node["status"]["conditions"]] == ["True"]
    assert GPU not in allocatable(vc, "no-pool")
    described = k("describe", "node", "a100")
    assert "0001" not in described and "<unknown>" not in described.split("Conditions:")[1].split("Addresses:")[0]

    k.apply(pod("train", gpus=2))
    k.apply(pod("web"))
    running(k, "train")
    running(k, "web")
    assert (node_of(k, "train"), node_of(k, "web")) == ("shared", "no-pool")
    k.apply(pod("big", gpus=3, nodeName="a100", labels={"sublet.dev/gpu-pool": "a100"}))
    running(k, "big")
    assert node_of(k, "big") == "a100" and host_pod(vc, "big")["spec"]["nodeName"].startswith("gpu-a100")
    assert allocatable(vc, "a100")[GPU] == "8"  # what pods hold is part of it

    events = eventually(lambda: [e for e in vc.api.get("/api/v1/events")["items"] if e["reason"] == "Scheduled"], 60,
                        "an Event of the host's scheduler", also=(404,))
    assert any(e["message"].endswith("to a100") or e["message"].endswith("to shared") or e["message"].endswith("to no-pool")
               for e in events)
    assert not names_a_machine(vc.api.get("/api/v1/nodes"), vc.api.get("/api/v1/pods"), vc.api.get("/api/v1/events"))
    assert not any("hostIP" in p["status"] for p in vc.api.get("/api/v1/pods")["items"])
    code, _, data = vc.api.raw("GET", "/api/v1/nodes/a100/proxy/pods")
    assert code == 403, data


def test_names_of_machines_lead_nowhere(vc):
    k = vc.kubectl
    eventually(lambda: "no-pool" in k.names("nodes"), 60, "the nodes")
    assert "this virtual cluster has no such node" in k.fails(
        "create", "-f", "-", stdin=json.dumps(pod("x", nodeName="cpu-1")))
    assert "the devices it requests decide its pool" in k.fails(
        "create", "-f", "-", stdin=json.dumps(pod("x", nodeName="a100")))
    k.apply(pod("probe", nodeSelector={"kubernetes.io/hostname": "cpu-1"}))
    k.apply(pod("here", nodeSelector={"kubernetes.io/hostname": "no-pool"}))
    running(k, "here")
    assert "nodeSelector" not in host_pod(vc, "here")["spec"]
    terms = host_pod(vc, "probe")["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert "DoesNotExist" in json.dumps(terms) and "cpu-1" not in json.dumps(host_pod(vc, "probe")["spec"])


def test_a_daemon_set_runs_where_its_pods_may(vc):
    k = vc.kubectl
    eventually(lambda: k.names("nodes") == ["a100", "no-pool", "shared"], 60, "a node for each pool")
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod("x")["spec"]}
    k.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
             "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template}})
    k("rollout", "status", "daemonset/agent", "--timeout=120s")
    assert [p["spec"]["nodeName"] for p in k.items("pods")] == ["no-pool"]


def test_a_quota_of_the_host_is_followed_live(vc, host):
    k = vc.kubectl
    path = f"/api/v1/namespaces/{vc.namespace}/resourcequotas"
    eventually(lambda: allocatable(vc, "a100").get(GPU) == "8", 60, "the guarantee", also=(404,))
    host.api.post(path, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
                         "spec": {"hard": {"requests.cpu": "3", "limits.memory": "8Gi", f"requests.{GPU}": "5"}}})
    bounded = {"cpu": "3", "memory": "8Gi", GPU: "5"}
    eventually(lambda: {**allocatable(vc, "a100"), **bounded} == allocatable(vc, "a100"), 90, "what the quota leaves")
    small = pod("small")
    small["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    k.apply(small)
    running(k, "small")
    # Its own CPU is part of what its node has, and missing from the others.
    eventually(lambda: (allocatable(vc, "no-pool")["cpu"], allocatable(vc, "a100")["cpu"]) == ("3", "2"), 90, "what is left")
    host.api.delete(f"{path}/team")
    eventually(lambda: allocatable(vc, "a100")[GPU] == "8", 90, "the limit of the binding again")


def test_cordoned_machines_have_no_room(vc, host):
    eventually(lambda: allocatable(vc, "a100").get(GPU) == "8", 60, "the guarantee", also=(404,))
    own = [m["metadata"]["name"] for m in machines(host, "a100")]
    try:
        for name in own:
            host.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
        eventually(lambda: vc.api.get("/api/v1/nodes/a100")["spec"].get("unschedulable"), 60, "the node to be cordoned")
        eventually(lambda: allocatable(vc, "a100")[GPU] == "0", 60, "no room on it")
    finally:
        for name in own:
            host.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})
    eventually(lambda: allocatable(vc, "a100")[GPU] == "8", 60, "the machines to be back")


def test_a_running_tenant_changes_the_option(tenant, pools):
    vc = tenant("research", config=pools)
    k = vc.kubectl
    k.apply(pod("web"))
    running(k, "web")
    uid = host_pod(vc, "web")["metadata"]["uid"]
    machine = node_of(k, "web")
    vc.write_config(ON)
    vc.restart()
    eventually(lambda: node_of(k, "web") == "no-pool" and k.names("nodes") == ["a100", "no-pool", "shared"], 60,
               "the nodes of pools alone")
    assert host_pod(vc, "web")["metadata"]["uid"] == uid and machine.startswith("cpu-")
