# SPDX-License-Identifier: Apache-2.0
"""One `sublet fleet` process on a host, and the reports of its ledger."""
import json
import os
import shutil
import subprocess

import yaml

from . import binaries
from .process import Process
from .virtual import sanitizer_env
from .wait import eventually


class Fleet:
    """fleet.start() ... fleet.stop(); fleet.report(by="tenant,pool") -> the JSON report."""

    def __init__(self, directory, host, namespace, pools, kubeconfig=None, store=None, lease="15s"):
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.store = store or os.path.join(self.dir, "ledger")
        self.config_path = os.path.join(self.dir, "fleet.yaml")
        self.config = {"host": {"namespace": namespace, "kubeconfig": kubeconfig or host.kubeconfig},
                       "store": {"path": self.store}, "lease": {"duration": lease}, "pools": pools}
        self.write_config()
        self.process = Process("sublet-fleet", [binaries.sublet(), "fleet", "--config", self.config_path],
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

    def stop(self):
        code = self.process.stop()
        assert code in (0, None), f"the fleet ended with {code}:\n{self.process.tail()}"

    def kill(self):
        self.process.kill()

    def close(self):
        try:
            self.stop()
        finally:
            self.kill()
            shutil.rmtree(self.store, ignore_errors=True)

    def print_report(self, *args):
        """What `sublet report` prints; it must succeed."""
        r = subprocess.run([binaries.sublet(), "report", "--data-dir", self.store, *args], text=True,
                           capture_output=True, env={**os.environ, **sanitizer_env()}, timeout=120, check=False)
        assert r.returncode == 0, r.stderr
        return r.stdout

    def report(self, by="tenant,pool", *args):
        return json.loads(self.print_report("--by", by, "--format", "json", *args))

    def lines(self, by="tenant,pool", **want):
        """The lines of a report whose columns have these values."""
        return [line for line in self.report(by)["lines"] if all(line.get(k) == v for k, v in want.items())]
