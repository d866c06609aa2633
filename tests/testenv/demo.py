# SPDX-License-Identifier: Apache-2.0
"""tests/demo as a process under test, with its clusters."""
import os
import subprocess
import time

import pytest

from . import binaries
from .binaries import TREE


class Demo:
    """demo.run() -> what it said; demo.kubectl(cluster, ...) -> stdout."""

    def __init__(self, directory):
        self.dir = str(directory)
        self.kubectl_path = binaries.host_program("kubectl")
        self.env = {**os.environ, "SUBLET_DEMO": self.dir, "SUBLET_BIN": binaries.sublet(),
                    "KUBECTL": self.kubectl_path, "ASAN_OPTIONS": "detect_leaks=0"}

    def run(self, *args, **env):
        r = subprocess.run([os.path.join(TREE, "tests", "demo"), *args], env={**self.env, **env}, text=True,
                           capture_output=True, timeout=600, check=False)
        assert r.returncode == 0, r.stdout + r.stderr
        return r.stdout

    def kubeconfig(self, cluster):
        return os.path.join(self.dir, cluster, "kubeconfig")

    def kubectl(self, cluster, *args):
        return subprocess.run([self.kubectl_path, "--kubeconfig", self.kubeconfig(cluster), *args], text=True,
                              capture_output=True, timeout=300, check=True, cwd=TREE).stdout

    def kill(self, part):
        """SIGKILL to one part, and waits until it is gone: the signal alone leaves it alive for a moment."""
        with open(os.path.join(self.dir, part + ".pid"), encoding="ascii") as f:
            pid = int(f.read())
        os.kill(pid, 9)
        deadline = time.monotonic() + 180
        while pid in self.pids():
            assert time.monotonic() < deadline, f"{part} outlives SIGKILL"
            time.sleep(0.01)

    def pids(self):
        """The pids it wrote down whose processes live."""
        found = []
        for part in ("host", "research", "prod"):
            try:
                with open(os.path.join(self.dir, part + ".pid"), encoding="ascii") as f:
                    pid = int(f.read())
                with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] != "Z":
                        found.append(pid)
            except (OSError, ValueError):
                pass
        return found


@pytest.fixture(scope="module")
def demo(workdir):
    d = Demo(os.path.join(workdir, "demo"))
    d.said = d.run()
    yield d
    d.run("stop")
    assert not d.pids()
