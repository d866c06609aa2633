# SPDX-License-Identifier: Apache-2.0
"""Pods of one Job as a gang of Kubernetes' own scheduler: PodGroups of scheduling.k8s.io, where the host serves them."""
import json

import pytest

from testenv import UNSET, binaries, eventually
from testenv.api import ApiError
from testenv.helm import Helm
from testenv.host import HostCluster
from testenv.nodes import pool_config

import test_host_fence as fence
from test_gangs import SIZE, gang, pods_of
from test_schedulers import waiting
from test_tenant import host_pod, pod, running

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups"


@pytest.fixture(scope="module")
def gang_host(tmp_path_factory):
    version = binaries.queue_program("kube-apiserver")[1]
    made = HostCluster(tmp_path_factory.mktemp("gang-host"), version=version, gates=("GenericWorkload",),
                       api_args=("--runtime-config=scheduling.k8s.io/v1beta1=true",))
    made.start()
    try:
        made.add_gpu_node("gpu-l4-1", pool="shared", model="l4", gpus=4)
        made.add_cpu_node("cpu-1")
        yield made
    finally:
        made.stop()


def config():
    return {"pools": [pool_config("shared", "l4", kind="shared", scheduler={"kind": "native", "gang": True})],
            "bindings": [{"pool": "shared", "guarantee": "16"}]}


@pytest.fixture
def vc(tenant, gang_host):
    made = tenant("research", config=config(), on=gang_host)
    yield made
    for kind in ("jobs", "replicasets", "pods"):
        for name in made.kubectl.names(kind):
            made.kubectl("delete", kind, name, "--wait=false", "--ignore-not-found")
    eventually(lambda: not made.host_pods() and not groups(made), 60, "the host's pods and its PodGroups gone")


def groups(vc):
    return vc.host.api.get(GROUPS.format(vc.namespace))["items"]


def sizes(vc):
    return [g["spec"]["schedulingPolicy"]["gang"]["minCount"] for g in groups(vc)]


def test_all_start_or_none(vc):
    k = vc.kubectl
    k.apply(pod("holds", 2))
    running(k, "holds")
    k.apply(gang("train", 3))
    names = pods_of(k, "train", 3)
    for name in names:
        eventually(lambda n=name: waiting(k, n), 60, f"{name} to say why it waits")
    ours, = groups(vc)
    assert sizes(vc) == [3] and ours["metadata"]["labels"]["sublet.dev/pool"] == "shared", ours
    for name in names:
        held = host_pod(vc, name)
        assert held["spec"]["schedulingGroup"] == {"podGroupName": ours["metadata"]["name"]}
        assert "nodeName" not in held["spec"], name
    shown = json.dumps(k.json("get", "pods")) + json.dumps(k.items("events"))
    assert ours["metadata"]["name"] not in shown and vc.namespace not in shown and "schedulingGroup" not in shown, shown

    vc.restart()
    assert [g["metadata"]["uid"] for g in groups(vc)] == [ours["metadata"]["uid"]]
    k("delete", "pod", "holds")
    k("wait", "--for=condition=Complete", "job/train", "--timeout=120s")
    k("delete", "job", "train", "--timeout=60s")
    eventually(lambda: not groups(vc), 60, "its PodGroup gone")
    assert not vc.host_pods()


def test_it_follows_parallelism(vc):
    """The size of a group may change; what has run is waited for no more."""
    k = vc.kubectl
    k.apply(gang("large", 5, completions=7))
    pods_of(k, "large", 5)
    eventually(lambda: sizes(vc) == [5], 60, "the PodGroup of five, which no node takes")
    k("patch", "job", "large", "--type=merge", "-p", '{"spec": {"parallelism": 4}}')
    eventually(lambda: sizes(vc) == [4], 60, "the PodGroup of four")
    k("wait", "--for=condition=Complete", "job/large", "--timeout=180s")


def test_a_pod_waits_for_the_others(vc):
    """Fewer pods than the gang is of: the scheduler does not even try, and says nothing of it; the tenant's pod does."""
    k = vc.kubectl
    k.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "half"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "half"}}, "template": {
            "metadata": {"labels": {"app": "half"}, "annotations": {SIZE: "2"}}, "spec": pod("half", 1)["spec"]}}})
    name, = eventually(lambda: k.names("pods", "-l", "app=half"), 60, "its pod")
    eventually(vc.host_pods, 60, "its host pod")
    held = host_pod(vc, name)
    assert held["spec"]["schedulingGroup"] and sizes(vc) == [2]
    k.apply(pod("later", 1))
    running(k, "later")
    assert "nodeName" not in host_pod(vc, name)["spec"]
    assert waiting(k, name) == "waiting for the other pods of its gang"
    k("scale", "replicaset", "half", "--replicas=2")
    for name in eventually(lambda: (lambda n: n if len(n) == 2 else None)(k.names("pods", "-l", "app=half")), 60, "two pods"):
        running(k, name)
    k("delete", "replicaset", "half", "--timeout=60s")


def test_a_host_without_them(tenant, real_host):
    """Nothing of a gang is created, and its pods say why; pods that are alone run."""
    with pytest.raises(ApiError) as e:
        real_host.api.get(GROUPS.format("default"))
    assert e.value.code == 404
    vc = tenant("research", config=config(), on=real_host)
    k = vc.kubectl
    k.apply(gang("train", 2))
    name = pods_of(k, "train", 2)[0]
    eventually(lambda: waiting(k, name) == "the host cluster does not serve the PodGroups that its gang needs", 60, "the reason")
    k.apply(pod("alone", 1))
    running(k, "alone")
    assert [p["metadata"]["annotations"]["sublet.dev/name"] for p in vc.host_pods()] == ["alone"]
    k("delete", "job", "train", "--timeout=60s")
    k("delete", "pod", "alone", "--timeout=60s")


def test_the_host_fence_knows_its_groups(gang_host, tmp_path, monkeypatch):
    """A stolen token makes no group of another name or kind, and no pod that is in one."""
    monkeypatch.setattr(fence, "values_of", lambda on: {
        "namespaceCheck": False, "persistence": {"enabled": False}, "hostFence": {"enabled": on}, "config": config()})
    side = fence.Side(gang_host, Helm(tmp_path, gang_host.kubeconfig), True)

    def fenced():
        with pytest.raises(ApiError, match="host fence"):
            side.api.post(side.path("endpoints"), {"metadata": {"name": "x"}}, dryRun="All")
        return True

    eventually(fenced, 60, "the policies", also=UNSET)
    eventually(lambda: side.api.get(side.path("serviceaccounts", "research-pods")), 30, "the account of pods")
    path, own = GROUPS.format(side.namespace), fence.group_name(side.namespace)

    def group(name, **spec):
        return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {**fence.metadata("train"), "name": name},
                "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}}

    def refused(why, path, body):
        with pytest.raises(ApiError, match=why):
            side.api.post(path, body, dryRun="All")

    refused("metadata.name: not a group of this virtual cluster", path, group(fence.group_name("team-other")))
    refused("a group starts together", path, group(own, schedulingPolicy={"basic": {}}))
    refused("a group starts together", path, group(own, disruptionMode={"all": {}}))
    gang_host.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "others"}, "value": 5})
    refused("spec.priorityClassName: a class that no bound pool has", path, group(own, priorityClassName="others"))
    refused("spec: a field that is not sent", path, group(own, workloadRef={"workloadName": "w", "templateName": "t"}))
    side.api.post(path, group(own))
    side.api.patch(f"{path}/{own}", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})

    def grouped(name):
        return fence.change(fence.pod(), "spec.schedulingGroup", {"podGroupName": name})

    side.api.post(side.path("pods"), grouped(own), dryRun="All")
    refused("spec.schedulingGroup: not a group of this virtual cluster", side.path("pods"), grouped(fence.group_name("team-other")))
    side.api.delete(f"{path}/{own}")
