#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many virtual clusters on one machine beside a real host: what each costs while idle.

`/usr/bin/python3 tests/bench/density.py [N]...` (100 and 1,000 by default), with SUBLET_BIN the release program.
Each has an identity of its own on the host, as the chart gives it one: a namespace, a ServiceAccount with rights in it,
its token. Prints how long all took to start, the memory of each, the CPU of all together while idle, what woke them,
and how many watches each keeps on the host; then that the last one still runs a pod, and what one that was used and
rests keeps beside the others. Nothing is asserted but that the pod runs: figures are for people.
"""
import argparse
import collections
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from day import RESTED, Team, pod, scaled  # noqa: E402
from measure import cpu_seconds, memory_mb, switches  # noqa: E402
from testenv import HostCluster, VirtualCluster  # noqa: E402
from testenv.wait import UNSET, eventually  # noqa: E402

AT_ONCE = 8    # started at a time, as a host would after a restart
SETTLE = 40    # seconds until what a start leaves behind is tidied (the store's quiet time is 30)


def watches(host):
    """{resource: how many watches the host serves}."""
    text = host.api.raw("GET", "/metrics")[2].decode()
    found = collections.Counter()
    for labels, value in re.findall(r"^apiserver_longrunning_requests\{([^}]*)\} (\S+)$", text, re.M):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if labels.get("verb") == "WATCH":
            found[labels["resource"]] += int(float(value))
    return found


RBAC = "/apis/rbac.authorization.k8s.io/v1"
READS = ["get", "list", "watch"]


def make_roles(host):
    """All rights in a namespace, bound namespace by namespace, and what every team may read of the cluster."""
    for name, groups, resources, verbs in (
            ("team", ["*"], ["*"], ["*"]),
            ("teams-read", ["", "storage.k8s.io", "node.k8s.io", "scheduling.k8s.io"],
             ["nodes", "storageclasses", "runtimeclasses", "priorityclasses"], READS)):
        host.api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [
            {"apiGroups": groups, "resources": resources, "verbs": verbs}]})
    host.api.post(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": "teams-read"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                                        "name": "teams-read"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts"}]})


def make_team(directory, host, i):
    """A virtual cluster with its namespace, and its account there."""
    namespace = f"team-{i}"
    host.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    kubeconfig = host.service_account_kubeconfig(namespace, "sublet")
    host.api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", {
        "metadata": {"name": "sublet"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "team"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": "sublet"}]})
    return VirtualCluster(f"t{i}", os.path.join(directory, "tenants"), host, namespace, host_kubeconfig=kubeconfig)


def start_all(clusters):
    """Seconds of each to its ready line (the port is open then), and of all."""
    def start(vc):
        begin = time.monotonic()
        vc.start(wait=False)
        eventually(vc._read_ready_line, 120, f"the ready line of {vc.name}", interval=0.002)
        return time.monotonic() - begin

    begin = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        each = list(pool.map(start, clusters))
    for vc in clusters:
        vc.wait_ready()
        vc.api.close()
    return each, time.monotonic() - begin


def idle(pids, seconds):
    """(% of a core of all, wake-ups per second of all, the busiest's % of a core)."""
    cpu, woken = [cpu_seconds(p) for p in pids], [switches(p) for p in pids]
    time.sleep(seconds)
    used = [cpu_seconds(p) - c for p, c in zip(pids, cpu)]
    wakes = sum(switches(p) - w for p, w in zip(pids, woken))
    return 100 * sum(used) / seconds, wakes / seconds, 100 * max(used) / seconds


def row(what, *values):
    print(f"{what:44}" + "".join(f"{v:>10}" for v in values))


def report(clusters, host, before, each, total, seconds):
    pids = [vc.pid for vc in clusters]
    n = len(pids)
    memory = [memory_mb(p) for p in pids]
    now = watches(host)
    cpu, wakes, busiest = idle(pids, seconds)
    print(f"{n} virtual clusters beside one host, on {os.cpu_count()} cores\n")
    row("", "median", "highest", "all")
    row("start to the ready line, s", f"{statistics.median(each):.3f}", f"{max(each):.3f}", f"{total:.1f}")
    for kind in ("private", "proportional", "resident"):
        values = [m[kind] for m in memory]
        everything = f"{sum(values):.0f}" if kind != "resident" else ""
        row(f"{kind} memory, MB", f"{statistics.median(values):.2f}", f"{max(values):.2f}", everything)
    row(f"CPU while idle, % of a core over {seconds} s", "", f"{busiest:.3f}", f"{cpu:.2f}")
    row("wake-ups per second", "", "", f"{wakes:.2f}")
    for name in sorted(now):
        extra = now[name] - before.get(name, 0)
        if extra:
            row(f"host watches on {name}, each", f"{extra / n:.2f}", "", extra)


def run_a_pod(vc):
    """Seconds until a pod with its token mounted runs."""
    path = "/api/v1/namespaces/default/pods"
    eventually(lambda: vc.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 60, "the account")
    begin = time.monotonic()
    vc.api.post(path, pod("proof"))
    eventually(lambda: vc.api.get(f"{path}/proof")["status"].get("phase") == "Running", 60,
               f"the pod of {vc.name} to run", also=UNSET)
    taken = time.monotonic() - begin
    vc.api.delete(f"{path}/proof", query={"gracePeriodSeconds": "0"})
    vc.close_api()
    return taken


def use(clusters, scale):
    """The last one runs a pod; the first has a day's work, and rests."""
    last, first = clusters[-1], clusters[0]
    try:
        row("a pod in the last to Running, s", f"{run_a_pod(last):.2f}")
    except AssertionError as e:
        print(f"{e}\n{last.api.raw('GET', '/readyz?verbose')[2].decode()}\n{last.process.tail()}")
        raise
    Team(first.kubeconfig, first.kubectl, scale).day()
    rest = scaled(RESTED, scale, 1)
    time.sleep(rest)
    row(f"private memory of a used one after {rest} s, MB", f"{memory_mb(first.pid)['private']:.2f}")
    row("of those never used, MB", f"{statistics.median(memory_mb(vc.pid)['private'] for vc in clusters[1:-1] or clusters):.2f}")


def measure(n, seconds, scale):
    with tempfile.TemporaryDirectory(prefix="sublet-density-") as directory:
        host = HostCluster(os.path.join(directory, "host")).start()
        clusters = []
        try:
            for i in range(4):
                host.add_cpu_node(f"cpu-{i}")
            make_roles(host)
            clusters = [make_team(directory, host, i) for i in range(n)]
            time.sleep(2)
            before = watches(host)
            each, total = start_all(clusters)
            time.sleep(scaled(SETTLE, scale, 1))
            report(clusters, host, before, each, total, seconds)
            use(clusters, scale)
        finally:
            for vc in clusters:
                vc.kill()
            host.stop()


def main():
    parser = argparse.ArgumentParser(description="What idle virtual clusters cost.")
    parser.add_argument("n", nargs="*", type=int, default=[100, 1000])
    parser.add_argument("--seconds", type=int, default=30, help="of being idle that are measured")
    parser.add_argument("--scale", type=float, default=1.0, help="of the day's work and of the seconds of rest")
    options = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    for n in options.n:
        measure(n, options.seconds, options.scale)


if __name__ == "__main__":
    main()
