#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""DNS of a tenant beside CoreDNS on the same data, in one run.

`/usr/bin/python3 tests/bench/names.py [--rounds N] [--scale F]`, with SUBLET_BIN the release program. CoreDNS has the
configuration of a kubeadm cluster (pods insecure, cache 30) and reads the same tenant through its API, so both answer for
the same Services. dnsperf sends the queries over UDP: as fast as it is answered, with 100 queries in flight; then 1,000 a second, for
the latency. Memory is taken before the load, with the data loaded, and after it. Nothing is asserted but that every
query is answered; figures are for people.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import dns.exception  # noqa: E402
import dns.message  # noqa: E402
import dns.query  # noqa: E402

from day import scaled  # noqa: E402
from load import both  # noqa: E402
from measure import Table, cpu_seconds, memory_mb  # noqa: E402
from testenv import HostCluster, VirtualCluster, binaries  # noqa: E402
from testenv.process import Port, Process  # noqa: E402
from testenv.wait import eventually  # noqa: E402

SERVICES = 500      # half of them headless
ENDPOINTS = 4       # of each headless one
SECONDS = 10        # of each load
PACED = 1000        # queries per second while latencies are taken
COREFILE = """.:%d {
    bind 127.0.0.1
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %s
        pods insecure
        ttl 5
    }
    cache 30
}
"""


class Server:
    """One that answers: its name, its port, its process."""

    def __init__(self, name, port, pid):
        self.name = name
        self.port = port
        self.pid = pid

    def answers(self, name):
        try:
            reply = dns.query.udp(dns.message.make_query(name, "A"), "127.0.0.1", port=self.port, timeout=1)
        except (OSError, dns.exception.Timeout):
            return False
        return bool(reply.answer)

    def load(self, queries, seconds, *more):
        """What dnsperf prints; every query answered, none of them with an error."""
        out = subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d", queries, "-l", str(seconds), *more],
                             capture_output=True, text=True, check=True, timeout=seconds + 60).stdout
        assert re.search(r"Queries lost: +0 ", out) and "NOERROR" in out and "NXDOMAIN" not in out.split("Response codes")[1], out
        return out

    def round(self, queries, seconds):
        """{row: value}: as fast as it goes, and at a steady pace."""
        cpu = cpu_seconds(self.pid)
        out = self.load(queries, seconds, "-c", "8", "-q", "100")
        answered = int(re.search(r"Queries completed: +(\d+)", out).group(1))
        rows = {"rate": float(re.search(r"Queries per second: +([\d.]+)", out).group(1)),
                "cpu": (cpu_seconds(self.pid) - cpu) / answered * 1e6}
        out = self.load(queries, seconds, "-c", "8", "-Q", str(PACED), "-v")
        times = [float(t) * 1000 for t in re.findall(r"^> NOERROR \S+ \S+ ([\d.]+)$", out, re.M)]
        rows["p50"], rows["p99"] = both(times)
        return rows


def service(i):
    spec = {"ports": [{"name": "http", "port": 80}]}
    if i % 2:
        spec["clusterIP"] = "None"
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{i}"}, "spec": spec}


def endpoints(i):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": f"s{i}", "labels": {"kubernetes.io/service-name": f"s{i}"}},
            "ports": [{"name": "http", "port": 80}],
            "endpoints": [{"addresses": [f"10.99.{i % 250}.{j + 1}"], "hostname": f"h{j}"} for j in range(ENDPOINTS)]}


def fill(api, n):
    """Makes the Services; returns the queries: addresses, ports of headless ones, their hosts, a reverse look-up."""
    lines = []
    for i in range(n):
        api.post("/api/v1/namespaces/default/services", service(i))
        name = f"s{i}.default.svc.cluster.local"
        lines.append(f"{name} A")
        if i % 2:
            api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", endpoints(i))
            lines += [f"_http._tcp.{name} SRV", f"h1.{name} A"]
    return [*lines, "1.1.99.10.in-addr.arpa PTR"]


def start_coredns(directory, kubeconfig):
    port = Port()
    path = os.path.join(directory, "Corefile")
    with open(path, "w", encoding="utf-8") as f:
        f.write(COREFILE % (port.number, kubeconfig))
    process = Process("coredns", [binaries.bench_program("coredns-bind"), "-conf", path], directory).start()
    return process, Server("coredns", port.number, process.pid)


def measure(directory, rounds, scale):
    host = HostCluster(os.path.join(directory, "host")).start()
    host.create_namespace("team")
    port = Port()
    vc = VirtualCluster("dns", os.path.join(directory, "tenant"), host, "team", config={
        "sync": {"maxServices": SERVICES},
        "network": {"dns": {"listen": f"127.0.0.1:{port}", "clients": ["127.0.0.0/8"]}}})
    coredns = None
    try:
        vc.start()
        lines = fill(vc.api, scaled(SERVICES, scale, 4))
        queries = os.path.join(directory, "queries")
        with open(queries, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        ours = Server("sublet", port.number, vc.pid)
        coredns, theirs = start_coredns(directory, vc.kubeconfig)
        for server in (ours, theirs):
            for name in {line.split()[0] for line in lines if line.endswith(" A")}:
                eventually(lambda: server.answers(name), 60, f"{server.name} to know {name}")
        return compare(ours, theirs, queries, rounds, scaled(SECONDS, scale, 1))
    finally:
        if coredns:
            coredns.stop()
        vc.stop()
        host.stop()


def compare(ours, theirs, queries, rounds, seconds):
    table = Table("coredns")
    time.sleep(1)
    before = [memory_mb(s.pid) for s in (ours, theirs)]
    values = []
    for i in range(rounds):
        order = (ours, theirs) if i % 2 == 0 else (theirs, ours)
        values.append({s.name: s.round(queries, seconds) for s in order})
    after = [memory_mb(s.pid) for s in (ours, theirs)]
    for key, what, more in (("rate", "DNS queries/s", True), ("cpu", "  CPU of a query, us", False),
                            ("p50", f"latency p50 at {PACED}/s, ms", False), ("p99", "  p99", False)):
        table.add(what, *([v[s.name][key] for v in values] for s in (ours, theirs)), more=more)
    for what, (mine, others) in (("loaded", before), ("after the load", after)):
        for kind in ("resident", "private"):
            table.add(f"{kind} memory, {what}, MB", [mine[kind]], [others[kind]])
    return table


def main():
    parser = argparse.ArgumentParser(description="Measures a tenant's DNS beside CoreDNS.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of Services and seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sublet-dns-") as directory:
        measure(directory, options.rounds, options.scale).print()
    print("\nmemory of sublet is that of its whole process: API server, store, controllers, syncer and DNS")


if __name__ == "__main__":
    main()
