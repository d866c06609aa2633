# SPDX-License-Identifier: Apache-2.0
"""Sublet and kube-apiserver + etcd in one run, on this machine: start, memory, rates; printed as ratios.

`tests/run bench`, or `/usr/bin/python3 tests/bench/bench.py`. Both get the same requests from the same
generator (h2load, HTTP/2, 32 in flight) with a service account's token. Both sync every write: etcd by its
default, Sublet by synchronous=FULL. Nothing is asserted: figures are for people.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from testenv import HostCluster, VirtualCluster  # noqa: E402
from testenv.wait import eventually  # noqa: E402

ROUNDS = 3
CMS = "/api/v1/namespaces/default/configmaps"


class Target:
    """An API server under load."""

    def __init__(self, name, api, url, directory):
        self.name = name
        self.api = api
        self.url = url
        self.dir = directory
        api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "bench"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "bench"}]})
        self.token = api.create_service_account("default", "bench")

    def load(self, path, n, body=None, streams=8):
        """Requests per second of n requests, 4 connections with `streams` in flight each."""
        command = ["h2load", "-n", str(n), "-c", "4", "-m", str(streams),
                   "-H", f"authorization: Bearer {self.token}"]
        if body is not None:
            file = os.path.join(self.dir, "body.json")
            with open(file, "w", encoding="utf-8") as f:
                json.dump(body, f)
            command += ["-H", "content-type: application/json", "-d", file]
        out = subprocess.run(command + [self.url + path], capture_output=True, text=True, check=True,
                             timeout=600).stdout
        done = re.search(r"(\d+) 2xx", out)
        assert done and int(done.group(1)) == n, f"{self.name} {path}: {out}"
        return float(re.search(r"finished in [^,]+, ([\d.]+) req/s", out).group(1))


def config_map(size=1024):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "b-"},
            "data": {"payload": "x" * size}}


def measure(target):
    """One round of every rate."""
    one = target.api.post(CMS, config_map())["metadata"]["name"]
    rates = {"create/s, 1 KB, 32 in flight": target.load(CMS, 4000, config_map()),
             "get/s of it": target.load(f"{CMS}/{one}", 20000)}
    ns = "/api/v1/namespaces/listed/configmaps"
    if target.api.raw("GET", "/api/v1/namespaces/listed")[0] == 404:
        target.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                               "metadata": {"name": "listed"}})
        eventually(lambda: target.load(ns, 3000, config_map()), 10, "3,000 objects to list")
    rates["list/s of 3,000"] = target.load(ns, 40, streams=1)
    return rates


def memory_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        text = f.read()
    kb = {k: int(v) for k, v in re.findall(r"(\w+): +(\d+) kB", text)}
    return {"resident": kb["Rss"] / 1024, "proportional": kb["Pss"] / 1024,
            "private": (kb["Private_Clean"] + kb["Private_Dirty"]) / 1024}


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def starts(vc):
    """Seconds from exec to the ready line, over fresh stores; a tenth of them is thrown away at each end."""
    taken = []
    for _ in range(10):
        begin = time.monotonic()
        vc.start(wait=False)
        eventually(lambda: vc._read_ready_line(), 30, "ready", interval=0.001)
        taken.append(time.monotonic() - begin)
        vc.process.stop()
        subprocess.run(["rm", "-rf", vc.store], check=True)
    return statistics.median(taken)


def main():
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as directory:
        host = HostCluster(os.path.join(directory, "host"), durable=True)
        vc = VirtualCluster("bench", os.path.join(directory, "tenant"))
        try:
            begin = time.monotonic()
            host.start_component("etcd")
            host.start_component("kube-apiserver")
            host.wait_ready("kube-apiserver")
            peer_start = time.monotonic() - begin
            ours_start = starts(vc)
            vc.start()
            time.sleep(5)
            idle, before = memory_mb(vc.pid), cpu_seconds(vc.pid)
            time.sleep(20)
            cpu = (cpu_seconds(vc.pid) - before) / 20
            peer_memory = sum(memory_mb(host.components[c].pid)["resident"]
                              for c in ("kube-apiserver", "etcd"))
            ours = Target("sublet", vc.api, vc.api.server.geturl(), vc.dir)
            peer = Target("kube-apiserver + etcd", host.api, host.url, host.dir)
            rounds = [(measure(ours), measure(peer)) for _ in range(ROUNDS)]
            loaded = memory_mb(vc.pid)
        finally:
            vc.stop()
            host.stop()
    print(f"{'':34}{'sublet':>12}{'peer':>12}{'ratio':>9}  (spread over {ROUNDS} rounds)")
    print(f"{'start to ready, s':34}{ours_start:12.3f}{peer_start:12.3f}{peer_start / ours_start:8.1f}x")
    print(f"{'resident idle, MB':34}{idle['resident']:12.1f}{peer_memory:12.1f}"
          f"{peer_memory / idle['resident']:8.1f}x")
    for kind in ("proportional", "private"):
        print(f"{kind + ' idle, MB':34}{idle[kind]:12.1f}")
    print(f"{'CPU idle, % of a core':34}{100 * cpu:12.2f}")
    for what in rounds[0][0]:
        a = [r[0][what] for r in rounds]
        b = [r[1][what] for r in rounds]
        ratios = [x / y for x, y in zip(a, b)]
        print(f"{what:34}{statistics.median(a):12.0f}{statistics.median(b):12.0f}"
              f"{statistics.median(ratios):8.1f}x  ({min(ratios):.1f} to {max(ratios):.1f})")
    print(f"{'resident after it, MB':34}{loaded['resident']:12.1f}")


if __name__ == "__main__":
    main()
