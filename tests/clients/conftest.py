# SPDX-License-Identifier: Apache-2.0
"""One host for the session, and the commands of the clients, each built when its test needs it."""
import os
import subprocess

import pytest

from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="session")
def host(real_host):
    """Its kube-apiserver has forgotten the first revisions, which one that has not been restarted may still have."""
    real_host.restart_component("kube-apiserver")
    return real_host


@pytest.fixture(scope="session")
def built():
    """built(name) -> what `build.sh NAME` prints."""
    known = {}

    def build(name):
        if name not in known:
            r = subprocess.run([os.path.join(HERE, "build.sh"), name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            assert r.returncode == 0, f"build.sh {name}: {r.stderr[-4000:]}"
            known[name] = r.stdout.strip()
        return known[name]

    return build
