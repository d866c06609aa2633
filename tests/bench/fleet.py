#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One `sublet fleet` of a large host: 1,000 tenants with grants, 10,000 pods with GPUs, and the report of a year.

`/usr/bin/python3 tests/bench/fleet.py [--tenants N] [--pods N] [--holds N] [--rounds N] [--seconds N]`, with SUBLET_BIN the
release program. The host is a real etcd and kube-apiserver, with the quota controller of a real kube-controller-manager, since
a quota is lowered by what that has charged. Nodes and pods are objects and no more: the program writes them, bound and
running, into four pools that are full. Each tenant is guaranteed a part of what its pods hold, borrows the difference and
reports that it wants no more; so a GPU that one releases is granted to the one that waits for it. Nothing is asserted but
that the grants come and the report adds up: figures are for people.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import ledger_year  # noqa: E402
from measure import cpu_seconds, memory_mb, number, percentile  # noqa: E402
from testenv import HostCluster, eventually  # noqa: E402
from testenv.binaries import sublet  # noqa: E402
from testenv.fixtures import install_crds  # noqa: E402
from testenv.fleet import Fleet, chart_crds  # noqa: E402
from testenv.nodes import gpu_node, pool_config  # noqa: E402

GROUP = "/apis/sublet.dev/v1alpha1"
POOLS = ledger_year.POOLS
NODE = 8  # GPUs of a machine
AT_ONCE = 8
NOW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def row(what, value, unit=""):
    print(f"{what:58}{value if isinstance(value, str) else number(value):>12}  {unit}", flush=True)


class World:
    """The host and what is on it: tenant i is bound to pool i % 4 and has `each` pods with a GPU."""

    def __init__(self, directory, tenants, pods):
        self.directory, self.tenants, self.each = directory, tenants, pods // tenants
        self.host = HostCluster(os.path.join(directory, "host"), api_args=("--disable-admission-plugins=ServiceAccount",))
        self.host.components["kube-controller-manager"].argv += [
            "--controllers=resourcequota-controller", "--kube-api-qps=2000", "--kube-api-burst=4000", "--concurrent-resource-quota-syncs=20"]
        self.local = threading.local()
        self.in_pool = [len(range(p, tenants, len(POOLS))) * self.each for p in range(len(POOLS))]

    def start(self):
        for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
            self.host.start_component(name)
        install_crds(self.host.api, chart_crds(self.directory))

    @property
    def api(self):
        """A connection of this thread's own."""
        if not hasattr(self.local, "api"):
            self.local.api = self.host.api.clone()
        return self.local.api

    def each_of(self, what, make):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(make, what))

    def pool_of(self, tenant):
        return POOLS[tenant % len(POOLS)]

    def node_of(self, tenant, number_in_tenant):
        at = (tenant // len(POOLS)) * self.each + number_in_tenant
        return f"{self.pool_of(tenant)}-{at // NODE}"

    # --- objects --------------------------------------------------------------------------------------

    def make_pools(self):
        for p, name in enumerate(POOLS):
            spec = {k: v for k, v in pool_config(name, kind="shared").items() if k != "name"}
            self.api.post(f"{GROUP}/gpupools", {"apiVersion": "sublet.dev/v1alpha1", "kind": "GPUPool", "metadata": {"name": name},
                                                "spec": spec})
            nodes, left = [], self.in_pool[p]
            while left > 0:
                nodes.append(gpu_node(f"{name}-{len(nodes)}", name, gpus=min(left, NODE)))
                left -= NODE
            self.each_of(nodes, self.make_node)

    def make_node(self, node):
        node["metadata"]["annotations"] = {}
        node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        self.api.post("/api/v1/nodes", node)

    def make_tenant(self, i):
        namespace = f"team-{i}"
        self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        pool = self.pool_of(i)
        self.api.post(f"{GROUP}/namespaces/{namespace}/gpubindings", {
            "apiVersion": "sublet.dev/v1alpha1", "kind": "GPUBinding", "metadata": {"name": pool, "namespace": namespace},
            "spec": {"pool": pool, "guarantee": str(self.each - self.each // 5), "burst": str(self.each)}})
        self.want(i, self.each, new=True)
        for n in range(self.each):
            self.make_pod(i, n)

    def want(self, i, gpus, new=False):
        path = f"/api/v1/namespaces/team-{i}/configmaps"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sublet-gpu-demand"}, "data": {self.pool_of(i): str(gpus)}}
        if new:
            self.api.post(path, body)
        else:
            self.api.put(f"{path}/sublet-gpu-demand", body)

    def make_pod(self, i, n, node=None):
        """Bound by itself, and running as a kubelet would say."""
        path = f"/api/v1/namespaces/team-{i}/pods"
        made = self.api.post(path, {
            "apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": f"train-{n}", "labels": {"sublet.dev/cluster": f"cluster-{i}", "sublet.dev/pool": self.pool_of(i)},
                "annotations": {"sublet.dev/name": f"train-{n}", "sublet.dev/namespace": "default", "sublet.dev/owner": "Job/train"}},
            "spec": {"nodeName": node or self.node_of(i, n), "automountServiceAccountToken": False,
                     "nodeSelector": {"sublet.dev/pool": self.pool_of(i)}, "containers": [
                         {"name": "main", "image": "example.com/train:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})
        made["status"] = {"phase": "Running", "startTime": NOW, "podIP": "10.0.0.1", "conditions": [
            {"type": t, "status": "True", "lastTransitionTime": NOW} for t in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]}
        self.api.put(f"{path}/train-{n}/status", made)

    def end_pod(self, i, n):
        self.api.delete(f"/api/v1/namespaces/team-{i}/pods/train-{n}", gracePeriodSeconds=0)

    def grant(self, i):
        return self.api.get(f"{GROUP}/namespaces/team-{i}/gpubindings/{self.pool_of(i)}").get("status", {}).get("grant")

    def all_granted(self):
        items = self.api.get(f"{GROUP}/gpubindings")["items"]
        return len(items) == self.tenants and all(b.get("status", {}).get("grant") == str(self.each) for b in items)


# --- measurements ---------------------------------------------------------------------------------------

def share_of_core(pid, seconds):
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / seconds


def changing(world, pid, seconds):
    """(% of a core, changes per second) while pods change that hold GPUs."""
    stop, done = threading.Event(), [0]

    def change():
        at = 0
        while not stop.wait(0.05):
            i = at % world.tenants
            world.api.patch(f"/api/v1/namespaces/team-{i}/pods/train-0", {"metadata": {"annotations": {"changed.example/at": str(at)}}})
            at += 1
            done[0] = at
    t = threading.Thread(target=change)
    t.start()
    used = share_of_core(pid, seconds)
    stop.set()
    t.join()
    return used, done[0] / seconds


def releases(world, rounds):
    """Seconds from the end of a pod to the grant of its GPU to the one that waits for it."""
    taken, extra, holds = [], {}, {}
    for r in range(rounds):
        lender = (2 * r * len(POOLS) + r % len(POOLS)) % world.tenants
        waiting = (lender + len(POOLS)) % world.tenants
        want = holds.get(waiting, world.each) + 1
        world.want(waiting, want)
        n = world.each - 1 - extra.get(lender, 0)
        before = holds.get(lender, world.each)
        extra[lender] = extra.get(lender, 0) + 1
        world.want(lender, before - 1)
        begin = time.monotonic()
        world.end_pod(lender, n)
        while world.grant(waiting) != str(want):
            assert time.monotonic() - begin < 120, f"no grant of {want} to team-{waiting}"
            time.sleep(0.01)
        taken.append(time.monotonic() - begin)
        holds[lender], holds[waiting] = before - 1, want
        world.make_pod(waiting, 100 + r, node=world.node_of(lender, n))
    return taken


def measure_grants(world, directory, options):
    pools = [pool_config(p, kind="shared", metering={"price": "2.50", "currency": "USD"}) for p in POOLS]
    fleet = Fleet(os.path.join(directory, "fleet"), world.host, "kube-system", pools)
    fleet.write_config(grants={"enabled": True, "grace": "1s"})
    try:
        begin = time.monotonic()
        fleet.start()
        row("start to ready: all pods on record", time.monotonic() - begin, "s")
        eventually(world.all_granted, 300, "all grants", interval=0.1)
        row("start to all grants", time.monotonic() - begin, "s")
        time.sleep(5)
        row("private memory", memory_mb(fleet.process.pid)["private"], "MB")
        row("CPU while idle", share_of_core(fleet.process.pid, options.seconds), "% of a core")
        used, rate = changing(world, fleet.process.pid, options.seconds)
        row(f"CPU while {rate:.0f} pods change a second", used, "% of a core")
        taken = releases(world, options.rounds)
        row("from a released GPU to its next grant, p50", percentile(taken, 0.5), "s")
        row("the same, p99", percentile(taken, 0.99), "s")
        row("private memory after that", memory_mb(fleet.process.pid)["private"], "MB")
        report_of_now(fleet)
        fleet.stop()
    finally:
        fleet.kill()
    return fleet


def report_of_now(fleet):
    made = fleet.report("tenant,pool")
    assert sum(line.get("pods", 0) for line in made["lines"]) > 0, made["balances"]


def run_report(directory, *args):
    """(seconds, MB at most) of one `sublet report`."""
    begin = time.monotonic()
    p = subprocess.Popen([sublet(), "report", "--data-dir", directory, *args], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    assert status == 0, f"sublet report {args}: {status}"
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def measure_reports(fleet, options):
    """The fleet's own ledger file, as an empty one, takes a year; its format is the program's."""
    directory = os.path.join(fleet.dir, "year")
    empty = Fleet(os.path.join(fleet.dir, "empty"), None, "kube-system", [pool_config("none")], kubeconfig=fleet.config["host"]["kubeconfig"],
                  store=directory)
    try:
        empty.start()
        empty.stop()
    finally:
        empty.kill()
    holds = ledger_year.fill(os.path.join(directory, "ledger.db"), options.tenants, max(options.pods // NODE, 1), options.holds)
    row(f"a ledger of a year, {holds:,} holds", os.path.getsize(os.path.join(directory, "ledger.db")) / 2**20, "MB")
    for what, args in (("by tenant and pool", ("--by", "tenant,pool")), ("by tenant, pool and month", ("--by", "tenant,pool,month")),
                       ("by tenant and owner", ("--by", "tenant,owner")), ("of one month", ("--from", "2025-06", "--to", "2025-07"))):
        seconds, most = run_report(directory, *args)
        row(f"report {what}, time", seconds, "s")
        row(f"report {what}, memory", most, "MB")


def main():
    parser = argparse.ArgumentParser(description="What a fleet of many tenants costs.")
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--holds", type=int, default=1000000, help="of the year that is reported")
    parser.add_argument("--rounds", type=int, default=40, help="GPUs that are released one after the other")
    parser.add_argument("--seconds", type=int, default=15, help="of being idle, and of changes")
    options = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    with tempfile.TemporaryDirectory(prefix="sublet-fleet-") as directory:
        world = World(directory, options.tenants, options.pods)
        try:
            world.start()
            begin = time.monotonic()
            world.make_pools()
            world.each_of(range(options.tenants), world.make_tenant)
            print(f"one fleet, {options.tenants:,} tenants, {options.tenants * world.each:,} pods with GPUs on "
                  f"{sum(-(-n // NODE) for n in world.in_pool):,} machines, on {os.cpu_count()} cores "
                  f"(made in {time.monotonic() - begin:.0f} s)\n", flush=True)
            fleet = measure_grants(world, directory, options)
            measure_reports(fleet, options)
        finally:
            world.host.stop()


if __name__ == "__main__":
    main()
