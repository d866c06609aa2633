# SPDX-License-Identifier: Apache-2.0
"""The suite against real processes; everything it uses is in testenv."""
import pytest

from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name

# The files that take longest begin first: a session that has one left at the end would run alone for minutes.
LONGEST = ("manifests", "refusals", "ten_teams", "kill", "kubectl_alike", "maintenance", "restore", "image", "operator",
           "protocol", "differential", "upstream", "pod_security", "bench")
HOSTS = {"real": "real_host", "embedded": "embedded_host"}


def pytest_collection_modifyitems(items):
    rank = {f"test_{name}": i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


def pytest_generate_tests(metafunc):
    if metafunc.definition.get_closest_marker("both_hosts"):
        metafunc.parametrize("host_kind", list(HOSTS), indirect=True)


@pytest.fixture(autouse=True)
def host_kind(request):
    """On which host this test runs: "real" unless it is marked `both_hosts`."""
    return getattr(request, "param", "real")


@pytest.fixture
def host(request, host_kind):
    return request.getfixturevalue(HOSTS[host_kind])
