# SPDX-License-Identifier: Apache-2.0
"""Parts of GPUs by the host's real KAI: its scheduler shares a GPU between pods of a tenant, its binder reserves it, and the queue
bounds them."""
import concurrent.futures
import json
import threading

import pytest

from testenv import eventually
from testenv.nodes import pool_config
from testenv.schedulers import Kai

from test_tenant import host_pod, phase, pod, running

PART = "sublet.dev/gpu-percent"
QUEUE = "t-research"
RESERVED = "/api/v1/namespaces/kai-resource-reservation/pods"


@pytest.fixture(scope="module")
def kai(real_host, tmp_path_factory):
    made = Kai(real_host, tmp_path_factory.mktemp("kai")).start()
    yield made
    made.stop()


@pytest.fixture
def devices(real_host):
    """What the program in a reservation pod does on a machine with GPUs: it says which device it was given."""
    stop, api = threading.Event(), real_host.api.clone()

    def run():
        while not stop.wait(0.2):
            for p in api.get(RESERVED)["items"]:
                if "run.ai/reserve_for_gpu_index" not in (p["metadata"].get("annotations") or {}):
                    api.raw("PATCH", f"{RESERVED}/{p['metadata']['name']}", {"metadata": {"annotations": {
                        "run.ai/reserve_for_gpu_index": "GPU-0"}}}, content_type="application/merge-patch+json")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.fixture
def vc(tenant, kai, devices):
    """A tenant with two GPUs of its own quota, in parts, in a queue of one."""
    kai.queue(QUEUE, gpus=1)
    shared = pool_config("shared", "l4", kind="shared", mode="kai-fraction",
                         scheduler={"kind": "kai", "queueTemplate": "t-{tenant}"})
    del shared["resources"]
    made = tenant("research", config={"pools": [shared], "bindings": [{"pool": "shared", "guarantee": "2"}]})
    yield made
    for p in made.kubectl.names("pods"):
        made.kubectl("delete", "pod", p, "--wait=false", "--ignore-not-found")
    eventually(lambda: not made.host_pods(), 60, "the host's pods gone")
    kai.drop_queue(QUEUE)


def part(name, percent):
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"limits": {PART: str(percent)}}
    return made


def groups(vc, *names):
    return {host_pod(vc, n)["metadata"]["labels"].get("runai-gpu-group") for n in names}


def test_two_halves_share_a_gpu_and_a_third_waits(vc, real_host):
    k = vc.kubectl
    k.apply([part("one", 50), part("two", 50)])
    running(k, "one")
    running(k, "two")
    shared = groups(vc, "one", "two")
    assert len(shared) == 1 and None not in shared, shared
    assert len(real_host.api.get(RESERVED)["items"]) == 1
    sent = host_pod(vc, "one")
    notes = sent["metadata"]["annotations"]
    assert notes["gpu-fraction"] == "0.50" and notes["received-resource-type"] == "Fraction"
    assert PART not in str(sent["spec"])
    named = [e for e in sent["spec"]["containers"][0]["env"] if e["name"] == "NVIDIA_VISIBLE_DEVICES"]
    given = real_host.api.get(f"/api/v1/namespaces/{vc.namespace}/configmaps/{named[0]['valueFrom']['configMapKeyRef']['name']}")
    assert given["data"]["NVIDIA_VISIBLE_DEVICES"] == "GPU-0", given

    k.apply(part("three", 50))  # within the tenant's quota, and beyond the queue
    said = f'waiting in queue "{QUEUE}": '
    eventually(lambda: said in str(k.json("get", "pod", "three")["status"].get("conditions")), 60, "the third to wait and say so")
    assert "nodeName" not in host_pod(vc, "three")["spec"]
    vc.restart()
    assert groups(vc, "one", "two") == shared and phase(k, "three") == "Pending"
    assert host_pod(vc, "one")["metadata"]["uid"] == sent["metadata"]["uid"]

    k("delete", "pod", "one")
    running(k, "three")
    assert groups(vc, "two", "three") == shared
    k("delete", "pod", "two", "three")
    eventually(lambda: not real_host.api.get(RESERVED)["items"], 60, "KAI to give the GPU back")


def test_racing_creates_stop_at_the_limit(vc):
    """Of two GPUs, forty pods of 7 hundredths: 28 fit, whatever their order, and a refusal says what is left."""
    k = vc.kubectl

    def create(i):
        return k.run("create", "-f", "-", stdin=json.dumps(part(f"p{i}", 7)))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(create, range(40)))
    refused = [err for code, _, err in done if code]
    assert len(done) - len(refused) == 28, refused
    wanted = "exceeded quota: gpu/shared, requested: gpu=0.07 (sublet.dev/gpu-percent=7), used: gpu=1.96, limited: gpu=2"
    assert all(wanted in err for err in refused), refused
    eventually(lambda: len(vc.host_pods()) == 28, 60, "the pods on the host")
    usage = k.json("get", "clustergpuusages", "shared")["status"]
    assert usage["used"] == "1.96" and usage["mode"] == "kai-fraction", usage
    k("delete", "pod", "p0", "p1", "p2", "p3", "--ignore-not-found", "--wait=true")
    k.apply(part("again", 4))
