# SPDX-License-Identifier: Apache-2.0
"""One host with one real node for a session, two virtual clusters on it, and a namespace for each test."""
import os
import secrets

import pytest

from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name
from testenv.release import Release

from places import Place


@pytest.fixture(scope="session")
def host(node_host):
    return node_host


@pytest.fixture(scope="session")
def research(host, workdir):
    """A tenant as docs/installing.md says: with the host fence."""
    return Release(host, "research", os.path.join(workdir, "releases"), {"hostFence": {"enabled": True}}).install()


@pytest.fixture(scope="session")
def other(host, workdir):
    """Another tenant of the same host, whose host namespace is apart from its control plane."""
    host.create_namespace("team-other-pods", {"pod-security.kubernetes.io/enforce": "baseline"})
    return Release(host, "other", os.path.join(workdir, "releases"), {"tenantNamespace": "team-other-pods"}).install()


@pytest.fixture
def place(research):
    """A namespace of the first tenant, for one test."""
    with Place(research, f"t-{secrets.token_hex(3)}") as made:
        yield made


@pytest.fixture
def place_of():
    """place_of(cluster): the same, of another tenant or of the host itself."""
    made = []

    def make(cluster):
        made.append(Place(cluster, f"t-{secrets.token_hex(3)}").__enter__())
        return made[-1]

    yield make
    for one in made:
        one.__exit__(None, None, None)
