#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A day's work of one tenant, and what it leaves in the memory of a process that gets no more requests.

`/usr/bin/python3 tests/bench/day.py`, with SUBLET_BIN the release program: the demo's two teams on `sublet host`, then
tests of ours on a real host: a team that lets kubectl explain, is scraped, makes and deletes 2,000 objects and runs 20
pods. Each step is followed by what private memory is then and RESTED seconds later, beside a tenant that was never used.
Nothing is asserted: figures are for people.
"""
import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from load import CMS, config_map  # noqa: E402
from measure import memory_mb  # noqa: E402
from testenv import HostCluster, VirtualCluster  # noqa: E402
from testenv.demo import Demo  # noqa: E402
from testenv.kubectl import Kubectl  # noqa: E402
from testenv.api import Api  # noqa: E402
from testenv.wait import eventually  # noqa: E402

RESTED = 120   # seconds after the last request until memory is read: what a day leaves
OBJECTS = 2000
PODS = 20
EXPLAINED = ("deployment.spec", "pods.spec.containers", "cronjobs", "hpa.spec.metrics", "crd.spec.versions.schema")


class Team:
    """The work of a day, or a part of it, through one API server: a kubeconfig of its admin, and kubectl with it."""

    def __init__(self, kubeconfig, kubectl, scale=1.0):
        self.api = Api(kubeconfig)
        self.kubectl = kubectl
        self.n_objects, self.n_pods = scaled(OBJECTS, scale, 8), scaled(PODS, scale, 2)

    def explain(self):
        for what in EXPLAINED:
            self.kubectl("explain", what, "--recursive")

    def scrape(self):
        for _ in range(10):
            assert self.api.raw("GET", "/metrics")[0] == 200

    def objects(self):
        """Made and deleted by four clients at once."""
        path = CMS.format("default")

        def some(first):
            api = self.api.clone()
            for i in range(first, self.n_objects, 4):
                api.post(path, config_map(f"day-{i}"))
            for i in range(first, self.n_objects, 4):
                api.delete(f"{path}/day-{i}")
            api.close()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(some, range(4)))

    def pods(self):
        """With their token mounted, as pods are; run, and gone."""
        path = "/api/v1/namespaces/default/pods"
        eventually(lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 60, "the account")
        names = [f"day-{i}" for i in range(self.n_pods)]
        for name in names:
            self.api.post(path, pod(name))
        eventually(lambda: {"Running"} == {self.api.get(f"{path}/{n}")["status"].get("phase") for n in names}, 120,
                   f"{self.n_pods} pods to run")
        for name in names:
            self.api.delete(f"{path}/{name}", query={"gracePeriodSeconds": "1"})
        eventually(lambda: not set(names) & {p["metadata"]["name"] for p in self.api.get(path)["items"]}, 120,
                   "the pods to go")

    def day(self, after=lambda step: None):
        """All of it; after(step's name) is called after each."""
        for step in (self.explain, self.scrape, self.objects, self.pods):
            step()
            self.api.close()
            after(step.__name__)


def scaled(full, scale, least):
    """A share of a number of requests, objects or seconds."""
    return max(least, int(full * scale))


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "busybox:1"}]}}


def private(pid):
    return memory_mb(pid)["private"]


def steps_of(team, pid, rest, once=False):
    """[(step, private MB at its end, `rest` seconds later)] of a day. once: there is one rest, when the day is over."""
    rows = []

    def after(step):
        at_end = private(pid)
        time.sleep(0 if once else rest)
        rows.append((step, at_end, private(pid)))

    team.day(after)
    if once:
        time.sleep(rest)
        rows.append(("all of it", rows[-1][1], private(pid)))
    return rows


def on_a_real_host(directory, rest, scale):
    host = HostCluster(os.path.join(directory, "host")).start()
    clusters = []
    try:
        host.add_cpu_node("cpu-1")
        for name in ("never", "day"):
            host.create_namespace(f"team-{name}")
            clusters.append(VirtualCluster(name, os.path.join(directory, "tenants"), host, f"team-{name}").start())
            clusters[-1].close_api()
        never, day = clusters
        time.sleep(rest)
        rows = [("start", private(day.pid), private(day.pid))]
        rows += steps_of(Team(day.kubeconfig, day.kubectl, scale), day.pid, rest)
        rows.append(("never used", private(never.pid), private(never.pid)))
        return rows
    finally:
        for vc in clusters:
            vc.kill()
        host.stop()


def after_the_demo(directory, rest, once, scale):
    """The team `research` of tests/demo: its process has the demo's work behind it, and then the day."""
    demo = Demo(os.path.join(directory, "demo"))
    demo.run()
    try:
        with open(os.path.join(demo.dir, "research.pid"), encoding="ascii") as f:
            pid = int(f.read())
        time.sleep(0 if once else rest)
        rows = [("demo", private(pid), private(pid))]
        kubeconfig = demo.kubeconfig("research")
        team = Team(kubeconfig, Kubectl(demo.kubectl_path, kubeconfig, demo.dir), scale)
        return rows + steps_of(team, pid, rest, once)
    finally:
        demo.run("stop")


def show(title, rows):
    print(f"{title:32}{'at its end':>12}{'rested':>10}   MB private")
    for step, at_end, rested in rows:
        print(f"  {step:30}{at_end:12.2f}{rested:10.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Private memory of a process during a day's work, and at rest.")
    parser.add_argument("rest", type=int, nargs="?", default=RESTED, help="seconds after each step")
    parser.add_argument("--demo", action="store_true", help="only after the demo, with one rest, at the end of the day")
    parser.add_argument("--scale", type=float, default=1.0, help="of the day's work")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sublet-day-") as directory:
        if options.demo:
            show("a day after the demo", after_the_demo(directory, options.rest, True, options.scale)[-1:])
            return
        show("a day on a real host", on_a_real_host(directory, options.rest, options.scale))
        show("a day after the demo", after_the_demo(directory, options.rest, False, options.scale))


if __name__ == "__main__":
    main()
