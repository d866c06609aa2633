# SPDX-License-Identifier: Apache-2.0
"""A backup that is older than the host, and a host that is older than the tenant: nothing is deleted without proof,
what is missing is created again under its uid, and what is newer is kept. `sublet restore --plan` says so beforehand."""
import os
import shutil
import subprocess

import pytest

from testenv import binaries, eventually
from testenv.host import HostCluster

CORE = "/api/v1/namespaces/default"


def sublet(vc, command, *args):
    r = subprocess.run([binaries.sublet(), command, "--config", vc.config_path, *map(str, args)], capture_output=True,
                       text=True, check=False)
    assert r.returncode == 0, r.stderr
    return r.stdout


def pod(name, gpus=0):
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    return {"metadata": {"name": name}, "spec": {
        "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "busybox:1", **limits}]}}


def claim(name):
    return {"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def service(name):
    return {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}}


def create(vc, *objects):
    for resource, body in objects:
        vc.api.post(f"{CORE}/{resource}", body)


def on_host(vc, resource):
    """name in the tenant -> (uid of the host object, virtual uid it carries)"""
    return {o["metadata"]["annotations"]["sublet.dev/name"]: (o["metadata"]["uid"],
                                                              o["metadata"]["annotations"]["sublet.dev/uid"])
            for o in vc.host_objects("/api/v1", resource)}


def uid(vc, resource, name):
    return vc.api.get(f"{CORE}/{resource}/{name}")["metadata"]["uid"]


def settled(vc):
    """Every pod runs, and the host's pod, claim and Service of each name carry its uid."""
    for resource, name in (("pods", "old"), ("pods", "gone"), ("persistentvolumeclaims", "data"), ("services", "web")):
        assert on_host(vc, resource)[name][1] == uid(vc, resource, name)
    for name in ("old", "gone"):
        assert vc.api.get(f"{CORE}/pods/{name}")["status"]["phase"] == "Running"
    web = vc.api.get(f"{CORE}/services/web")
    real = next(o for o in vc.host_objects("/api/v1", "services") if o["metadata"]["annotations"]["sublet.dev/name"] == "web")
    assert web["spec"]["clusterIP"] == real["spec"]["clusterIP"]
    return True


def warnings(vc):
    return vc.api.raw("GET", "/readyz/warnings")[2].decode()


@pytest.fixture
def vc(tenant, pools, real_host):
    vc = tenant("research", config=pools, on=real_host)
    eventually(lambda: vc.api.get(f"{CORE}/serviceaccounts/default"), 30, "the service account")
    create(vc, ("pods", pod("old", 2)), ("pods", pod("gone")), ("persistentvolumeclaims", claim("data")),
           ("services", service("web")))
    eventually(lambda: settled(vc), 60, "the first objects", also=(KeyError,))
    return vc


def test_the_same_host(vc, tmp_path):
    copy = tmp_path / "copy.db"
    sublet(vc, "backup", "--output", copy)
    uids = {(r, n): uid(vc, r, n) for r, n in (("pods", "gone"), ("services", "web"))}
    create(vc, ("pods", pod("newer", 1)), ("persistentvolumeclaims", claim("newer")), ("services", service("newer")))
    vc.api.delete(f"{CORE}/pods/gone")
    vc.api.delete(f"{CORE}/services/web")
    eventually(lambda: "newer" in on_host(vc, "pods") and "newer" in on_host(vc, "persistentvolumeclaims"), 60,
               "what is newer than the backup")
    eventually(lambda: "gone" not in on_host(vc, "pods") and "web" not in on_host(vc, "services"), 60, "the deletions")
    before = {r: on_host(vc, r) for r in ("pods", "persistentvolumeclaims", "services")}
    vc.stop()
    shutil.rmtree(vc.store)

    plan = sublet(vc, "restore", "--plan", "--input", copy)
    for line in ("create     pods default/gone", "create     services default/web", "quarantine pods default/newer",
                 "quarantine persistentvolumeclaims default/newer", "quarantine services default/newer"):
        assert line in plan.splitlines(), plan
    assert "2 create, 0 adopt, 3 quarantine, 0 delete; nothing was changed" in plan

    sublet(vc, "restore", "--input", copy)
    vc.start()
    eventually(lambda: settled(vc), 90, "what the backup holds", also=(KeyError,))
    assert {(r, n): uid(vc, r, n) for r, n in uids} == uids
    for resource, names in (("pods", ("old", "newer")), ("persistentvolumeclaims", ("data", "newer")),
                            ("services", ("newer",))):
        for name in names:
            assert on_host(vc, resource)[name] == before[resource][name], (resource, name)
    for line in ("pods default/newer", "persistentvolumeclaims default/newer", "services default/newer"):
        eventually(lambda text=line: text in warnings(vc), 30, f"the notice of {line}")

    listed = subprocess.run([binaries.sublet(), "check", "--data-dir", vc.store], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    for line in ("pods default/newer", "persistentvolumeclaims default/newer", "services default/newer"):
        assert any(x.startswith(f"kept     {line}: the host has it as newer-") for x in listed), listed
    assert any(x.startswith("kept     secrets default/newer") for x in listed), listed  # its token
    assert listed[-1] == f"{vc.store}: 0 damaged, 4 kept on the host", listed

    create(vc, ("persistentvolumeclaims", claim("newer")))
    eventually(lambda: on_host(vc, "persistentvolumeclaims")["newer"] == (
        before["persistentvolumeclaims"]["newer"][0], uid(vc, "persistentvolumeclaims", "newer")), 60,
        "the claim to be taken over with its data")
    vc.restart(kill=True)
    eventually(lambda: settled(vc), 60, "the same after a kill", also=(KeyError,))
    assert on_host(vc, "pods")["newer"] == before["pods"]["newer"]


def test_another_host(vc, tenant, pools, real_host, tmp_path):
    """Another namespace, empty: for a virtual cluster that is another host."""
    copy = tmp_path / "copy.db"
    sublet(vc, "backup", "--output", copy)
    uids = {(r, n): uid(vc, r, n) for r, n in (("pods", "old"), ("pods", "gone"), ("persistentvolumeclaims", "data"))}
    vc.stop()
    other = tenant("research", config=pools, on=real_host, start=False)
    plan = sublet(other, "restore", "--plan", "--input", copy)
    assert "create     persistentvolumeclaims default/data" in plan.splitlines() and "0 quarantine, 0 delete" in plan
    sublet(other, "restore", "--input", copy)
    other.start()
    eventually(lambda: settled(other), 90, "everything on the other host", also=(KeyError,))
    assert {(r, n): uid(other, r, n) for r, n in uids} == uids
    assert other.api.get(f"{CORE}/persistentvolumeclaims/data")["status"].get("phase") != "Lost"


@pytest.fixture
def own_host(workdir):
    """A real host that may be restored: no other test is on it."""
    host = HostCluster(os.path.join(workdir, "rolled-back"))
    host.start()
    try:
        host.add_gpu_node("gpu-1", pool="shared", model="l4")
        host.add_cpu_node("cpu-1")
        yield host
    finally:
        host.stop()


def sequence(vc):
    """How often the Lease of the virtual cluster was renewed."""
    lease = vc.host.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{vc.namespace}/leases/{vc.name}")
    return int(lease["metadata"]["annotations"]["sublet.dev/sequence"])


def test_a_host_that_is_rolled_back(tenant, pools, own_host, tmp_path):
    """The host's etcd is restored, without a bump of its revisions, while the virtual cluster runs."""
    vc = tenant("research", config=pools, on=own_host)
    eventually(lambda: vc.api.get(f"{CORE}/serviceaccounts/default"), 30, "the service account")
    create(vc, ("pods", pod("old", 2)), ("pods", pod("deleted")), ("persistentvolumeclaims", claim("deleted")))
    eventually(lambda: {"old", "deleted"} <= set(on_host(vc, "pods")) and "deleted" in on_host(vc, "persistentvolumeclaims"),
               60, "what the host's backup has")
    copied = sequence(vc)
    own_host.copy_state(tmp_path / "etcd")

    create(vc, ("pods", pod("gone", 1)), ("persistentvolumeclaims", claim("data")), ("services", service("web")))
    vc.api.delete(f"{CORE}/pods/deleted")
    vc.api.delete(f"{CORE}/persistentvolumeclaims/deleted")
    eventually(lambda: settled(vc), 90, "what is newer than it", also=(KeyError,))
    eventually(lambda: "deleted" not in on_host(vc, "pods") and "deleted" not in on_host(vc, "persistentvolumeclaims"), 60,
               "the deletions")
    eventually(lambda: sequence(vc) > copied, 60, "a renewal that the backup lacks")
    kept = ("pods", "old"), ("pods", "gone"), ("persistentvolumeclaims", "data"), ("services", "web")
    uids = {(r, n): uid(vc, r, n) for r, n in kept}
    old = on_host(vc, "pods")["old"]

    own_host.roll_back(tmp_path / "etcd")
    eventually(lambda: "gone" in on_host(vc, "pods"), 120, "the pod to be created again", also=(KeyError,))
    eventually(lambda: settled(vc), 120, "everything again", also=(KeyError,))
    assert {(r, n): uid(vc, r, n) for r, n in kept} == uids
    assert on_host(vc, "pods")["old"] == old
    for line in ("pods default/deleted", "persistentvolumeclaims default/deleted"):
        eventually(lambda text=line: text in warnings(vc), 60, f"the notice of {line}")
    assert "deleted" in on_host(vc, "persistentvolumeclaims")
    vc.restart(kill=True)
    eventually(lambda: settled(vc), 60, "the same after a kill", also=(KeyError,))
    assert {(r, n): uid(vc, r, n) for r, n in kept} == uids
