# SPDX-License-Identifier: Apache-2.0
"""Pods of pools that the host's real KAI and real Volcano schedule: they wait, say why, run, and leave, and nothing of theirs is
fought."""
import json

import pytest

from testenv import eventually
from testenv.nodes import pool_config

from test_kueue import job
from test_tenant import host_pod, pod, running

KEYS = {"kai": ("labels", "kai.scheduler/queue", "kai-scheduler"),
        "volcano": ("annotations", "scheduling.volcano.sh/queue-name", "volcano")}
WAITS = {"kai": "the queue has reached its limit", "volcano": "its turn has not come"}
QUEUE = "t-research"


@pytest.fixture
def vc(tenant, scheduler):
    """A tenant with eight GPUs of its own quota, in a queue of two."""
    scheduler.queue(QUEUE, gpus=2)
    made = tenant("research", config={
        "pools": [pool_config("shared", "l4", kind="shared", scheduler={"kind": scheduler.kind, "queueTemplate": "t-{tenant}"})],
        "bindings": [{"pool": "shared", "guarantee": "8"}]})
    yield made
    for p in made.kubectl.names("pods"):
        made.kubectl("delete", "pod", p, "--wait=false", "--ignore-not-found")
    eventually(lambda: not made.host_pods(), 60, "the host's pods gone")
    scheduler.drop_queue(QUEUE)


def waiting(k, name):
    """What condition PodScheduled of a pod that waits says."""
    for c in k.json("get", "pod", name)["status"].get("conditions", []):
        if c["type"] == "PodScheduled" and c["status"] == "False":
            return c["message"]
    return None


def waits(k, name):
    """Until the scheduler has said why, in words of ours."""
    said = f'waiting in queue "{QUEUE}": '
    eventually(lambda: (waiting(k, name) or "").startswith(said), 60, f"{name} to wait, and not {waiting(k, name)}")
    return waiting(k, name)[len(said):]


def test_a_job_waits_says_why_and_runs(vc, scheduler):
    k = vc.kubectl
    what, key, name = KEYS[scheduler.kind]
    k.apply(pod("holds", 2))
    running(k, "holds")
    held = host_pod(vc, "holds")
    assert held["metadata"][what][key] == QUEUE and held["spec"]["schedulerName"] == name

    k.apply(job("train", 1))
    one = eventually(lambda: k.names("pods", "-l", "job-name=train"), 30, "the Job's pod")[0]
    eventually(lambda: waits(k, one) == WAITS[scheduler.kind], 60, "the reason, and not " + waits(k, one))
    assert "nodeName" not in host_pod(vc, one)["spec"]
    shown = json.dumps(k.json("get", "pods"))
    assert key not in shown and "pod-group" not in shown and "podgroup" not in shown, shown

    k("delete", "pod", "holds")
    k("wait", "--for=condition=Complete", "job/train", "--timeout=120s")
    said = [e["message"] for e in k.items("events")]
    assert "Its queue has found a node for it" in said, said
    assert not [m for m in said if "group" in m.lower() or vc.namespace in m or QUEUE in m], said


def test_pods_that_wait_are_deleted_cleanly(vc, scheduler):
    k = vc.kubectl
    k.apply(pod("holds", 2))
    running(k, "holds")
    k.apply([pod("waits", 1), pod("forced", 2)])
    for name in ("waits", "forced"):
        waits(k, name)
    k("delete", "pod", "waits", "--timeout=60s")
    k("delete", "pod", "forced", "--force", "--grace-period=0", "--timeout=60s")
    eventually(lambda: [p["metadata"]["annotations"]["sublet.dev/name"] for p in vc.host_pods()] == ["holds"], 60,
               "the host's pods gone")
    k.apply(pod("waits", 1))  # of the same name again
    waits(k, "waits")


def test_the_queue_is_the_pools(vc, scheduler):
    """Keys of a tenant's have no effect, and are said to have none; the scheduler is the pool's as well."""
    k = vc.kubectl
    what, key, name = KEYS[scheduler.kind]
    mine = pod("mine", 1)
    mine["metadata"].setdefault(what, {})[key] = "theirs"
    code, _, err = k.run("create", "-f", "-", stdin=json.dumps(mine))
    assert code == 0 and f"metadata.{what}[{key}] has no effect" in err, err
    running(k, "mine")
    assert host_pod(vc, "mine")["metadata"][what][key] == QUEUE
    other = pod("other", 1)
    other["spec"]["schedulerName"] = "default-scheduler"
    k.apply(other)
    running(k, "other")
    assert host_pod(vc, "other")["spec"]["schedulerName"] == name
    other = pod("another", 1)
    other["spec"]["schedulerName"] = "mine"
    code, _, err = k.run("create", "-f", "-", stdin=json.dumps(other))
    assert code and f'schedulerName "mine" is not allowed; pool uses "{name}"' in err, err


def test_what_the_scheduler_adds_stays(vc, scheduler):
    """Its PodGroup and its marks on the pod are never fought: nothing is written again, also after a restart and an edit."""
    k = vc.kubectl
    k.apply(pod("p", 1))
    running(k, "p")
    before = host_pod(vc, "p")["metadata"]
    groups = scheduler.pod_groups(vc.namespace)
    assert len(groups) == 1, groups
    vc.restart()
    k("label", "pod", "p", "team=x")
    running(k, "p")
    after = host_pod(vc, "p")["metadata"]
    assert after["uid"] == before["uid"]
    for map_name in ("labels", "annotations"):
        lost = {a: v for a, v in before[map_name].items() if not a.startswith("sublet.dev/") and after[map_name].get(a) != v}
        assert not lost, lost
    k("delete", "pod", "p", "--timeout=60s")
    eventually(lambda: not vc.host_pods(), 60, "the host's pod gone")


def test_pods_without_devices_are_not_in_it(vc):
    k = vc.kubectl
    k.apply(pod("plain", 0))
    running(k, "plain")
    assert host_pod(vc, "plain")["spec"]["schedulerName"] == "default-scheduler"
