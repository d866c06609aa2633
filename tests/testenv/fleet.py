# SPDX-License-Identifier: Apache-2.0
"""One `sublet fleet` process on a host, and the reports of its ledger."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import urllib.error
import urllib.request

import yaml

from . import binaries
from .helm import Helm
from .process import Process
from .virtual import sanitizer_env
from .wait import eventually


CHART = os.path.join(binaries.TREE, "charts", "sublet-fleet")


def chart_objects(directory, namespace="sublet-system", **values):
    """What the chart of the fleet makes of these values."""
    text = Helm(directory)("template", "fleet", CHART, "-n", namespace,
                           values={"config": {"pools": [{"name": "any"}]}, **values})
    return [o for o in yaml.safe_load_all(text) if o]


def chart_crds(directory, **values):
    """Its CustomResourceDefinitions."""
    return [o for o in chart_objects(directory, **values) if o["kind"] == "CustomResourceDefinition"]


def sublet_report(*args):
    """`sublet report ARGS`, as a completed process."""
    return subprocess.run([binaries.sublet(), "report", *args], text=True, capture_output=True,
                          env={**os.environ, **sanitizer_env()}, timeout=120, check=False)


# The process ends when the machine, or the host, stood still for longer than it may hold its Lease.
LEASE_LOST = "sublet: fleet: the Lease was not renewed in time"


class Fleet:
    """fleet.start() ... fleet.stop(); fleet.report(by="tenant,pool") -> the JSON report."""

    def __init__(self, directory, host, namespace, pools, kubeconfig=None, store=None, lease="60s", args=(), postgres=None):
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.store = store or os.path.join(self.dir, "ledger")
        self.config_path = os.path.join(self.dir, "fleet.yaml")
        self.config = {"host": {"namespace": namespace, "kubeconfig": kubeconfig or host.kubeconfig},
                       "store": {"path": self.store}, "lease": {"duration": lease}, "pools": pools}
        self.ledger = ["--postgres", postgres] if postgres else ["--data-dir", self.store]
        self.write_config(**({"ledger": {"postgres": {"file": postgres}}} if postgres else {}))
        self._keeper, self._stopping, self._change = None, False, threading.Lock()
        self.process = Process("sublet-fleet", [binaries.sublet(), "fleet", "--config", self.config_path, *args],
                               self.dir, env=sanitizer_env())

    def write_config(self, **changes):
        """Takes effect at the next start."""
        self.config.update(changes)
        with open(self.config_path, "w", encoding="utf-8") as f:
            yaml.safe_dump(self.config, f, sort_keys=False)

    def start(self, wait=True):
        self.process.start()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self):
        def ready():
            self.process.check()
            return "ready" in self.process.output()
        eventually(ready, 60, "the fleet to be ready")

    def keep(self):
        """Starts a process again that lost its Lease, as its Deployment does, until stop(). Any other end is an error there."""
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _keep(self):
        while self.process.ends():
            with self._change:
                if self._stopping or not self._lost_lease():
                    return
                self.process.start()

    def _lost_lease(self):
        return self.process.tail(1).startswith(LEASE_LOST)

    def stop(self):
        with self._change:
            self._stopping = True
            died = self.process.died and not (self._keeper and self._lost_lease())
            code = self.process.stop()
        if self._keeper:
            self._keeper.join()
        self._keeper, self._stopping = None, False
        assert not died and code in (0, None), f"the fleet ended with {code}:\n{self.process.tail()}"

    def kill(self):
        self.process.kill()

    def began_earlier(self, seconds):
        """The ledger of a process that was stopped, as if it had begun before; nothing was held then."""
        with sqlite3.connect(os.path.join(self.store, "ledger.db")) as db:
            assert db.execute("UPDATE meta SET value = value - ? WHERE key = 'begin'", (seconds * 1000000,)).rowcount == 1

    def close(self):
        try:
            self.stop()
        finally:
            self.kill()
            shutil.rmtree(self.store, ignore_errors=True)

    def port(self, what):
        """Of the "metrics", which `--listen 127.0.0.1:0` opened, or of the "page"."""
        def known():
            self.process.check()
            return re.search(rf"{what} on port (\d+)\n", self.process.output())
        return int(eventually(known, 60, f"the port of the {what}").group(1))

    def scrape(self, path="/metrics", method="GET", **headers):
        """(status, content) of the port of the metrics."""
        number = self.port("metrics")
        request = urllib.request.Request(f"http://127.0.0.1:{number}{path}", headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def metrics(self):
        """{name: {labels: value}} of a scrape, labels as a frozenset of pairs."""
        status, content = self.scrape()
        assert status == 200, content
        out, declared = {}, set()
        for line in content.splitlines():
            if line.startswith("# TYPE "):
                declared.add(line.split(" ")[2])
            if line.startswith("#"):
                continue
            m = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line)
            assert m and m.group(1) in declared, line
            labels = frozenset(re.findall(r'(\w+)="([^"]*)"', m.group(2) or ""))
            assert labels not in out.setdefault(m.group(1), {}), line
            out[m.group(1)][labels] = float(m.group(3))
        return out

    def print_report(self, *args):
        """What `sublet report` prints; it must succeed."""
        r = sublet_report(*self.ledger, *args)
        assert r.returncode == 0, r.stderr
        return r.stdout

    def report(self, by="tenant,pool", *args):
        return json.loads(self.print_report("--by", by, "--format", "json", *args))

    def lines(self, by="tenant,pool", **want):
        """The lines of a report whose columns have these values."""
        return [line for line in self.report(by)["lines"] if all(line.get(k) == v for k, v in want.items())]
