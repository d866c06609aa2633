# SPDX-License-Identifier: Apache-2.0
"""A backup that is older than the host, and a host that is older than the tenant: nothing is deleted without proof,
what is missing is created again under its uid, and what is newer is kept. `sublet restore --plan` says so beforehand."""
import json
import os
import re
import shutil
import sqlite3
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


LISTED = "pods", "persistentvolumeclaims", "services", "configmaps", "secrets"


def planned(plan):
    """(action, resource, name, "tokens" or "") of each line."""
    lines = (re.fullmatch(r"(\w+) +(\S+) default/(\S+?)(?: \((.*)\))?", line) for line in plan.splitlines())
    return {(m[1], m[2], m[3], m[4] or "") for m in lines if m}


def done(before, after, listed):
    """What the start did, of both lists of the host and the quarantine: as planned() has it. A pod's tokens are created
    with it, and share its line."""
    result = set()
    for resource in LISTED:
        for name in after[resource]:
            tokens = "tokens" if resource == "secrets" else ""
            if name in before[resource] and before[resource][name][1] != after[resource][name][1]:
                result.add(("adopt", resource, name, tokens))
            elif before[resource].get(name) != after[resource][name] and not tokens:
                result.add(("create", resource, name, ""))
        for name in set(before[resource]) - set(after[resource]):
            result.add(("delete", resource, name, ""))
    for line in listed:
        kept = re.match(r"kept +(\S+) default/([^\s:]+)", line)
        if kept:
            result.add(("quarantine", kept[1], kept[2], "tokens" if kept[1] == "secrets" else ""))
    return result


def on_host_all(vc):
    return {r: on_host(vc, r) for r in LISTED}


def checked(vc):
    return subprocess.run([binaries.sublet(), "check", "--data-dir", vc.store], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def again(vc, body):
    """Another pod of the name, on the host as well."""
    name = body["metadata"]["name"]
    was = on_host(vc, "pods")[name]
    vc.api.delete(f"{CORE}/pods/{name}")
    eventually(lambda: name not in on_host(vc, "pods"), 60, "the pod to leave")
    create(vc, ("pods", body))
    eventually(lambda: vc.api.get(f"{CORE}/pods/{name}")["status"]["phase"] == "Running", 60, "the pod of this name")
    assert on_host(vc, "pods")[name] != was


def test_what_is_done_is_what_the_plan_says(vc, tmp_path):
    copy = tmp_path / "copy.db"
    create(vc, ("pods", pod("alike")), ("pods", pod("differs")))
    eventually(lambda: {"alike", "differs"} <= set(on_host(vc, "pods")), 60, "two pods more")
    eventually(lambda: all(vc.api.get(f"{CORE}/pods/{n}")["status"]["phase"] == "Running" for n in ("alike", "differs")),
               60, "them to run")
    sublet(vc, "backup", "--output", copy)
    create(vc, ("pods", pod("newer")), ("persistentvolumeclaims", claim("newer")), ("services", service("newer")))
    again(vc, pod("alike"))
    other = pod("differs")
    other["spec"]["containers"][0]["args"] = ["other"]
    again(vc, other)
    vc.api.delete(f"{CORE}/pods/gone")
    vc.api.delete(f"{CORE}/services/web")
    eventually(lambda: "newer" in on_host(vc, "services") and "newer" in on_host(vc, "persistentvolumeclaims")
               and vc.api.get(f"{CORE}/pods/newer")["status"]["phase"] == "Running", 60, "what is newer than the backup")
    eventually(lambda: "gone" not in on_host(vc, "pods") and "gone" not in on_host(vc, "secrets")
               and "web" not in on_host(vc, "services"), 60, "the deletions")

    held = re.compile(rf"wait +leases.coordination.k8s.io {vc.namespace}/{vc.name} \(held by .*, renewed at .*\)")
    assert any(held.match(line) for line in sublet(vc, "restore", "--plan", "--input", copy).splitlines())
    vc.stop()
    before = on_host_all(vc)
    shutil.rmtree(vc.store)
    text = sublet(vc, "restore", "--plan", "--input", copy)
    plan = planned(text)
    assert "wait " not in text and on_host_all(vc) == before
    assert {("adopt", "pods", "alike", ""), ("quarantine", "pods", "differs", ""), ("create", "pods", "gone", ""),
            ("adopt", "secrets", "alike", "tokens"), ("quarantine", "secrets", "newer", "tokens")} <= plan, text

    sublet(vc, "restore", "--input", copy)
    vc.start()
    eventually(lambda: settled(vc), 90, "what the backup holds", also=(KeyError,))

    def as_planned():
        assert done(before, on_host_all(vc), checked(vc)) == plan
        return True
    eventually(as_planned, 60, "what was planned")


def test_a_plan_lists_what_is_damaged(vc, tmp_path):
    copy = tmp_path / "copy.db"
    sublet(vc, "backup", "--output", copy)
    vc.stop()
    with sqlite3.connect(copy) as db:
        assert db.execute("UPDATE version SET bytes = replace(bytes, 'old', 'odd') WHERE name = 'old'").rowcount
    db.close()
    plan = sublet(vc, "restore", "--plan", "--input", copy)
    assert "damaged    pods default/old" in plan.splitlines(), plan
    assert "0 create, 0 adopt, 0 quarantine, 0 delete; nothing was changed" in plan, plan


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
    assert "2 create, 0 adopt, 4 quarantine, 0 delete; nothing was changed" in plan

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

    listed = checked(vc)
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


def ended(vc, revision, resource="pods"):
    """The one event of a watch from there, as kubectl sees it, and the code of the same by an informer's parameters."""
    line = vc.kubectl("get", "--raw", f"{CORE}/{resource}?watch=1&resourceVersion={revision}&timeoutSeconds=20")
    events = list(vc.api.watch(f"{CORE}/{resource}?resourceVersion={revision}&allowWatchBookmarks=true&timeoutSeconds=20"))
    event = json.loads(line)
    assert len(events) == 1 and events[0]["type"] == event["type"] == "ERROR", (line, events)
    return event["object"]["code"], event["object"]["reason"], events[0]["object"]["code"]


def test_watchers_of_the_old_life_are_expired(vc, tmp_path):
    """Whether they stood before the backup, at it or after it; two restores of one backup do not know each other's."""
    copy = tmp_path / "copy.db"
    revisions = [vc.api.get(f"{CORE}/pods")["metadata"]["resourceVersion"]]
    sublet(vc, "backup", "--output", copy)
    create(vc, ("services", service("later")))
    revisions.append(vc.api.get(f"{CORE}/pods")["metadata"]["resourceVersion"])
    for _ in range(2):
        vc.stop()
        shutil.rmtree(vc.store)
        sublet(vc, "restore", "--input", copy)
        vc.start()
        now = vc.api.get(f"{CORE}/pods")["metadata"]["resourceVersion"]
        assert now not in revisions and int(now) > int(revisions[1])  # above all that the first life wrote
        for revision in revisions:
            assert ended(vc, revision) == (410, "Expired", 410), revision
            assert ended(vc, revision, "services") == (410, "Expired", 410), revision
        events = vc.api.watch(f"{CORE}/services?resourceVersion={now}&timeoutSeconds=20")
        create(vc, ("services", service(f"life-{now}")))
        assert any(e["object"]["metadata"]["name"] == f"life-{now}" for e in events), now
        revisions.append(vc.api.get(f"{CORE}/pods")["metadata"]["resourceVersion"])


def test_another_host(vc, tenant, pools, real_host, tmp_path):
    """Another namespace, empty: for a virtual cluster that is another host."""
    copy = tmp_path / "copy.db"
    sublet(vc, "backup", "--output", copy)
    uids = {(r, n): uid(vc, r, n) for r, n in (("pods", "old"), ("pods", "gone"), ("persistentvolumeclaims", "data"))}
    vc.stop()
    other = tenant("research", config=pools, on=real_host, start=False)
    plan = sublet(other, "restore", "--plan", "--input", copy)
    assert "create     persistentvolumeclaims default/data" in plan.splitlines() and "0 quarantine, 0 delete" in plan
    assert f"wait       leases.coordination.k8s.io {other.namespace}/research (missing: 40 seconds, for its holder)" in plan
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
