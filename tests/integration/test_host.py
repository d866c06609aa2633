# SPDX-License-Identifier: Apache-2.0
"""The harness itself: the hosts the other tests stand on, a real one and `sublet host`, work alike."""
import re

import pytest

from testenv import eventually
from testenv.nodes import gpu_node, pool_config


@pytest.fixture
def namespace(host, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:63]
    host.create_namespace(name)
    yield name
    host.delete_namespace(name)


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "example.invalid/c:1",
                        "resources": spec.pop("resources", {})}], **spec}}


@pytest.mark.both_hosts
def test_version_is_the_one_asked_for(host):
    version = host.kubectl.json("version")
    assert version["serverVersion"]["gitVersion"] == "v1.36.3"
    assert version["clientVersion"]["gitVersion"] == "v1.36.3"


@pytest.mark.both_hosts
def test_every_node_is_ready(host):
    # Whatever a test did before to the control plane, kubelets have to report again.
    eventually(lambda: all(host.node_if_ready(n) for n in host.kubectl.names("nodes")), 60, "the nodes to be ready")
    nodes = host.kubectl.items("nodes")
    assert {n["metadata"]["name"] for n in nodes} == {
        "gpu-a100-1", "gpu-a100-2", "gpu-l4-1", "gpu-l4-2", "cpu-1", "cpu-2"}
    gpus = {n["metadata"]["name"]: n["status"]["allocatable"].get("nvidia.com/gpu") for n in nodes}
    assert gpus["gpu-a100-1"] == "8" and gpus["cpu-1"] is None


@pytest.mark.both_hosts
def test_deployment_becomes_ready(host, namespace):
    k = host.kubectl.within(namespace)
    k("create", "deployment", "web", "--image=example.invalid/web:1", "--replicas=3")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    pods = k.items("pods")
    assert len(pods) == 3
    assert {p["spec"]["nodeName"] for p in pods} <= {"cpu-1", "cpu-2"}


@pytest.mark.both_hosts
def test_job_completes(host, namespace):
    k = host.kubectl.within(namespace)
    k("create", "job", "once", "--image=example.invalid/job:1")
    k("wait", "--for=condition=complete", "job/once", "--timeout=180s")


@pytest.mark.both_hosts
def test_claim_is_provisioned(host, namespace):
    k = host.kubectl.within(namespace)
    k.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
             "spec": {"accessModes": ["ReadWriteOnce"],
                      "resources": {"requests": {"storage": "1Gi"}}}})
    k("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=180s")


@pytest.mark.both_hosts
def test_gpu_pod_lands_in_its_pool(host, namespace):
    k = host.kubectl.within(namespace)
    pool = pool_config("a100", "a100")
    k.apply(pod("train", nodeSelector=pool["nodeSelector"], tolerations=pool["tolerations"],
                resources={"limits": {"nvidia.com/gpu": "8"}}))
    k("wait", "--for=condition=Ready", "pod/train", "--timeout=180s")
    assert k.json("get", "pod", "train")["spec"]["nodeName"] in ("gpu-a100-1", "gpu-a100-2")


@pytest.mark.both_hosts
def test_gpu_pod_without_tolerations_stays_pending(host, namespace):
    k = host.kubectl.within(namespace)
    k.apply(pod("train", resources={"limits": {"nvidia.com/gpu": "1"}}))

    def unschedulable():
        conditions = k.json("get", "pod", "train")["status"].get("conditions", [])
        return [c for c in conditions if c.get("reason") == "Unschedulable"]

    assert "untolerated taint" in eventually(unschedulable, 60, "the scheduler's refusal")[0]["message"]


@pytest.mark.both_hosts
def test_node_comes_and_goes(host):
    host.add_node(gpu_node("gpu-extra", "extra", model="h100", gpus=4, replicas=2))
    node = host.kubectl.json("get", "node", "gpu-extra")
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-SHARED"
    host.remove_node("gpu-extra")
    assert "NotFound" in host.kubectl.fails("get", "node", "gpu-extra")


@pytest.mark.both_hosts
@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_apiserver_restarts_on_its_port(host, namespace, kill):
    before = host.components["kube-apiserver"].pid
    host.restart_component("kube-apiserver", kill=kill)
    assert host.components["kube-apiserver"].pid != before
    k = host.kubectl.within(namespace)
    k.apply(pod("after"))
    k("wait", "--for=condition=Ready", "pod/after", "--timeout=180s")


@pytest.mark.both_hosts
def test_paused_apiserver_answers_after_it_resumes(host):
    api = host.api.clone()
    api.timeout = 1
    host.pause_component("kube-apiserver")
    try:
        with pytest.raises(OSError):
            api.get("/version")
    finally:
        host.resume_component("kube-apiserver")
    assert eventually(lambda: host.api.get("/version"), 30)["gitVersion"] == "v1.36.3"


@pytest.mark.both_hosts
def test_service_account_kubeconfig_is_bound_by_rbac(host, namespace):
    kubeconfig = host.service_account_kubeconfig(namespace, "reader")
    k = host.kubectl.within(namespace)
    k("create", "rolebinding", "reader", "--clusterrole=view", f"--serviceaccount={namespace}:reader")
    k.kubeconfig = k.env["KUBECONFIG"] = kubeconfig
    eventually(lambda: k.run("get", "pods", "-o", "name")[:2] == (0, ""), 30, "the account to be permitted")
    assert "Forbidden" in k.fails("get", "secrets")


def test_death_of_a_component_is_seen_at_once(host):
    kwok = host.components["kwok"]
    host.kill_component("kwok")
    try:
        with pytest.raises(AssertionError, match="kwok ended with -9"):
            host.wait_ready("kwok", timeout=600)
    finally:
        host.start_component("kwok")
    assert kwok.alive
