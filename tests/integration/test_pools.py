# SPDX-License-Identifier: Apache-2.0
"""Guardrails of pools on a real host: nodes with devices and no label, what an apply warns of, nodes that are lost."""
import contextlib
import json

import pytest

from testenv import UNSET, eventually
from testenv.nodes import cpu_node, gpu_node, pool_config

from test_tenant import GPU, host_pod, pod, running

NPU = "x.example/npu"


@pytest.fixture
def unlabelled(real_host):
    """A machine with more processors than any other, devices, and neither a label nor a taint that says so."""
    node = cpu_node("npu-1", cpu="96")
    for part in ("capacity", "allocatable"):
        node["status"][part] = {**node["status"][part], NPU: "8"}
    real_host.add_node(node)
    yield node["metadata"]["name"]
    with contextlib.suppress(AssertionError):
        real_host.remove_node(node["metadata"]["name"])


def large(name, cpu):
    body = pod(name)
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return body


def test_a_tenant_without_pools_keeps_off_nodes_with_devices(tenant, real_host, unlabelled):
    vc = tenant("plain")
    k = vc.kubectl
    k.apply([large("fits", "1"), large("huge", "64")])  # only the machine with devices has 64
    running(k, "fits")
    said = eventually(lambda: [c["message"] for c in k.json("get", "pod", "huge")["status"].get("conditions", [])
                               if c.get("reason") == "Unschedulable"], 60, "the scheduler's word")
    assert "Insufficient cpu" in said[0], said
    assert "nodeName" not in host_pod(vc, "huge")["spec"]
    term = host_pod(vc, "huge")["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert {"key": "metadata.name", "operator": "NotIn", "values": [unlabelled]} in term["nodeSelectorTerms"][0]["matchFields"]
    assert unlabelled not in k.names("nodes")
    eventually(lambda: "1 nodes of the host have devices and no label that keeps other pods off" in str(
        vc.api.raw("GET", "/readyz/warnings")[2]), 30, "the notice")

    plain = tenant("named", config={"policy": {"plainResources": ["x.example/"]}})
    plain.kubectl.apply(large("huge", "64"))
    running(plain.kubectl, "huge")
    assert host_pod(plain, "huge")["spec"]["nodeName"] == unlabelled


def workload(kind, name, **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name, 1)["spec"]}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": {**spec, "template": template}}


def warned(k, *args, stdin=None):
    code, _, err = k.run(*args, stdin=stdin)
    assert code == 0, err
    return err


EXCEEDS = f'pods that request {GPU}=1 each exceed the limit of pool "shared", 8 GPU: no more than 8 of them run at once'


def test_more_replicas_than_the_limit_are_a_warning(tenant, pools):
    k = tenant("research", config=pools).kubectl
    for kind, spec in (("Deployment", {"replicas": 9}), ("ReplicaSet", {"replicas": 9}), ("StatefulSet", {"replicas": 9}),
                       ("Job", {"parallelism": 9, "completions": 20})):
        text = warned(k, "apply", "--dry-run=server", "-f", "-", stdin=json.dumps(workload(kind, "w", **spec)))
        assert f'{kind} "w": 9 {EXCEEDS}' in text, text
    assert "exceed" not in warned(k, "apply", "-f", "-", stdin=json.dumps(workload("Deployment", "w", replicas=2)))
    k("rollout", "status", "deployment/w", "--timeout=180s")
    assert f'Deployment "w": 20 {EXCEEDS}' in warned(k, "scale", "deployment/w", "--replicas=20")
    eventually(lambda: k.json("get", "deployment", "w")["status"].get("readyReplicas") == 8, 60, "as many as fit")


def test_variables_that_are_left_out_are_a_warning(tenant, pools):
    k = tenant("research", config=pools).kubectl
    text = warned(k, "create", "configmap", "c", "--from-literal=NVIDIA_VISIBLE_DEVICES=all", "--from-literal=a=b")
    assert "Warning: data[NVIDIA_VISIBLE_DEVICES] is left out of what pods get" in text
    text = warned(k, "create", "secret", "generic", "s", "--from-literal=NVIDIA_VISIBLE_DEVICES=all")
    assert "Warning: data[NVIDIA_VISIBLE_DEVICES] is left out" in text


def test_nodes_have_no_time_of_year_one(tenant, pools):
    k = tenant("research", config=pools).kubectl
    eventually(lambda: len(k.names("nodes")) == 6, 60, "the nodes")
    described = k("describe", "nodes")
    assert "0001" not in described and "<unknown>" not in described.split("Conditions:")[1].split("Addresses:")[0]


@pytest.fixture
def silent(real_host):
    """silent(name): a machine of pool `lost` with one GPU and no kubelet; it does not answer after silence()."""
    made = []

    def add(name):
        node = gpu_node(name, "lost", gpus=1)
        node["metadata"]["annotations"] = {}
        node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        made.append(name)
        real_host.add_node(node)
        return name
    yield add
    for name in made:
        with contextlib.suppress(AssertionError):
            real_host.remove_node(name)


def lose(real_host, name):
    real_host.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "silent"}]}})


def on_lost_node(tenant, real_host, name, **more):
    """A tenant whose only GPU is held by a pod of that node, which is silent by now."""
    vc = tenant("loss", config={"pools": [pool_config("lost", **more)], "bindings": [{"pool": "lost", "guarantee": "1"}]})
    soon = [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
            for k in ("not-ready", "unreachable")]
    vc.kubectl.apply(pod("train", 1, tolerations=soon, terminationGracePeriodSeconds=1))
    eventually(lambda: host_pod(vc, "train")["spec"].get("nodeName") == name, 60, "the pod to be placed", also=UNSET)
    lose(real_host, name)
    return vc


def test_a_lost_pod_stays_charged_until_it_is_gone(tenant, real_host, silent):
    name = silent("lost-kept")
    vc = on_lost_node(tenant, real_host, name)
    k = vc.kubectl
    status = eventually(lambda: (s := k.json("get", "pod", "train")["status"]).get("reason") == "NodeLost" and s, 90, "the loss")
    assert status["message"] == f"Node {name} which was running pod train is unresponsive"
    assert "Unknown" in k("get", "pod", "train")
    k("delete", "pod", "train", "--force")
    eventually(lambda: not k.names("pods"), 30, "the tenant's pod to be gone")
    assert host_pod(vc, "train")["metadata"]["deletionTimestamp"]
    assert "exceeded quota: gpu/lost, requested: gpu=1, used: gpu=1, limited: gpu=1" in k.fails(
        "create", "-f", "-", stdin=json.dumps(pod("next", 1)))
    k.create(pod("train", 0))
    says = f"its node {name} does not answer"
    eventually(lambda: says in k("describe", "pod", "train"), 60, "why its successor waits")
    assert "PredecessorLost" in k("describe", "pod", "train")
    real_host.remove_node(name)
    eventually(lambda: k.json("get", "pod", "train")["status"]["phase"] == "Running", 120, "the successor to run")
    eventually(lambda: k.run("create", "-f", "-", stdin=json.dumps(pod("next", 1)))[0] == 0, 120, "the GPU to be free")


def test_a_lost_pod_is_given_up_by_rule(tenant, real_host, silent):
    name = silent("lost-rule")
    vc = on_lost_node(tenant, real_host, name, release={"onNodeLossAfter": "5s"})
    eventually(lambda: not vc.host_pods() and not vc.kubectl.names("pods"), 120, "the pod to be given up")
    assert real_host.api.get(f"/api/v1/nodes/{name}")
    assert "takes its GPUs back" in vc.kubectl("get", "events")
    vc.kubectl.create(pod("next", 1))
