# SPDX-License-Identifier: Apache-2.0
"""Pods of one Job as a group of the host's real Kueue: all of them are admitted, or none, and nothing of the group is left."""
import json

import pytest

from testenv import UNSET, eventually
from testenv.kueue import API
from testenv.nodes import pool_config

from test_gangs import gang, pods_of
from test_kueue import GATE, GROUP, gated
from test_tenant import host_pod, pod, running

LACKING = 'waiting in queue "t-research": '


@pytest.fixture
def vc(tenant, kueue):
    """A tenant whose Jobs are gangs, in a queue of three GPUs, one of which is held."""
    made = tenant("research", config={
        "pools": [pool_config("shared", "l4", kind="shared", scheduler={"kind": "kueue", "queueTemplate": "t-{tenant}", "gang": True})],
        "bindings": [{"pool": "shared", "guarantee": "8"}]})
    kueue.queue(made.namespace, "t-research", gpus=3)
    made.kubectl.apply(pod("holds", 1))
    running(made.kubectl, "holds")
    yield made
    for kind in ("jobs", "pods"):
        for name in made.kubectl.names(kind):
            made.kubectl("delete", kind, name, "--wait=false", "--ignore-not-found")
    eventually(lambda: not made.host_pods(), 60, "the host's pods gone")
    eventually(lambda: not workloads(kueue, made), 60, "their Workloads gone")
    kueue.drop_queue(made.namespace, "t-research")


def workloads(kueue, vc):
    return kueue.host.api.get(f"{API}/namespaces/{vc.namespace}/workloads")["items"]


def group_of(kueue, vc, name):
    """The Workload of a pod's group."""
    group = host_pod(vc, name)["metadata"]["labels"][GROUP]
    return next((w for w in workloads(kueue, vc) if w["metadata"]["name"] == group), None)


def all_wait(vc, kueue, names):
    for name in names:
        eventually(lambda n=name: (gated(vc.kubectl, n) or "").startswith(LACKING), 60, f"{name} to wait", also=UNSET)
        assert {"name": GATE} in host_pod(vc, name)["spec"]["schedulingGates"]
    found = eventually(lambda: group_of(kueue, vc, names[0]), 60, "the group's Workload")
    assert len(found["metadata"]["ownerReferences"]) == len(names)


def test_all_are_admitted_or_none(vc, kueue):
    k = vc.kubectl
    k.apply(gang("train", 3))
    names = pods_of(k, "train", 3)
    all_wait(vc, kueue, names)
    assert "kueue" not in json.dumps([p["metadata"] for p in k.items("pods")])
    before = host_pod(vc, names[0])["metadata"]["uid"]
    vc.restart()
    all_wait(vc, kueue, names)
    assert host_pod(vc, names[0])["metadata"]["uid"] == before
    k("delete", "pod", "holds")
    k("wait", "--for=condition=Complete", "job/train", "--timeout=120s")
    k("delete", "job", "train", "--timeout=60s")
    eventually(lambda: not vc.host_pods() and not workloads(kueue, vc), 60, "its pods and its Workload gone")


def test_a_group_that_waits_is_deleted(vc, kueue):
    k = vc.kubectl
    k.apply(gang("large", 4))
    all_wait(vc, kueue, pods_of(k, "large", 4))
    k("delete", "job", "large", "--timeout=60s")
    eventually(lambda: len(vc.host_pods()) == 1 and len(workloads(kueue, vc)) == 1, 60, "its pods and its Workload gone")


def test_a_deleted_pod_is_replaced_in_the_group(vc, kueue):
    k = vc.kubectl
    k.apply(gang("train", 3))
    names = pods_of(k, "train", 3)
    all_wait(vc, kueue, names)
    k("delete", "pod", names[0], "--timeout=60s")
    all_wait(vc, kueue, pods_of(k, "train", 3))
    k("delete", "pod", "holds")
    k("wait", "--for=condition=Complete", "job/train", "--timeout=120s")


def test_a_suspended_gang_leaves_and_returns(vc, kueue):
    k = vc.kubectl
    k.apply(gang("train", 3))
    all_wait(vc, kueue, pods_of(k, "train", 3))
    k("patch", "job", "train", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    eventually(lambda: len(vc.host_pods()) == 1 and len(workloads(kueue, vc)) == 1, 60, "its pods and its Workload gone")
    k("patch", "job", "train", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    all_wait(vc, kueue, pods_of(k, "train", 3))


def test_a_job_that_is_no_group_is_admitted_one_by_one(vc, kueue):
    """With more completions than run at once: Kueue would take its later pods for too many."""
    k = vc.kubectl
    k.apply(gang("many", 2, completions=5))
    k("wait", "--for=condition=Complete", "job/many", "--timeout=120s")
    assert not [p for p in vc.host_pods() if GROUP in p["metadata"]["labels"]]
