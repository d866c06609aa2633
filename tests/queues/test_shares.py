# SPDX-License-Identifier: Apache-2.0
"""Shares of GPUs by the host's real HAMi and Volcano: their schedulers give pods of a tenant the GPUs that a node has registered, and
no GPU is given beyond itself. A thread stands for the device plugin of a machine: it reports, and it takes what a pod was given."""
import json
import threading

import pytest

from testenv import eventually
from testenv.nodes import gpu_node, pool_config
from testenv.schedulers import Hami, Volcano

from test_tenant import host_pod, phase, pod, running

PART = "sublet.dev/gpu-percent"
QUEUE = "t-research"
NODE = "shared-1"
MEMORY = 23034
MERGE = "application/merge-patch+json"


class HamiSide:
    """What HAMi's device plugin writes, and where its scheduler says what it gave."""
    mode, scheduler = "hami", {"kind": "hami"}
    number, memory, cores = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
    given = "hami.io/vgpu-devices-allocated"
    counted = ("number",)  # by the kubelet
    start = Hami

    def record(self, gpus):
        return {"hami.io/node-handshake": "Reported_2026-01-01 00:00:00", "hami.io/node-nvidia-register": json.dumps([
            {"id": f"GPU-{i}", "index": i, "count": 10, "devmem": MEMORY, "devcore": 100, "type": "NVIDIA-L4", "numa": 0,
             "mode": "hami-core", "health": True} for i in range(gpus)])}

    def report(self, api):
        """It answers that it is still there, which also has kube-scheduler try again what HAMi refused. The pod that HAMi has bound has
        its GPU: the plugin says so, and lets the next one be bound to the machine."""
        notes = api.get(f"/api/v1/nodes/{NODE}")["metadata"]["annotations"]
        if notes["hami.io/node-handshake"].startswith("Requesting"):
            api.raw("PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": {
                "hami.io/node-handshake": "Reported_2026-01-01 00:00:00"}}}, content_type=MERGE)
        if "hami.io/mutex.lock" not in notes:
            return
        for p in api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={NODE}")["items"]:
            if p["metadata"].get("annotations", {}).get("hami.io/bind-phase") == "allocating":
                api.raw("PATCH", f"/api/v1/namespaces/{p['metadata']['namespace']}/pods/{p['metadata']['name']}", {
                    "metadata": {"annotations": {"hami.io/bind-phase": "success"}}}, content_type=MERGE)
                api.raw("PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": {"hami.io/mutex.lock": None}}}, content_type=MERGE)


class VolcanoSide:
    """The same of Volcano's."""
    mode, scheduler = "volcano-vgpu", {"kind": "volcano", "queueTemplate": "t-{tenant}"}
    number, memory, cores = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
    given = "volcano.sh/vgpu-ids-new"
    counted = ("number", "memory", "cores")

    @staticmethod
    def start(host, directory):
        return Volcano(host, directory, shares=True)

    def record(self, gpus):
        return {"volcano.sh/node-vgpu-handshake": "Reported_2026-01-01 00:00:00",
                "volcano.sh/node-vgpu-register": "".join(f"GPU-{i},10,{MEMORY},NVIDIA-L4,true:" for i in range(gpus))}

    def report(self, api):
        """It is still there."""
        api.raw("PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": {
            "volcano.sh/node-vgpu-handshake": "Reported_2026-01-01 00:00:00"}}}, content_type=MERGE)


SIDES = {"hami": HamiSide, "volcano": VolcanoSide}


@pytest.fixture(scope="module", params=SIDES)
def side(request, real_host, tmp_path_factory):
    """A system that runs, and that knows no machine yet."""
    made = SIDES[request.param]()
    made.program = made.start(real_host, tmp_path_factory.mktemp(request.param)).start()
    yield made
    made.program.stop()


@pytest.fixture
def machine(real_host, side):
    """machine(gpus): a machine with so many GPUs of 23034 MiB, each for ten shares at most."""
    stop, threads = threading.Event(), []

    def run():
        api = real_host.api.clone()
        while not stop.wait(0.3):
            side.report(api)

    def make(gpus):
        node = gpu_node(NODE, "shared-gpus", "l4", gpus=gpus)
        sizes = {"number": gpus * 10, "memory": gpus * MEMORY, "cores": gpus * 100}
        for part in ("capacity", "allocatable"):
            kept = {k: v for k, v in node["status"][part].items() if k != "nvidia.com/gpu"}
            node["status"][part] = {**kept, **{getattr(side, k): str(sizes[k]) for k in side.counted}}
        node["metadata"]["annotations"] = {**node["metadata"]["annotations"], **side.record(gpus)}
        real_host.add_node(node)
        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()

    yield make
    stop.set()
    for t in threads:
        t.join()
    real_host.remove_node(NODE)


@pytest.fixture
def vc(tenant, side, machine):
    """A tenant with three GPUs of quota in the pool."""
    if side.mode == "volcano-vgpu":
        side.program.make_queue(QUEUE, {"weight": 1, "reclaimable": True})
    shared = pool_config("shared-gpus", "l4", kind="shared", mode=side.mode, gpuMemoryMiB=MEMORY, scheduler=side.scheduler)
    del shared["resources"]
    made = tenant("research", config={"pools": [shared], "bindings": [{"pool": "shared-gpus", "guarantee": "3"}]})
    made.side, made.machine = side, machine
    yield made
    for p in made.kubectl.names("pods"):
        made.kubectl("delete", "pod", p, "--wait=false", "--ignore-not-found")
    eventually(lambda: not made.host_pods(), 60, "the host's pods gone")
    if side.mode == "volcano-vgpu":
        side.program.drop_queue(QUEUE)


def holder(name, limits, **meta):
    made = pod(name)
    made["metadata"].update(meta)
    made["spec"]["containers"][0]["resources"] = {"limits": limits}
    return made


def given(vc, name):
    """(GPU, MiB, hundredths) that the system wrote on the host pod."""
    text = host_pod(vc, name)["metadata"]["annotations"].get(vc.side.given, "")
    fields = text.rstrip(";:").split(",")
    return (fields[0], int(fields[2]), int(fields[3])) if len(fields) == 4 else None


def has(vc, name):
    running(vc.kubectl, name)
    return eventually(lambda: given(vc, name), 60, "what was given to " + name)


def test_two_shares_fill_a_gpu_and_a_third_waits(vc):
    """30 and 70 hundredths are one GPU; what waits is started when there is room, and a restart of the tenant's process moves none."""
    k = vc.kubectl
    vc.machine(1)
    k.apply([holder("small", {PART: "30"}), holder("large", {PART: "70"})])
    assert has(vc, "small") == ("GPU-0", MEMORY * 30 // 100, 30)
    assert has(vc, "large") == ("GPU-0", MEMORY * 70 // 100, 70)
    sent = host_pod(vc, "small")
    limits = sent["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {vc.side.number: "1", vc.side.memory: str(MEMORY * 30 // 100), vc.side.cores: "30"}
    k.apply(holder("third", {PART: "10"}))
    said = eventually(lambda: [c["message"] for c in k.json("get", "pod", "third")["status"].get("conditions", [])
                               if c["type"] == "PodScheduled" and c["status"] == "False"], 60, "why it waits")
    assert NODE not in str(said) and "GPU-0" not in str(said), said
    vc.restart()
    assert phase(k, "third") == "Pending" and "nodeName" not in host_pod(vc, "third")["spec"]
    assert host_pod(vc, "small")["metadata"]["uid"] == sent["metadata"]["uid"] and given(vc, "small")[0] == "GPU-0"
    k("delete", "pod", "small")
    assert has(vc, "third") == ("GPU-0", MEMORY * 10 // 100, 10)


def test_no_gpu_is_given_beyond_itself(vc):
    """Words of HAMi, percentages, and a whole GPU on two GPUs; what a tenant writes as an allocation is not sent."""
    k = vc.kubectl
    vc.machine(2)
    forged = {"hami.io/vgpu-devices-allocated": "GPU-9,NVIDIA,1,1:;", "hami.io/vgpu-node": NODE, "hami.io/bind-phase": "success",
              "volcano.sh/vgpu-ids-new": "GPU-9,NVIDIA,1,1:", "volcano.sh/vgpu-node": NODE, "nvidia.com/use-gpuuuid": "GPU-9"}
    shares = {"half": 50, "words": 31, "forger": 19, "whole": 100}
    k.apply([holder("half", {PART: "50"}), holder("words", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "6911"})])
    for name in ("half", "words"):
        has(vc, name)
    k.apply(holder("whole", {"nvidia.com/gpu": "1"}))
    eventually(lambda: len(vc.host_pods()) == 3, 60, "all of them on the host")
    if len({given(vc, n)[0] for n in ("half", "words")}) == 2:  # apart, and the whole one waits for a GPU of its own
        assert "nodeName" not in host_pod(vc, "whole")["spec"]
        k("delete", "pod", "words")
        del shares["words"]
    has(vc, "whole")
    k.apply(holder("forger", {PART: "19"}, annotations=forged))
    sums = {}
    for name, share in shares.items():
        gpu, memory, cores = has(vc, name)
        assert gpu in ("GPU-0", "GPU-1") and (memory, cores) == (MEMORY * share // 100, share), (name, gpu, memory, cores)
        sums[gpu] = [sums.get(gpu, [0, 0])[0] + memory, sums.get(gpu, [0, 0])[1] + cores]
    assert all(m <= MEMORY and c <= 100 for m, c in sums.values()), sums
    assert given(vc, "whole")[0] != given(vc, "half")[0]
