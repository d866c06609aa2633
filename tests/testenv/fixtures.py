# SPDX-License-Identifier: Apache-2.0
"""pytest fixtures over the process classes: `host` for a session, `tenant` for a test.

A suite imports them in its conftest.py. When a test fails, the report carries the end of the log of
every process that was up, and the directory with all of it.
"""
import os
import secrets
import shutil
import tempfile

import pytest
import yaml

from . import binaries
from .embedded import EmbeddedHost
from .fleet import chart_crds
from .host import HostCluster
from .node import NodeHost
from .nodes import pool_config
from .page import Page
from .process import REGISTRY
from .virtual import VirtualCluster
from .wait import eventually

__all__ = ["workdir", "host", "real_host", "embedded_host", "node_host", "tenant", "pools", "page", "gateway_api", "gpu_crds",
           "pytest_runtest_makereport", "pytest_sessionfinish"]

_session = {"dir": None, "failed": False}


@pytest.fixture(scope="session")
def workdir():
    """A directory of this session; removed at its end unless something failed."""
    _session["dir"] = tempfile.mkdtemp(prefix="sublet-test-")
    return _session["dir"]


def _with_nodes(cluster):
    """Two A100 machines (pool a100), two L4 machines (pool shared), two without GPUs."""
    cluster.start()
    try:
        for i in (1, 2):
            cluster.add_gpu_node(f"gpu-a100-{i}", pool="a100", model="a100")
            cluster.add_gpu_node(f"gpu-l4-{i}", pool="shared", model="l4")
            cluster.add_cpu_node(f"cpu-{i}")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def real_host(workdir):
    """A real host cluster with simulated machines."""
    yield from _with_nodes(HostCluster(os.path.join(workdir, "host")))


@pytest.fixture(scope="session")
def embedded_host(workdir):
    """`sublet host` with the same machines."""
    yield from _with_nodes(EmbeddedHost(os.path.join(workdir, "embedded-host")))


@pytest.fixture(scope="session")
def node_host(workdir):
    """A real host cluster with one real node."""
    cluster = NodeHost(os.path.join(workdir, "node-host")).start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def host(real_host):
    """The host of a suite; the integration suite overrides it."""
    return real_host


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_crds(api, definitions):
    """Creates them and waits until they are served."""
    for crd in definitions:
        spec = crd["spec"]
        version = next(v["name"] for v in spec["versions"] if v["served"])
        api.post(CRDS, crd)
        eventually(lambda path=f"/apis/{spec['group']}/{version}/{spec['names']['plural']}": api.get(path), 60,
                   f"{crd['metadata']['name']} to be served", also=[429])


def _with_crds(api, definitions):
    install_crds(api, definitions)
    yield definitions
    for crd in definitions:
        api.delete(f"{CRDS}/{crd['metadata']['name']}")
    eventually(lambda: not [c for c in api.get(CRDS)["items"]
                            if c["spec"]["group"] == definitions[0]["spec"]["group"]], 60, "the definitions gone")


@pytest.fixture(scope="module")
def gateway_api(real_host):
    """The definitions of the Gateway API, which the real host has."""
    definitions = []
    for path in binaries.crds("gateway-api"):
        with open(path, encoding="utf-8") as f:
            definitions += [d for d in yaml.safe_load_all(f) if d]
    yield from _with_crds(real_host.api, definitions)


@pytest.fixture(scope="module")
def gpu_crds(real_host, tmp_path_factory):
    """GPUPool and GPUBinding of the fleet's chart, which the real host has."""
    yield from _with_crds(real_host.api, chart_crds(tmp_path_factory.mktemp("helm")))


@pytest.fixture(scope="session")
def pools():
    """Configuration that offers both pools of `host` to a tenant, in the form `tenant` takes."""
    return {
        "pools": [pool_config("a100", "a100", kind="dedicated", per_pod=4),
                  pool_config("shared", "l4", kind="shared")],
        "bindings": [{"pool": "a100", "guarantee": "8"},
                     {"pool": "shared", "guarantee": "4", "burst": "4", "default": True}],
    }


@pytest.fixture
def tenant(workdir, request):
    """tenant(name, config=None, on=None, start=True) -> VirtualCluster, on `host` unless on=False.

    Each gets a host namespace of its own. At the end of the test it is stopped, which must succeed.
    """
    made = []

    def make(name, config=None, on=None, start=True, host_kubeconfig=None):
        cluster = on
        if cluster is None:
            cluster = request.getfixturevalue("host")
        tag = "t" + secrets.token_hex(3)
        namespace = None
        if cluster:
            namespace = f"team-{name}-{tag}"
            cluster.create_namespace(namespace)
        vc = VirtualCluster(name, os.path.join(workdir, "tenants", tag), cluster or None, namespace,
                            config, host_kubeconfig)
        made.append(vc)
        return vc.start() if start else vc

    yield make
    errors = []
    for vc in made:
        try:
            vc.close()
        except AssertionError as e:
            errors.append(str(e))
        if vc.host and vc.host.components["kube-apiserver"].alive:
            vc.host.delete_namespace(vc.namespace)
    assert not errors, "\n".join(errors)


@pytest.fixture
def page(host, workdir, pools, tmp_path, request):
    """A fleet with a page (Page); not started. param: values of the chart, whose rights it has."""
    tag = secrets.token_hex(3)
    made = Page(host, os.path.join(workdir, f"page-{tag}"), tag, pools)
    try:
        made.allow(tmp_path, **getattr(request, "param", {}))
        yield made
    finally:
        made.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    _session["failed"] = True
    report.sections.append(("logs are kept in", str(_session["dir"])))
    for p in sorted(REGISTRY, key=lambda p: p.name):
        text = p.tail(40 if p.name.startswith("sublet") else 8)
        if p._popen is not None and text:
            report.sections.append((f"log of {p.name} ({p.log_path})", text))


def pytest_sessionfinish(session):
    directory = _session["dir"]
    if directory and not _session["failed"]:
        shutil.rmtree(directory, ignore_errors=True)
