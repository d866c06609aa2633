# SPDX-License-Identifier: Apache-2.0
"""The suite's clusters: a hostile tenant and a victim on one host, which is `sublet host` or a real one."""
import os

import pytest

from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name
from testenv.virtual import VirtualCluster

from escape import Field, TALLY

HOSTS = {"embedded": "embedded_host", "real": "real_host"}


def pytest_addoption(parser):
    parser.addoption("--on", choices=list(HOSTS), default="embedded", help="the host the suite runs on")


def _cluster(host, workdir, name, config):
    namespace = f"team-{name}"
    host.create_namespace(namespace)
    return VirtualCluster(name, os.path.join(workdir, "escape"), host, namespace, config).start()


@pytest.fixture(scope="session")
def field(request, workdir, pools):
    """Where it happens: two tenants with everything a case refers to."""
    host = request.getfixturevalue(HOSTS[request.config.getoption("--on")])
    own = {"pools": [p for p in pools["pools"] if p["name"] == "shared"],
           "bindings": [b for b in pools["bindings"] if b["pool"] == "shared"],
           "policy": {"storageClasses": ["standard"]}}
    further = {"networkPolicies": {"enabled": True, "allowedCIDRs": ["10.20.0.0/16"]},
               "ingresses": {"enabled": True, "classes": ["nginx"], "hosts": ["*.synced.example"]},
               "podDisruptionBudgets": {"enabled": True},
               "endpointSlices": {"enabled": True, "allowedCIDRs": ["10.30.0.0/16"]}}
    clusters = {"attacker": _cluster(host, workdir, "attacker", own),
                "synced": _cluster(host, workdir, "synced", {
                    "sync": {"toHost": further}, "policy": {"annotations": {"allow": ["kubernetes.io/"]}}}),
                "poolless": _cluster(host, workdir, "poolless", {"policy": {"storageClasses": ["standard"]}}),
                "victim": _cluster(host, workdir, "victim", pools)}
    try:
        yield Field(host, clusters)
    finally:
        for cluster in clusters.values():
            cluster.close()
            host.delete_namespace(cluster.namespace)


def pytest_terminal_summary(terminalreporter):
    if TALLY["tried"]:
        terminalreporter.write_line(
            f"escape: {TALLY['cases']} cases tried by {TALLY['tried']} ways, {TALLY['through']} let through")
