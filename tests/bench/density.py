#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many virtual clusters on one machine beside a real host: what each costs when nobody uses it.

`/usr/bin/python3 tests/bench/density.py [N]` (100 by default), with SUBLET_BIN the release program.
Prints how long all took to start, the memory of each, the CPU of all together while idle, what woke
them, and how many watches each keeps on the host. Nothing is asserted: figures are for people.
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

from measure import cpu_seconds, memory_mb, switches  # noqa: E402
from testenv import HostCluster, VirtualCluster  # noqa: E402
from testenv.wait import eventually  # noqa: E402

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


def make(directory, host, n):
    made = []
    for i in range(n):
        namespace = f"team-{i}"
        host.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                             "metadata": {"name": namespace}})
        made.append(VirtualCluster(f"t{i}", os.path.join(directory, "tenants"), host, namespace))
    return made


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


def main():
    parser = argparse.ArgumentParser(description="What idle virtual clusters cost.")
    parser.add_argument("n", nargs="?", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=30, help="of being idle that are measured")
    options = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    with tempfile.TemporaryDirectory(prefix="sublet-density-") as directory:
        host = HostCluster(os.path.join(directory, "host")).start()
        clusters = []
        try:
            for i in range(4):
                host.add_cpu_node(f"cpu-{i}")
            clusters = make(directory, host, options.n)
            time.sleep(2)
            before = watches(host)
            each, total = start_all(clusters)
            time.sleep(SETTLE)
            report(clusters, host, before, each, total, options.seconds)
        finally:
            for vc in clusters:
                vc.kill()
            host.stop()


if __name__ == "__main__":
    main()
