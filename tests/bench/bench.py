#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sublet and kube-apiserver + etcd in one run, on this machine, and the machine's own limits beside them.

`tests/run bench`, or `/usr/bin/python3 tests/bench`. Both get the same requests from the same
generator (HTTP/2 over TLS, a service account's token). Both sync every write: etcd by its default,
Sublet by synchronous=FULL. Rounds alternate between them, so that a noisy machine is noisy for both;
ratios are taken round by round. Nothing is asserted: figures are for people.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from day import RESTED, Team, pod, scaled  # noqa: E402
from limits import FileServer, sqlite_rows  # noqa: E402
from load import SWAP, Target, both, config_map, watch_latencies, watch_rate  # noqa: E402
from measure import Table, cpu_seconds, memory_mb, memory_of  # noqa: E402
from testenv import HostCluster, VirtualCluster  # noqa: E402
from testenv.api import Api  # noqa: E402
from testenv.pki import Pki  # noqa: E402
from testenv.wait import AWAY, eventually  # noqa: E402

LISTED = 3000
PATCHED = 64
WATCHERS = 20
PODS = 200
PEER = ("etcd", "kube-apiserver")
SETTLE = 5       # seconds before idle memory is read
PATCH = "application/json-patch+json"


# --- rates and latencies of one server ---------------------------------------------------------------

class Round:
    """One round of everything against one target: {row: value}."""

    def __init__(self, target, scale):
        self.target = target
        self.scale = scale
        self.cms = target.namespace("bench")

    def n(self, full):
        return scaled(full, self.scale, 50)

    def run(self):
        rows = {}
        for step in (self.create, self.get, self.list, self.patch, self.watch):
            rows.update(step())
        return rows

    def create(self):
        t = self.target
        rate = t.load(self.cms, self.n(4000), body=config_map()).rate
        alone = both(t.load(self.cms, self.n(500), 1, 1, body=config_map()).latencies)
        return {"create/s": rate, "create p50": alone[0], "create p99": alone[1]}

    def get(self):
        t = self.target
        if t.api.raw("GET", f"{self.cms}/one")[0] == 404:
            t.api.post(self.cms, config_map("one"))
        path = f"{self.cms}/one"
        rate = t.load(path, self.n(20000)).rate
        alone = both(t.load(path, self.n(2000), 1, 1).latencies)
        return {"get/s": rate, "get p50": alone[0], "get p99": alone[1]}

    def list(self):
        t = self.target
        path = t.namespace("listed")
        listed = self.n(LISTED)
        there = len(t.api.get(path)["items"])
        if there < listed:
            t.load(path, listed - there, body=config_map())
        rate = t.load(path, self.n(100), streams=1).rate
        alone = both(t.load(path, 50, 1, 1).latencies)
        return {"list/s": rate, "list p50": alone[0], "list p99": alone[1]}

    def patch(self):
        t = self.target
        path = t.namespace("patched")
        paths = [f"{path}/p{i}" for i in range(PATCHED)]
        if t.api.raw("GET", paths[-1])[0] == 404:
            for i in range(PATCHED):
                t.api.post(path, config_map(f"p{i}"))
        # One connection: no two patches of one object are under way at once.
        rate = t.load(paths, self.n(4000), 1, 32, SWAP, "PATCH", PATCH).rate
        alone = both(t.load(paths, self.n(500), 1, 1, SWAP, "PATCH", PATCH).latencies)
        return {"patch/s": rate, "patch p50": alone[0], "patch p99": alone[1]}

    def watch(self):
        t = self.target
        path = t.namespace("watched")
        rate = watch_rate(t, path, WATCHERS, self.n(1000))
        alone = both(watch_latencies(t, path, self.n(200)))
        return {"watch/s": rate, "watch p50": alone[0], "watch p99": alone[1]}


ROWS = [  # of a round, in the table's words; more is better
    ("create/s", "create/s, 1 KB ConfigMap, 32 in flight", True),
    ("create p50", "  one in flight, p50, ms", False), ("create p99", "  p99, ms", False),
    ("get/s", "get/s of it, 32 in flight", True),
    ("get p50", "  one in flight, p50, ms", False), ("get p99", "  p99, ms", False),
    ("list/s", "list/s of 3,000, 4 in flight", True),
    ("list p50", "  one in flight, p50, ms", False), ("list p99", "  p99, ms", False),
    ("patch/s", "patch/s, 32 in flight", True),
    ("patch p50", "  one in flight, p50, ms", False), ("patch p99", "  p99, ms", False),
    ("watch/s", "events/s to 20 watches", True),
    ("watch p50", "  write to event, p50, ms", False), ("watch p99", "  p99, ms", False),
]


# --- limits ------------------------------------------------------------------------------------------

def limits_of(files, directory, target, scale):
    """The same rows from the machine alone."""
    one = target.api.raw("GET", "/api/v1/namespaces/bench/configmaps/one")[2]
    rows = {"create/s": sqlite_rows(directory, one)}
    if not files:
        return rows
    path = files.put("one", one)
    rows["get/s"] = files.load(path, scaled(20000, scale, 50)).rate
    rows["get p50"], rows["get p99"] = both(files.load(path, scaled(2000, scale, 50), 1, 1).latencies)
    path = files.put("all", target.api.raw("GET", "/api/v1/namespaces/listed/configmaps")[2])
    rows["list/s"] = files.load(path, scaled(100, scale, 50), streams=1).rate
    rows["list p50"], rows["list p99"] = both(files.load(path, 50, 1, 1).latencies)
    return rows


# --- start, idle, pods -------------------------------------------------------------------------------

def first_request(kubeconfig, start):
    """Seconds from starting the processes to the first authenticated request that is answered with 200."""
    def answered():
        api = Api(kubeconfig)
        try:
            return api.raw("GET", "/api/v1/namespaces")[0] == 200
        finally:
            api.close()

    begin = time.monotonic()
    start()
    eventually(answered, 120, "the first request", interval=0.001, also=(*AWAY, FileNotFoundError, TypeError))
    return time.monotonic() - begin


def start_of(vc):
    """Of Sublet, over a fresh store."""
    shutil.rmtree(vc.store, ignore_errors=True)
    taken = first_request(vc.kubeconfig, vc.process.start)
    vc.process.stop()
    return taken


def start_of_peer(host):
    """Of etcd and kube-apiserver, over a fresh store; they go on."""
    for name in reversed(PEER):
        host.stop_component(name)
    shutil.rmtree(os.path.join(host.dir, "etcd-data"), ignore_errors=True)
    return first_request(host.kubeconfig, lambda: [host.components[name].start() for name in PEER])


def idle_of(pids, seconds):
    """(memory, % of a core) of processes that get no request."""
    before = [cpu_seconds(p) for p in pids]
    time.sleep(seconds)
    used = sum(cpu_seconds(p) - b for p, b in zip(pids, before))
    return memory_of(pids), 100 * used / seconds


def running(api, path):
    code, _, text = api.raw("GET", path, query={"fieldSelector": "status.phase=Running"},
                            accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    assert code == 200, text
    return len(json.loads(text)["items"] or [])  # kube-apiserver writes null into a list of metadata without items


def pods_to_running(api, namespace, n, number):
    """Seconds from the first create to all Running, one client creating as fast as it is answered.

    Names are those of one round: the simulated kubelet deletes by name, without the uid, a second time and late
    when many pods terminate at once; it would delete the next pod of that name.
    """
    path = f"/api/v1/namespaces/{namespace}/pods"
    begin = time.monotonic()
    for i in range(n):
        api.post(path, pod(f"pod-{number}-{i}"))  # with its token mounted, as pods are

    deadline = begin + 300
    while running(api, path) < n:
        assert time.monotonic() < deadline, f"{running(api, path)} of {n} pods run"
        time.sleep(0.05)
    taken = time.monotonic() - begin
    api.delete(path, query={"gracePeriodSeconds": "0"})
    eventually(lambda: not api.get(path)["items"], 120, "the pods to go")
    return taken


def start_rest(host):
    """What runs pods on the host: not needed, and not running, before."""
    for name in host.ORDER[2:]:
        host.components[name].start()
    for name in host.ORDER[2:]:
        host.wait_ready(name)
    eventually(lambda: host.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 60,
               "the default service account")
    for i in range(4):
        host.add_cpu_node(f"cpu-{i}")


def measure_pods(host, directory, rounds, n):
    start_rest(host)
    for namespace in ("direct", "team"):
        host.create_namespace(namespace)
    vc = VirtualCluster("pods", directory, host, "team").start()
    try:
        eventually(lambda: vc.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 30, "account")
        pairs = [in_turn(i, lambda: pods_to_running(vc.api, "default", n, i),
                         lambda: pods_to_running(host.api, "direct", n, i))
                 for i in range(rounds)]
    finally:
        vc.stop()
    return [p[0] for p in pairs], [p[1] for p in pairs]


def in_turn(i, ours, theirs):
    """(ours(), theirs()): who goes first alternates, so that what one leaves behind is not always the other's."""
    if i % 2:
        second = theirs()
        return ours(), second
    return ours(), theirs()


def measure_day(host, directory, scale):
    """Private MB of a process that had a day's work and rested, and of one beside it that was never used."""
    clusters = []
    try:
        for name in ("day", "never"):
            host.create_namespace(f"team-{name}")
            clusters.append(VirtualCluster(name, directory, host, f"team-{name}").start())
        used, never = clusters
        Team(used.kubeconfig, used.kubectl, scale).day()
        time.sleep(scaled(RESTED, scale, 1))
        return memory_mb(used.pid)["private"], memory_mb(never.pid)["private"]
    finally:
        for vc in clusters:
            vc.kill()


# --- all of it ---------------------------------------------------------------------------------------

class Bench:
    def __init__(self, directory, rounds, scale):
        self.dir = directory
        self.rounds = rounds
        self.scale = scale
        self.host = HostCluster(os.path.join(directory, "host"), durable=True)
        self.vc, self.beside = (VirtualCluster(name, os.path.join(directory, "tenant"), self.host, f"team-{name}")
                                for name in ("bench", "beside"))
        self.table = Table("peer")

    def run(self):
        say("start")
        pairs = [in_turn(i, lambda: start_of(self.vc), lambda: start_of_peer(self.host)) for i in range(self.rounds)]
        self.table.add("start to the first request, s", [p[0] for p in pairs], [p[1] for p in pairs])
        self.host.wait_ready("kube-apiserver")
        for vc in (self.vc, self.beside):
            self.host.api.post("/api/v1/namespaces", {"metadata": {"name": vc.namespace}})
        self.idle()
        self.loads()
        say("pods")
        pods = scaled(PODS, self.scale, 3)
        ours, direct = measure_pods(self.host, self.dir, self.rounds, pods)
        self.table.add(f"{pods} pods to Running, s (host alone)", ours, direct)
        say("a day's work")
        used, never = measure_day(self.host, self.dir, self.scale)
        peer = memory_of(self.peer_pids())["private"]
        self.table.add(f"private {scaled(RESTED, self.scale, 1)} s after a day's work, MB", [used], [peer])
        self.table.add("  of one beside it, never used", [never], [])

    def peer_pids(self):
        return [self.host.components[c].pid for c in PEER]

    def idle(self):
        """Beside another tenant, as tenants are: the program's own pages are shared. Both are connected to the host."""
        say("idle")
        for vc in (self.beside, self.vc):
            vc.start()
            vc.close_api()
        eventually(self.connected, 60, "both to be connected to the host")
        time.sleep(SETTLE)
        memory, cpu = idle_of([self.vc.pid], scaled(20, self.scale, 1))
        peer_memory, peer_cpu = idle_of(self.peer_pids(), scaled(10, self.scale, 1))
        for kind in memory:
            self.table.add(f"{kind} memory idle, MB", [memory[kind]], [peer_memory[kind]])
        self.table.add("CPU idle, % of a core", [cpu], [peer_cpu])

    def connected(self):
        """The host knows a kubeconfig of each: what their syncers write there first."""
        return all(self.host.api.get(f"/api/v1/namespaces/{vc.namespace}/secrets/{vc.name}-kubeconfig")
                   for vc in (self.vc, self.beside))

    def loads(self):
        ours = Target("sublet", self.vc.api, self.vc.api.server.geturl(), self.vc.dir)
        peer = Target("kube-apiserver + etcd", self.host.api, self.host.url, self.host.dir)
        files = FileServer.start(self.dir, Pki(os.path.join(self.dir, "pki")))
        rounds = []
        try:
            for i in range(self.rounds):
                say(f"load, round {i + 1} of {self.rounds}")
                pair = in_turn(i, Round(ours, self.scale).run, Round(peer, self.scale).run)
                rounds.append((*pair, limits_of(files, self.dir, ours, self.scale)))
        finally:
            if files:
                files.stop()
        for key, what, more in ROWS:
            self.table.add(what, *([r[i][key] for r in rounds if key in r[i]] for i in range(3)), more=more)
        time.sleep(SETTLE)
        after, peer_after = memory_mb(self.vc.pid), memory_of(self.peer_pids())
        for kind in ("resident", "private"):
            self.table.add(f"{kind} memory after it, MB", [after[kind]], [peer_after[kind]])

    def stop(self):
        self.vc.stop()
        self.beside.stop()
        self.host.stop()


def say(what):
    print(f"bench: {what}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Measures Sublet beside kube-apiserver and etcd.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of requests, pods and seconds of rest")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as directory:
        bench = Bench(directory, options.rounds, options.scale)
        try:
            bench.run()
        finally:
            bench.stop()
    bench.table.print()
    print(f"\npeer: kube-apiserver and etcd; limit: nghttpd with the same bytes, SQLite with the same rows; "
          f"medians over {options.rounds} rounds, on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
