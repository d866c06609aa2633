# SPDX-License-Identifier: Apache-2.0
"""Pods of one Job as a gang of the host's real KAI and real Volcano: all of them start, or none."""
import json
import re

import pytest

from testenv import UNSET, eventually
from testenv.nodes import pool_config

from test_kueue import job
from test_schedulers import waiting
from test_tenant import host_pod, pod, running

GROUP = {"kai": "pod-group-name", "volcano": "scheduling.k8s.io/group-name"}
QUEUE = "t-research"
SIZE = "sublet.dev/gang-size"


@pytest.fixture
def vc(tenant, scheduler):
    """A tenant whose Jobs are gangs, in a queue of three GPUs."""
    scheduler.queue(QUEUE, gpus=3)
    made = tenant("research", config={
        "pools": [pool_config("shared", "l4", kind="shared",
                              scheduler={"kind": scheduler.kind, "queueTemplate": "t-{tenant}", "gang": True})],
        "bindings": [{"pool": "shared", "guarantee": "8"}]})
    yield made
    for kind in ("jobs", "pods"):
        for name in made.kubectl.names(kind):
            made.kubectl("delete", kind, name, "--wait=false", "--ignore-not-found")
    eventually(lambda: not made.host_pods(), 60, "the host's pods gone")
    eventually(lambda: not groups(scheduler, made), 60, "its PodGroups gone")
    scheduler.drop_queue(QUEUE)


def gang(name, size, gpus=1, **spec):
    made = job(name, gpus)
    made["spec"].update({"parallelism": size, "completions": size, **spec})
    return made


def groups(scheduler, vc):
    """Those that are ours; the schedulers make others for pods that are alone."""
    return [g for g in scheduler.pod_groups(vc.namespace) if re.fullmatch("g-[0-9a-f]{10}-[a-z2-7]{16}", g["metadata"]["name"])]


def pods_of(k, name, number):
    return eventually(lambda: (lambda found: found if len(found) == number else None)(k.names("pods", "-l", "job-name=" + name)), 60,
                      f"{number} pods of {name}")


def all_wait(k, names):
    for name in names:
        eventually(lambda n=name: (waiting(k, n) or "").startswith(f'waiting in queue "{QUEUE}": '), 60, f"{name} to wait")


def test_all_start_or_none(vc, scheduler):
    k = vc.kubectl
    k.apply(pod("holds", 1))
    running(k, "holds")
    k.apply(gang("train", 3))
    names = pods_of(k, "train", 3)
    all_wait(k, names)
    ours = groups(scheduler, vc)
    assert len(ours) == 1 and ours[0]["spec"]["minMember"] == 3 and ours[0]["spec"]["queue"] == QUEUE, ours
    for name in names:
        held = host_pod(vc, name)
        assert held["metadata"]["annotations"][GROUP[scheduler.kind]] == ours[0]["metadata"]["name"]
        assert "nodeName" not in held["spec"], name
    shown = json.dumps(k.json("get", "pods"))
    assert ours[0]["metadata"]["name"] not in shown and "pod-group" not in shown, shown

    vc.restart()
    all_wait(k, names)
    assert [g["metadata"]["uid"] for g in groups(scheduler, vc)] == [ours[0]["metadata"]["uid"]]
    k("delete", "pod", "holds")
    k("wait", "--for=condition=Complete", "job/train", "--timeout=120s")
    said = [e["message"] for e in k.items("events")]
    assert not [m for m in said if vc.namespace in m or ours[0]["metadata"]["name"] in m or QUEUE in m], said
    k("delete", "job", "train", "--timeout=60s")
    eventually(lambda: not groups(scheduler, vc), 60, "its PodGroup gone", also=UNSET)
    assert not vc.host_pods()


def test_a_gang_that_waits_is_deleted(vc, scheduler):
    k = vc.kubectl
    k.apply(gang("large", 4))
    all_wait(k, pods_of(k, "large", 4))
    k("delete", "job", "large", "--timeout=60s")
    eventually(lambda: not vc.host_pods() and not groups(scheduler, vc), 60, "its pods and its PodGroup gone")


def test_it_follows_parallelism(vc, scheduler):
    k = vc.kubectl
    k.apply(gang("large", 4, completions=8))
    names = pods_of(k, "large", 4)
    all_wait(k, names)
    k("patch", "job", "large", "--type=merge", "-p", '{"spec": {"parallelism": 3}}')
    eventually(lambda: [g["spec"]["minMember"] for g in groups(scheduler, vc)] == [3], 60, "the PodGroup of three")
    k("wait", "--for=condition=Complete", "job/large", "--timeout=180s")


def test_a_size_by_annotation(vc, scheduler):
    """For owners of any kind; what it is not is refused."""
    k = vc.kubectl
    template = {"metadata": {"labels": {"app": "w"}, "annotations": {SIZE: "2"}}, "spec": pod("w", 2)["spec"]}
    k.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w"}, "spec": {
        "replicas": 2, "serviceName": "w", "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"app": "w"}},
        "template": template}})
    eventually(lambda: len(k.names("pods")) == 2, 60, "two pods")
    all_wait(k, k.names("pods"))
    assert [g["spec"]["minMember"] for g in groups(scheduler, vc)] == [2]
    k("delete", "statefulset", "w", "--timeout=60s")
    eventually(lambda: not k.names("pods"), 60, "its pods gone")
    bad = pod("bad", 1)
    bad["metadata"]["annotations"] = {SIZE: "many"}
    code, _, err = k.run("create", "-f", "-", stdin=json.dumps(bad))
    assert code and f'{SIZE}: "many" is not a number of pods from 1 to 10000' in err, err
