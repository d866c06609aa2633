# SPDX-License-Identifier: Apache-2.0
"""The machine that the node runs on: it leaves nothing behind, and says what it lacks."""
import os
import subprocess
import sys

from testenv import binaries, machine
from testenv.wait import eventually

SESSION = """
import signal, sys
from testenv.machine import Machine
m = Machine("other", sys.argv[1])
m.start().process("sleeper", ["sleep", "100000"]).start()
print(m.link, m.pid(), flush=True)
signal.pause()
"""


def test_it_ends_with_its_session_however_that_ends(tmp_path):
    session = subprocess.Popen([sys.executable, "-c", SESSION, str(tmp_path)], cwd=os.path.join(binaries.TREE, "tests"),
                               stdout=subprocess.PIPE, text=True)
    try:
        link, pid = session.stdout.readline().split()
        assert os.path.exists(f"/sys/class/net/{link}") and os.path.exists(f"/proc/{pid}")
    finally:
        session.kill()
        session.wait()
        session.stdout.close()
    eventually(lambda: not os.path.exists(f"/proc/{pid}"), 30, "its first process to end")
    eventually(lambda: not os.path.exists(f"/sys/class/net/{link}"), 30, "its interface to be gone")
    with open("/proc/mounts", encoding="utf-8") as f:
        assert str(tmp_path) not in f.read()


def test_what_is_missing_is_said(monkeypatch):
    assert machine.missing() == []
    monkeypatch.setattr(machine, "NEEDED", {"no-such-program": "no-such-package"})
    monkeypatch.setattr(machine, "CONTROLLERS", ("memory", "no-such"))
    assert machine.missing() == ["no-such-program (Debian: no-such-package)", "the cgroup controller no-such"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert machine.missing() == ["the right to make namespaces (root)"]
