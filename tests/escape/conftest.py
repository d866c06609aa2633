# SPDX-License-Identifier: Apache-2.0
"""The suite's clusters: a hostile tenant and a victim on one host, which is `sublet host` or a real one."""
import os

import pytest
import yaml

from testenv import binaries
from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name
from testenv.fixtures import install_crds
from testenv.kubelet import Kubelet
from testenv.virtual import VirtualCluster

from escape import Field, TALLY

LOOSE = {"gateways": "Gateway", "httproutes": "HTTPRoute", "backendtlspolicies": "BackendTLSPolicy",
         "referencegrants": "ReferenceGrant"}


def gateway_api():
    """The real definitions, as the host has them."""
    out = []
    for path in binaries.crds("gateway-api"):
        with open(path, encoding="utf-8") as f:
            out += [d for d in yaml.safe_load_all(f) if d]
    return out


def loose(plural, kind):
    """The tenant's own definition, which permits everything."""
    group = "gateway.networking.k8s.io"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


SHARES = [{"name": name, "mode": mode, "nodeSelector": {"sublet.dev/pool": name}, "tolerations": [], "gpuMemoryMiB": 40960,
           "scheduler": scheduler}
          for name, mode, scheduler in (("hami", "hami", {"kind": "hami"}),
                                        ("vgpu", "volcano-vgpu", {"kind": "volcano", "queueTemplate": "gpu"}))]

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
               "endpointSlices": {"enabled": True, "allowedCIDRs": ["10.30.0.0/16"]},
               "gateways": {"enabled": True, "classes": ["shared"], "hosts": ["*.synced.example"]},
               "httpRoutes": {"enabled": True}, "backendTLSPolicies": {"enabled": True},
               "resourceClaims": {"enabled": True},
               "storageClasses": {"enabled": True, "provisioners": {"csi.synced.example": {"parameters": {"type": ["fast"]}}}},
               "persistentVolumes": {"enabled": True, "drivers": {"csi.synced.example": {"volumeHandles": ["fs-own"]}}},
               "serviceAccounts": {"enabled": True, "annotations": {"id.example/role": ["team-*"]}},
               "priorityClasses": {"enabled": True, "ranges": [{"upTo": 10, "class": "synced-low"}]}}
    install_crds(host.api, [crd for crd in gateway_api() if crd["spec"]["names"]["plural"] in LOOSE])
    clusters = {"attacker": _cluster(host, workdir, "attacker", own),
                "synced": _cluster(host, workdir, "synced", {
                    "pools": [{"name": "dev", "mode": "dra", "nodeSelector": {"sublet.dev/pool": "dev"}, "tolerations": [],
                               "deviceClasses": {"dev.example": {"gpuEq": "1"}}}, *SHARES],
                    "bindings": [{"pool": "dev", "guarantee": "4"}, {"pool": "hami", "guarantee": "4", "default": True},
                                 {"pool": "vgpu", "guarantee": "4"}],
                    "sync": {"toHost": further, "kubelets": "own", "fromHost": {"gateways": {  # the admin maps too much
                        "enabled": True, "hosts": ["*.synced.example"], "mappings": {"byName": {"team-victim/*": "stolen/*"}}}}},
                    "policy": {"annotations": {"allow": [
                        "kubernetes.io/", *(f"nginx.ingress.kubernetes.io/{k}" for k in (
                            "auth-secret", "auth-tls-secret", "custom-headers", "server-alias"))]}}}),
                "pooled": _cluster(host, workdir, "pooled", {
                    "sync": {"nodes": "perPool"}, "policy": {"storageClasses": ["standard"]}}),
                "poolless": _cluster(host, workdir, "poolless", {"policy": {"storageClasses": ["standard"]}}),
                "victim": _cluster(host, workdir, "victim", pools)}
    # The embedded host proxies to no kubelet.
    kubelet = Kubelet(host, ["cpu-1"], os.path.join(workdir, "escape-kubelet")).start() if host.api.raw(
        "GET", "/api/v1/nodes/cpu-1/proxy/healthz")[0] != 403 else None
    install_crds(clusters["synced"].api, [loose(plural, kind) for plural, kind in LOOSE.items()])
    try:
        yield Field(host, clusters)
    finally:
        if kubelet:
            kubelet.stop()
        for cluster in clusters.values():
            cluster.close()
            host.delete_namespace(cluster.namespace)


def pytest_terminal_summary(terminalreporter):
    if TALLY["tried"]:
        terminalreporter.write_line(
            f"escape: {TALLY['cases']} cases tried by {TALLY['tried']} ways, {TALLY['through']} let through")
