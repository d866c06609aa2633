# SPDX-License-Identifier: Apache-2.0
"""The measuring programs of tests/bench run to their end. Their figures mean nothing here: each does a hundredth of its work.

They are not part of the default run, so nothing else would find one that a change of the test environment broke.
"""
import os
import subprocess
import sys

import pytest

from testenv.binaries import TREE

PROGRAMS = {
    "bench": (["tests/bench", "--rounds", "2", "--scale", "0.01"],
              ("create/s", "pods to Running", "after a day's work", "CPU idle")),
    "density": (["tests/bench/density.py", "3", "--seconds", "1", "--scale", "0.01"],
                ("a pod in the last to Running", "private memory of a used one", "CPU while idle")),
    "day": (["tests/bench/day.py", "1", "--demo", "--scale", "0.01"], ("a day after the demo", "all of it")),
    "fleet": (["tests/bench/fleet.py", "--tenants", "8", "--pods", "80", "--holds", "2000", "--rounds", "2", "--seconds", "1"],
              ("start to all grants", "to its next grant, p50", "report by tenant and owner, memory")),
    "stored": (["tests/bench/stored.py", "200", "1"], ("1 KB as stored", "1 KB of data")),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_runs_to_its_end(program):
    arguments, rows = PROGRAMS[program]
    done = subprocess.run([sys.executable, *arguments], cwd=TREE, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr
    for row in rows:
        assert row in done.stdout, done.stdout
