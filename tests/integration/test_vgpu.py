# SPDX-License-Identifier: Apache-2.0
"""Parts of GPUs of modes `hami` and `volcano-vgpu` on a real host: what arrives there, what bounds it, what is granted and billed.

A machine says what HAMi's or Volcano's device plugin would say of two GPUs. Where a pod is to run, the host's own scheduler places
it, by the resources that the machine has; the two systems' own are in tests/queues.
"""
import concurrent.futures
import json
import os
import re
import secrets
from fractions import Fraction

import pytest

from testenv import eventually
from testenv.api import ApiError
from testenv.fleet import Fleet
from testenv.helm import Helm
from testenv.nodes import gpu_node, pool_config

from test_explain import explain
from test_fleet import LOCAL, check_sums, finish, held_seconds, host_seconds
from test_grants import GROUP, Grants, binding_object, bindings_of, condition, pool_object
from test_tenant import host_pod, pod, running

PART = "sublet.dev/gpu-percent"
MEMORY = 40960
GPUS = 2
ITSELF = {"name": "default-scheduler"}  # in place of the system's own


class System:
    """One of the two: the words of its resources, and of its machine."""

    def __init__(self, mode, number, memory, cores, scheduler, sends):
        self.mode, self.number, self.memory, self.cores = mode, number, memory, cores
        self.scheduler, self.sends = scheduler, sends
        self.pool = f"pool-{mode}"
        self.node = f"node-{mode}"

    def resources(self, share):
        return {self.number: "1", self.memory: str(MEMORY * share // 100), self.cores: str(share)}

    def quota(self, gpus):
        """The bounds of these GPUs in a ResourceQuota."""
        shares = int(gpus * 100)
        return {f"requests.{self.number}": str(shares), f"requests.{self.memory}": str(MEMORY * shares // 100),
                f"requests.{self.cores}": str(shares)}

    def config(self, **scheduler):
        """Its pool in a configuration."""
        made = pool_config(self.pool, "a100", kind="shared", mode=self.mode, gpuMemoryMiB=MEMORY,
                           scheduler={**self.scheduler, **scheduler})
        del made["resources"]
        return made

    def tenants(self, guarantee="1.5", **scheduler):
        return {"pools": [self.config(**scheduler)], "bindings": [{"pool": self.pool, "guarantee": guarantee, "default": True}]}

    def machine(self):
        """Two GPUs, each for a hundred pods at most, as its device plugin has registered them."""
        made = gpu_node(self.node, self.pool, "a100", gpus=GPUS)
        for part in ("capacity", "allocatable"):
            kept = {k: v for k, v in made["status"][part].items() if k != "nvidia.com/gpu"}
            made["status"][part] = {**kept, self.number: str(GPUS * 100), self.memory: str(GPUS * MEMORY),
                                    self.cores: str(GPUS * 100)}
        record = {"hami": json.dumps([{"id": f"GPU-{i}", "index": i, "count": 100, "devmem": MEMORY, "devcore": 100,
                                       "type": "NVIDIA-A100", "mode": "hami-core", "health": True} for i in range(GPUS)]),
                  "volcano-vgpu": "".join(f"GPU-{i},100,{MEMORY},NVIDIA-A100,true:" for i in range(GPUS))}[self.mode]
        key = {"hami": "hami.io/node-nvidia-register", "volcano-vgpu": "volcano.sh/node-vgpu-register"}[self.mode]
        made["metadata"]["annotations"] = {**made["metadata"]["annotations"], key: record}
        return made


HAMI = System("hami", "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores", {"kind": "hami"}, "hami-scheduler")
VOLCANO = System("volcano-vgpu", "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores",
                 {"kind": "volcano", "queueTemplate": "t-{tenant}"}, "volcano")


@pytest.fixture(scope="module", params=[HAMI, VOLCANO], ids=lambda s: s.mode)
def system(request, real_host):
    real_host.add_node(request.param.machine())
    yield request.param
    real_host.remove_node(request.param.node)


def holder(name, limits, pool=None, **meta):
    made = pod(name, labels={"sublet.dev/gpu-pool": pool} if pool else {})
    made["metadata"].update(meta)
    made["spec"]["containers"][0]["resources"] = {"limits": limits}
    return made


def refusal(k, body):
    return k.fails("create", "-f", "-", stdin=json.dumps(body))


WISHES = [("percent", {PART: "25"}, 25), ("whole", {"nvidia.com/gpu": "1"}, 100),
          ("memory", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}, 8),
          ("both", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}, 30),
          ("half", {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"}, 50)]

THEIRS = {
    "labels": {"hami.io/webhook": "ignore", "hami.io/gpu-scheduler-policy": "binpack", "volcano.sh/preemptable": "true"},
    "annotations": {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,1,1:;", "hami.io/vgpu-devices-to-allocate": "GPU-1,NVIDIA,1,1:;",
                    "hami.io/vgpu-node": "stolen", "hami.io/bind-phase": "success", "nvidia.com/use-gpuuuid": "GPU-1",
                    "nvidia.com/vgpu-mode": "mig", "volcano.sh/vgpu-ids-new": "GPU-1,NVIDIA,1,1:", "volcano.sh/vgpu-node": "stolen",
                    "volcano.sh/devices-to-allocate": "GPU-1,NVIDIA,1,1:", "scheduling.volcano.sh/queue-name": "stolen"}}


def test_a_share_arrives_as_the_page_says(system, tenant):
    """Each row of the table of docs/pools-and-quota.md, to the scheduler of the mode; a tenant's own words to it stay behind."""
    vc = tenant("research", config=system.tenants("3"))
    vc.kubectl.apply([holder(name, limits, **THEIRS) for name, limits, _ in WISHES])
    eventually(lambda: len(vc.host_pods()) == len(WISHES), 60, "the host's pods")
    for name, _, share in WISHES:
        sent = host_pod(vc, name)
        resources = sent["spec"]["containers"][0]["resources"]
        assert resources["limits"] == resources["requests"] == system.resources(share), (name, resources)
        assert sent["spec"]["schedulerName"] == system.sends and sent["spec"]["nodeSelector"] == {"sublet.dev/pool": system.pool}
        meta = sent["metadata"]
        assert "GPU-1" not in str(meta["annotations"]) and "stolen" not in str(meta), meta
        words = {k: v for m in ("labels", "annotations") for k, v in meta[m].items() if re.search(r"hami|volcano|^nvidia|vgpu", k)}
        assert words == ({} if system is HAMI else {"scheduling.volcano.sh/queue-name": f"t-{vc.name}"}), words
        assert PART not in json.dumps(sent["spec"]) and "NVIDIA_VISIBLE_DEVICES" not in json.dumps(sent["spec"])
    usage = vc.kubectl.json("get", "clustergpuusages", system.pool)["status"]
    assert (usage["used"], usage["mode"]) == ("2.13", system.mode), usage
    kept = vc.kubectl.json("get", "pod", "percent")
    assert kept["metadata"]["annotations"]["hami.io/vgpu-node"] == "stolen"
    assert kept["spec"]["containers"][0]["resources"]["limits"] == {PART: "25"}


def test_a_machine_shows_hundredths(system, tenant):
    """Of two GPUs 200, of which the tenant may have 150; and no word of the host's."""
    k = tenant("research", config=system.tenants()).kubectl
    node = eventually(lambda: k.json("get", "node", system.node), 60, "the machine")
    devices = {m: {r: v for r, v in node["status"][m].items() if "/" in r} for m in ("capacity", "allocatable")}
    assert devices == {"capacity": {PART: "200"}, "allocatable": {PART: "150"}}, devices
    assert "GPU-0" not in json.dumps(node) and "register" not in json.dumps(node)


def test_racing_creates_stop_at_the_limit(system, tenant):
    """Of one and a half GPUs, forty pods of 7 hundredths: 21 fit, whatever their order, and what is left fits exactly."""
    vc = tenant("research", config=system.tenants(**ITSELF))
    k = vc.kubectl
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda i: k.run("create", "-f", "-", stdin=json.dumps(holder(f"p{i}", {PART: "7"}))), range(40)))
    refused = [err for code, _, err in done if code]
    assert len(done) - len(refused) == 21, refused
    wanted = f"exceeded quota: gpu/{system.pool}, requested: gpu=0.07 ({PART}=7), used: gpu=1.47, limited: gpu=1.5"
    assert all(wanted in err for err in refused), refused
    assert "requested: gpu=0.04" in refusal(k, holder("more", {PART: "4"}))
    k.apply(holder("rest", {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "3"}))
    running(k, "rest")
    assert host_pod(vc, "rest")["spec"]["nodeName"] == system.node
    eventually(lambda: len([p for p in vc.host_pods() if p["spec"].get("nodeName") == system.node]) == 22, 60, "all of them placed")
    assert "requested: gpu=0.01" in refusal(k, holder("none", {PART: "1"}))


def test_the_hosts_quota_bounds_whoever_writes(system, real_host, tenant, tmp_path):
    """The chart's ResourceQuota counts as the tenant's own quota does: racing pods past the tenant's process stop at the limit."""
    vc = tenant("research", config=system.tenants(**ITSELF))
    values = {"config": {k: vc.config[k] for k in ("pools", "bindings")}}
    quota = next(o for o in Helm(tmp_path).template("research", vc.namespace, values) if o["kind"] == "ResourceQuota")
    hard = {k: v for k, v in quota["spec"]["hard"].items() if "/" in k and not k.startswith("count/") and "storage" not in k}
    assert {k: str(v) for k, v in hard.items()} == {**({"requests.nvidia.com/gpu": "0"} if system is VOLCANO else {}), **system.quota(1.5)}
    path = f"/api/v1/namespaces/{vc.namespace}"
    real_host.api.post(f"{path}/resourcequotas", {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    used = lambda: real_host.api.get(f"{path}/resourcequotas/gpus").get("status", {}).get("used", {})  # noqa: E731
    eventually(lambda: used().get(f"requests.{system.cores}") == "0", 60, "the quota to count")

    vc.kubectl.apply(holder("own", {PART: "24"}))
    eventually(lambda: used().get(f"requests.{system.cores}") == "24", 60, "what the tenant has")

    def past(i):
        body = {"metadata": {"name": f"past-{i}"}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"limits": system.resources(7)}}]}}
        return real_host.api.clone().raw("POST", f"{path}/pods", body)[0]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(past, range(40)))
    assert codes.count(201) == 18 and codes.count(403) == 22, codes  # 24 + 18 x 7 = 150
    total = {f"requests.{system.cores}": "150", f"requests.{system.number}": "19",
             f"requests.{system.memory}": str(MEMORY * 24 // 100 + 18 * (MEMORY * 7 // 100))}
    assert {k: v for k, v in used().items() if k in total} == total
    for name in ("past-0", "past-1"):
        real_host.api.raw("DELETE", f"{path}/pods/{name}", query={"gracePeriodSeconds": 0})


LIFTS = ["CUDA_DISABLE_CONTROL", "CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_SM_LIMIT",
         "CUDA_DEVICE_MEMORY_SHARED_CACHE", "CUDA_OVERSUBSCRIBE", "CUDA_TASK_PRIORITY", "GPU_CORE_UTILIZATION_POLICY",
         "ACTIVE_OOM_KILLER", "LD_PRELOAD", "NVIDIA_VISIBLE_DEVICES"]


def test_what_lifts_the_limits_is_refused(system, tenant):
    """With the reason, before anything is on the host."""
    vc = tenant("research", config=system.tenants())
    k = vc.kubectl

    def changed(**container):
        body = holder("lifted", {PART: "25"})
        body["spec"]["containers"][0].update(container)
        body["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
        return body
    for name in LIFTS:
        assert f'env {name} of container "main" is not allowed: devices are given by the scheduler, not by variables' in \
            refusal(k, changed(env=[{"name": name, "value": "0"}])), name
    for path in ("/etc/ld.so.preload", "/etc//x/../ld.so.preload", "/usr/local/vgpu", "/usr/local/vgpu/libvgpu.so", "/tmp/vgpulock"):
        said = refusal(k, changed(volumeMounts=[{"name": "v", "mountPath": path}]))
        assert "the library that limits it to its part of a GPU is there" in said or "must not contain '..'" in said, said
    for limits, words in [
            ({"nvidia.com/gpu": "2"}, "a shared GPU request must be 1 per container, got 2"),
            ({PART: "101"}, "has at most one GPU, 1 to 100"),
            ({PART: "10", "nvidia.com/gpu": "1"}, "only one of them can say how much"),
            ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40961"}, f'a GPU of pool "{system.pool}" has 40960 MiB'),
            ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "5"}, "volcano.sh/vgpu-memory is not offered by any pool")]:
        assert words in refusal(k, holder("wrong", limits)), limits
    assert not vc.host_pods()


def test_explain_shows_the_compiled_share(system, tenant):
    """`sublet explain` shows the resources, scheduler and queue that arrive, and makes nothing."""
    vc = tenant("research", config=system.tenants())
    wanted = holder("train", {PART: "25"})
    code, out, err = explain(vc, wanted)
    assert (code, err) == (0, ""), (out, err)
    for word in (f'"{system.memory}":"10240"', f'"{system.cores}":"25"', f'"{system.number}":"1"', system.sends):
        assert word in out, out
    code, out, _ = explain(vc, wanted, "-o", "json")
    shown = json.loads(out)
    assert code == 0 and not vc.host_pods()
    vc.kubectl.apply(wanted)
    made = eventually(lambda: vc.host_pods() and host_pod(vc, "train"), 60, "the host's pod")
    assert shown["spec"]["containers"][0]["resources"] == made["spec"]["containers"][0]["resources"]
    assert shown["spec"]["schedulerName"] == made["spec"]["schedulerName"] == system.sends


def test_shares_are_billed_exactly(system, host, tenant, workdir):
    """Usage of two tenants' shares is their seconds times their hundredths; with what is idle, it is the two GPUs."""
    tag = secrets.token_hex(3)
    host.create_namespace(f"fleet-{tag}")
    fleet = Fleet(os.path.join(workdir, f"vgpu-{tag}"), host, f"fleet-{tag}",
                  [{**system.config(**ITSELF), "metering": {"price": "2.50", "currency": "USD"}}], args=LOCAL)
    try:
        fleet.start()
        a, b = (tenant(name, config=system.tenants(**ITSELF)) for name in ("alpha", "beta"))
        a.kubectl.apply(holder("third", {PART: "33"}))
        b.kubectl.apply(holder("words", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}))
        for vc, name, share in ((a, "third", 33), (b, "words", 8)):
            running(vc.kubectl, name)
            eventually(lambda n=vc.namespace: fleet.lines(tenant=n), 60, "its usage")
            want = Fraction(share * host_seconds(finish(host, host_pod(vc, name))), 100)
            assert want > 0
            eventually(lambda n=vc.namespace, w=want: held_seconds(fleet, tenant=n) == w, 60, f"{want} s of a GPU")
        report = fleet.report()
        assert check_sums(report)[system.pool] > 0
        gauge = fleet.metrics()["sublet_fleet_capacity_gpus"]
        assert gauge[frozenset({("pool", system.pool)})] == GPUS, gauge
    finally:
        fleet.close()
        host.delete_namespace(f"fleet-{tag}")


class Shares(Grants):
    """A fleet that grants, and one GPUPool of the mode: two GPUs."""

    def __init__(self, host, directory, system):
        tag = secrets.token_hex(3)
        self.host, self.namespace, self.made, self.system = host, f"fleet-{tag}", [], system
        host.create_namespace(self.namespace)
        self.fleet = Fleet(os.path.join(directory, f"shares-{tag}"), host, self.namespace, [],
                           kubeconfig=host.service_account_kubeconfig(self.namespace, "fleet"), args=LOCAL)
        self.fleet.write_config(grants={"enabled": True, "grace": "1s", "lendPause": "10s"})
        spec = {k: v for k, v in system.config(**ITSELF).items() if k != "name"}
        spec["scheduler"] = {k: v.replace("{tenant}", "{namespace}") for k, v in spec["scheduler"].items()}
        self.create(f"{GROUP}/gpupools", pool_object(system.pool, **spec))
        self.begun = host.api.get("/api/v1/resourcequotas")["metadata"]["resourceVersion"]

    def bind(self, namespace, **spec):
        self.create(bindings_of(namespace), binding_object(self.system.pool, **spec))

    def status(self, namespace):
        self.fleet.process.check()
        return self.host.api.get(f"{bindings_of(namespace)}/{self.system.pool}").get("status", {})

    def hard(self, namespace):
        return self.host.api.get(f"/api/v1/namespaces/{namespace}/resourcequotas/sublet-gpu")["spec"]["hard"]

    def pod(self, namespace, name, share):
        spec = self.host.api.get(f"{GROUP}/gpupools/{self.system.pool}")["spec"]
        return self.host.api.post(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": {
            "nodeSelector": spec["nodeSelector"], "tolerations": spec["tolerations"], "containers": [
                {"name": "c", "image": "i", "resources": {"limits": self.system.resources(share)}}]}})

    def history(self):
        """What the host wrote since, in its order: of quotas (namespace, bounds), of bindings (namespace, grant)."""
        events = []
        for path, query in (("/api/v1/resourcequotas", {"fieldSelector": "metadata.name=sublet-gpu"}), (f"{GROUP}/gpubindings", {})):
            for e in self.host.api.watch(path, 20, resourceVersion=self.begun, timeoutSeconds=3, **query):
                o = e["object"]
                assert e["type"] in ("ADDED", "MODIFIED", "DELETED"), e
                gone = e["type"] == "DELETED"
                events.append((int(o["metadata"]["resourceVersion"]), "quota" if "hard" in o["spec"] else "grant", o["metadata"]["namespace"],
                               {} if gone else o["spec"].get("hard"), "0" if gone else o.get("status", {}).get("grant", "0")))
        return sorted(events, key=lambda e: e[0])


@pytest.fixture
def shares(system, host, gpu_crds, workdir, tmp_path):
    made = Shares(host, workdir, system)
    try:
        made.allow(tmp_path)
        yield made
    finally:
        made.close()


def check_history(events, system):
    """After each write: no GPU is promised twice, and what is granted is bounded by no less."""
    quotas, granted, seen = {}, {}, set()
    for _, kind, namespace, hard, grant in events:
        if kind == "quota":
            quotas[namespace] = hard
        else:
            granted[namespace] = Fraction(grant)
        seen.add((kind, namespace))
        for key, most in system.quota(GPUS).items():
            assert sum(int(q.get(key, 0)) for q in quotas.values()) <= int(most), (key, quotas)
        assert sum(granted.values()) <= GPUS, granted
        for name, gpus in granted.items():
            assert gpus * 100 <= int(quotas.get(name, {}).get(f"requests.{system.cores}", 0)), (name, gpus, quotas)
    return seen


def test_grants_never_promise_a_share_twice(system, host, shares):
    """One team has borrowed what another is guaranteed: the bounds of compute, memory and number move in the order that never overshoots."""
    a, b = (f"{shares.namespace}-{x}" for x in "ab")
    for name in (a, b):
        host.create_namespace(name)
    try:
        shares.bind(a, guarantee="0.5", burst="1.5")
        shares.fleet.start()
        shares.until(a, grant="2")
        assert shares.hard(a) == system.quota(2)
        for name in ("one", "two"):
            shares.pod(a, name, 90)
        shares.bind(b, guarantee="1.25")
        assert eventually(lambda: shares.status(a).get("reclaim"), 60, "the notice")["gpus"] == "1.05"
        shares.until(a, grant="0.75")
        shares.until(b, grant="0.2")
        assert shares.hard(b) == system.quota(Fraction("0.2"))
        shares.fleet.kill()
        shares.end(a, "one")
        shares.fleet.start()
        shares.until(b, grant="1.1")
        shares.end(a, "two")
        shares.until(b, grant="1.25")
        shares.until(a, grant="0.75")
        assert (shares.hard(a), shares.hard(b)) == (system.quota(Fraction("0.75")), system.quota(Fraction("1.25")))
        shares.pod(b, "all", 100)
        shares.pod(b, "rest", 25)
        with pytest.raises(ApiError) as raised:
            shares.pod(b, "more", 1)
        said = str(raised.value)
        assert raised.value.code == 403 and f"limited: requests.{system.cores}=125,requests.{system.memory}={MEMORY * 125 // 100}" in said
        shares.end(b, "all")
        host.api.patch(f"{bindings_of(a)}/{system.pool}", {"spec": {"guarantee": "1.5", "burst": "0"}})
        ready = eventually(lambda: (lambda c: c["status"] == "False" and c)(condition(
            {"status": shares.status(a)}, "Ready")), 60, "no room for it")
        assert ready["reason"] == "Overcommitted", ready
        host.api.patch(f"{bindings_of(b)}/{system.pool}", {"spec": {"guarantee": "0.5"}})
        shares.until(a, grant="1.5")
        shares.until(b, grant="0.5")
        seen = check_history(shares.history(), system)
        assert {("quota", a), ("quota", b), ("grant", a), ("grant", b)} <= seen
        shares.end(b, "rest")
    finally:
        for name in (a, b):
            host.delete_namespace(name)
