# SPDX-License-Identifier: Apache-2.0
"""Pods of a pool that the host's real Kueue admits: they wait, say why, run, and leave, and nothing of Kueue is fought."""
import json
import re

import pytest

from testenv import UNSET, eventually
from testenv.kueue import API
from testenv.nodes import pool_config

from test_explain import explain
from test_tenant import GPU, host_pod, pod, running

GATE = "kueue.x-k8s.io/admission"
MANAGED = "kueue.x-k8s.io/managed"
QUEUE = "kueue.x-k8s.io/queue-name"
GROUP = "kueue.x-k8s.io/pod-group-name"
LACKING = 'waiting in queue "t-research": insufficient unused quota for nvidia.com/gpu'


@pytest.fixture
def vc(tenant, kueue):
    """A tenant with eight GPUs of its own quota, in a queue of two."""
    made = tenant("research", config={
        "pools": [pool_config("shared", "l4", kind="shared", scheduler={"kind": "kueue", "queueTemplate": "t-{tenant}"})],
        "bindings": [{"pool": "shared", "guarantee": "8"}]})
    kueue.queue(made.namespace, "t-research", gpus=2, nodeLabels={"kubernetes.io/hostname": "gpu-l4-1"})
    yield made
    for p in made.kubectl.names("pods"):
        made.kubectl("delete", "pod", p, "--wait=false", "--ignore-not-found")
    eventually(lambda: not made.host_pods(), 60, "the host's pods gone")
    kueue.drop_queue(made.namespace, "t-research")


def gated(k, name):
    """What condition PodScheduled of a pod that waits says."""
    for c in k.json("get", "pod", name)["status"].get("conditions", []):
        if c["type"] == "PodScheduled" and c["status"] == "False" and c["reason"] == "SchedulingGated":
            return c["message"]
    return None


def job(name, gpus):
    template = pod(name, gpus)["spec"]
    template["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": template}}}


def test_a_job_waits_says_why_and_runs(vc):
    k = vc.kubectl
    k.apply(pod("holds", 2))
    running(k, "holds")
    held = host_pod(vc, "holds")
    assert held["metadata"]["labels"][QUEUE] == "t-research" and MANAGED in held["metadata"]["finalizers"]
    assert held["spec"]["nodeName"] == held["spec"]["nodeSelector"]["kubernetes.io/hostname"] == "gpu-l4-1"
    assert "kubernetes.io/hostname" not in k.json("get", "pod", "holds")["spec"].get("nodeSelector", {})

    k.apply(job("train", 1))
    name = eventually(lambda: k.names("pods", "-l", "job-name=train"), 30, "the Job's pod")[0]
    eventually(lambda: gated(k, name) == LACKING, 60, "the reason, and not " + str(gated(k, name)))
    assert re.search(rf"{name}\s+0/1\s+SchedulingGated", k("get", "pod", name))
    waiting = host_pod(vc, name)
    assert {"name": GATE} in waiting["spec"]["schedulingGates"] and "nodeName" not in waiting["spec"]
    assert "kueue" not in json.dumps(k.json("get", "pod", name)["metadata"])

    k("delete", "pod", "holds")
    k("wait", "--for=condition=Complete", "job/train", "--timeout=120s")
    said = k("get", "events", "-o", "jsonpath={range .items[*]}{.reason}: {.message}{'\\n'}{end}")
    assert "Started: Its queue has admitted it" in said and "all-t-research" not in said, said


def test_pods_that_wait_are_deleted_cleanly(vc):
    k = vc.kubectl
    k.apply(pod("holds", 2))
    running(k, "holds")
    k.apply([pod("waits", 1), pod("forced", 2)])
    for name in ("waits", "forced"):
        eventually(lambda n=name: gated(k, n) == LACKING, 60, f"{name} to wait")
        assert MANAGED in host_pod(vc, name)["metadata"]["finalizers"]
    k("delete", "pod", "waits", "--timeout=60s")
    k("delete", "pod", "forced", "--force", "--grace-period=0", "--timeout=60s")
    eventually(lambda: [p["metadata"]["annotations"]["sublet.dev/name"] for p in vc.host_pods()] == ["holds"], 60,
               "the host's pods gone")
    k.apply(pod("waits", 1))  # of the same name again
    eventually(lambda: gated(k, "waits") == LACKING, 60, "the second one to wait")


def test_the_queue_is_the_pools_and_groups_are_refused(vc):
    k = vc.kubectl
    code, _, err = k.run("create", "-f", "-", stdin=json.dumps(pod("mine", 1, {QUEUE: "theirs"})))
    assert code == 0 and f"metadata.labels[{QUEUE}] has no effect" in err, err
    running(k, "mine")
    assert host_pod(vc, "mine")["metadata"]["labels"][QUEUE] == "t-research"
    code, _, err = k.run("create", "-f", "-", stdin=json.dumps(pod("grouped", 1, {GROUP: "train"})))
    assert code and f"{GROUP} asks for a group, and pods of this pool are admitted one by one" in err, err


def test_what_kueue_ends_is_replaced_and_waits(vc, kueue):
    k = vc.kubectl
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("web", 1)["spec"]}
    k.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}})
    k("rollout", "status", "deployment/web", "--timeout=120s")
    first = k.names("pods")[0]
    path = f"{API}/clusterqueues/all-t-research"
    kueue.host.api.patch(path, {"spec": {"stopPolicy": "HoldAndDrain"}})
    eventually(lambda: first not in k.names("pods"), 60, "the pod that Kueue ends to be gone")
    second = eventually(lambda: [p for p in k.names("pods") if p != first], 60, "its replacement")[0]
    eventually(lambda: gated(k, second) == 'waiting in queue "t-research": the queue is not active', 60, "its reason", also=UNSET)
    kueue.host.api.patch(path, {"spec": {"stopPolicy": "None"}})
    running(k, second)
    k("delete", "deployment", "web")


def test_a_dry_run_and_a_restart(vc):
    k = vc.kubectl
    k.apply(pod("holds", 2))
    running(k, "holds")
    k.apply(pod("waits", 1))
    eventually(lambda: gated(k, "waits") == LACKING, 60, "it to wait")
    before = host_pod(vc, "waits")["metadata"]
    vc.restart()
    eventually(lambda: gated(k, "waits") == LACKING, 60, "the reason after the restart", also=UNSET)
    after = host_pod(vc, "waits")["metadata"]
    assert (after["uid"], after["resourceVersion"]) == (before["uid"], before["resourceVersion"]), "it was written again"
    k("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(pod("tried", 1)))


def test_explain_shows_the_queue_and_the_gate(vc):
    code, out, err = explain(vc, pod("shown", 1))
    assert (code, err) == (0, "")
    assert "queue t-research: label kueue.x-k8s.io/queue-name; Kueue holds the pod by its gate until it admits it" in out
