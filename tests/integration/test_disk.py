# SPDX-License-Identifier: Apache-2.0
"""A real file system that is full or read-only under `sublet serve`, at start and while it runs: reads and deletes are
served, other writes are refused with 507 and the reason, and the state ends by itself. The disk is a tmpfs in a mount
namespace of its own; where none can be mounted, these tests fail."""
import contextlib
import json
import os
import subprocess
import threading

import pytest

from testenv import eventually
from testenv.api import Api
from testenv.process import Process

CMS = "/api/v1/namespaces/default/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SIZE = 16 << 20
MERGE = "application/merge-patch+json"


class Disk:
    """The mount namespace that has the disk; lives as long as the process that holds it."""

    def __init__(self, vc):
        self.vc, self.path = vc, vc.store
        os.makedirs(self.path, exist_ok=True)
        mount = f"mount -t tmpfs -o size={SIZE},mode=0700 sublet-test {self.path} && exec sleep infinity"
        self.holder = Process("disk", ["unshare", "-m", "--propagation", "private", "sh", "-c", mount], vc.dir)
        self.holder.start()
        self.outside = f"/proc/{self.holder.pid}/root{self.path}"
        eventually(self._is_mounted, 30, "the disk to be mounted")
        vc.process.argv = self._inside() + vc.process.argv
        vc.kubeconfig = os.path.join(self.outside, "kubeconfig")

    def _inside(self):
        return ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--"]

    def _is_mounted(self):
        self.holder.check()
        st = os.statvfs(self.outside)
        return st.f_blocks * st.f_frsize == SIZE

    def run(self, *argv):
        subprocess.run(self._inside() + list(argv), check=True)

    def fill(self):
        n = 1 << 16
        with open(os.path.join(self.outside, "other"), "ab", buffering=0) as f:
            while n:
                try:
                    f.write(bytes(n))
                except OSError:
                    n //= 2

    def drain(self):
        os.unlink(os.path.join(self.outside, "other"))

    def read_only(self, yes):
        self.run("mount", "-o", f"remount,{'ro' if yes else 'rw'},size={SIZE}", self.path)

    def size(self, name):
        return os.path.getsize(os.path.join(self.outside, name))


@pytest.fixture
def disk(tenant):
    vc = tenant("disk", on=False, start=False)
    d = Disk(vc)
    yield d
    vc.kill()
    d.holder.kill()


def config_map(name, value="before", **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"v": value}}


def state(vc):
    return {o["metadata"]["name"]: o["data"]["v"] for o in vc.api.get(CMS)["items"] if "v" in o.get("data", {})}


def refused(answer, why):
    code, headers, body = answer
    assert code == 507, (code, body)
    status = json.loads(body)
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "InsufficientStorage", 507), status
    assert why in status["message"] and "/" not in status["message"], status
    assert status["details"]["retryAfterSeconds"] == 1 and headers["Retry-After"] == "1", (status, headers)


def patch(vc, name, value):
    return vc.api.raw("PATCH", f"{CMS}/{name}", json.dumps({"data": {"v": value}}).encode(), content_type=MERGE)


def log_lines(vc, text):
    with open(vc.process.log_path, encoding="utf-8") as f:
        return sum(text in line for line in f)


def notice(vc):
    code, _, text = vc.api.raw("GET", "/readyz?verbose")
    assert code == 200, text
    return [line.split()[-1] for line in text.decode().splitlines() if line.startswith("[!]disk")]


def metric(vc, name):
    lines = vc.api.raw("GET", "/metrics")[2].decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def seed(vc):
    for name in ("kept", "first", "second", "third", "held", *(f"many-{i}" for i in range(20))):
        vc.api.post(CMS, config_map(name, labels={"many": str(name.startswith("many"))}))
    vc.api.put(f"{CMS}/held", config_map("held", finalizers=["example.com/hold"]))
    vc.api.post(LEASE, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z"}})
    vc.api.post("/api/v1/namespaces", {"metadata": {"name": "doomed"}})
    vc.api.post("/api/v1/namespaces/doomed/configmaps", config_map("in-it"))
    eventually(lambda: vc.api.raw("GET", "/api/v1/namespaces/doomed/serviceaccounts/default")[0] == 200, 30, "an account")


def check_reads(vc):
    assert vc.api.raw("GET", f"{CMS}/kept")[0] == 200
    assert state(vc)["kept"] == "before"
    assert vc.api.raw("GET", "/livez")[0] == vc.api.raw("GET", "/readyz")[0] == 200
    assert vc.api.raw("POST", f"{CMS}?dryRun=All", config_map("dry"))[0] == 201
    review = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    assert vc.api.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)[0] == 201
    token = "/api/v1/namespaces/default/serviceaccounts/default/token"
    assert vc.api.raw("POST", token, {"spec": {}})[0] == 201


def use_up(vc, known):
    """Creates until the disk is full; what was answered is in `known`."""
    for i in range(2000):
        name = f"fills-{len(known)}-{i}"
        answer = vc.api.raw("POST", CMS, config_map(name, "x" * 5000))
        if answer[0] != 201:
            refused(answer, "the disk is full")
            return
        known[name] = "x" * 5000
    raise AssertionError("the disk was never full")


def check_full(vc):
    """What is stored on a full disk, and what is not; each row of it can be done once after seed()."""
    check_reads(vc)
    refused(vc.api.raw("POST", CMS, config_map("new")), "the disk is full")
    refused(patch(vc, "kept", "y" * 3000), "the disk is full")
    assert patch(vc, "first", "BEFORE")[0] == patch(vc, "first", "before")[0] == 200
    assert vc.api.raw("PUT", f"{CMS}/second", config_map("second", "BEFORE"))[0] == 200
    lease = vc.api.get(f"{LEASE}/l")
    lease["spec"]["renewTime"] = "2026-01-01T00:00:10.000000Z"
    assert vc.api.raw("PUT", f"{LEASE}/l", lease)[0] == 200


def check_shut(vc, why):
    check_reads(vc)
    before = state(vc)
    refused(vc.api.raw("POST", CMS, config_map("new")), why)
    refused(vc.api.raw("PUT", f"{CMS}/kept", config_map("kept", "BEFORE")), why)
    refused(patch(vc, "kept", "BEFORE"), why)
    refused(vc.api.raw("DELETE", f"{CMS}/kept"), why)
    refused(vc.api.raw("DELETE", f"{CMS}?labelSelector=many%3DTrue"), why)
    refused(vc.api.raw("PATCH", "/api/v1/namespaces/doomed/status", b'{"status":{"phase":"Active"}}', content_type=MERGE),
            why)
    refused(vc.api.raw("PUT", f"{LEASE}/l", vc.api.get(f"{LEASE}/l")), why)
    assert state(vc) == before


def check_deletes(vc):
    assert vc.api.raw("DELETE", f"{CMS}/third")[0] == 200
    assert vc.api.raw("DELETE", f"{CMS}?labelSelector=many%3DTrue")[0] == 200
    assert vc.api.raw("DELETE", f"{CMS}/held")[0] == 200  # waits for its finalizer
    assert vc.api.raw("PATCH", f"{CMS}/held", b'{"metadata":{"finalizers":null}}', content_type=MERGE)[0] == 200
    assert vc.api.raw("GET", f"{CMS}/held")[0] == 404
    assert vc.api.raw("DELETE", "/api/v1/namespaces/doomed")[0] == 200
    eventually(lambda: vc.api.raw("GET", "/api/v1/namespaces/doomed")[0] == 404, 60, "the namespace to go")
    assert not [name for name in state(vc) if name == "third" or name.startswith("many")]


def check_over(vc):
    eventually(lambda: vc.api.raw("POST", CMS, config_map("after"))[0] == 201, 30, "a write to be stored")
    assert vc.api.raw("PUT", f"{CMS}/after", config_map("after", "z" * 3000))[0] == 200
    assert vc.api.raw("DELETE", f"{CMS}/after")[0] == 200
    assert notice(vc) == []


def test_full_while_running(disk):
    vc, known, events = disk.vc.start(), {}, []
    seed(vc)
    watching = Api(vc.kubeconfig)
    stream = watching.open("GET", f"{CMS}?watch=1&resourceVersion={vc.api.get(CMS)['metadata']['resourceVersion']}")
    reader = threading.Thread(target=lambda: events.extend(iter(stream.readline, b"")), daemon=True)
    reader.start()

    disk.fill()
    use_up(vc, known)
    assert notice(vc) == ["DiskFull"]
    assert metric(vc, 'sublet_notices{topic="disk",reason="DiskFull"}') == 1
    check_full(vc)
    check_deletes(vc)
    assert log_lines(vc, "disk: DiskFull") == 1
    assert log_lines(vc, "request failed") == 0  # the notice says it once

    disk.drain()
    check_over(vc)
    assert log_lines(vc, "disk: no longer DiskFull") == 1
    eventually(lambda: "DiskFull" in [e["reason"] for e in vc.api.get("/api/v1/events")["items"]],
               30, "the Event")
    eventually(lambda: any(b'"DELETED"' in e and b'"name":"third"' in e for e in events), 30, "the watch")
    assert not any(b'"name":"new"' in e for e in events)
    before = state(vc)
    assert known.items() <= before.items()
    vc.restart(kill=True)
    assert state(vc) == before


def test_full_at_start(disk):
    vc, known = disk.vc.start(), {}
    seed(vc)
    disk.fill()
    use_up(vc, known)
    before = state(vc)
    vc.kill()
    disk.fill()  # another process has taken the reserve's space as well
    vc.start()
    assert state(vc) == before
    refused(vc.api.raw("POST", CMS, config_map("new", "x" * 100000)), "the disk is full")
    assert notice(vc) in (["DiskFull"], ["DiskReserveUsedUp"])
    check_reads(vc)
    disk.drain()
    check_over(vc)

    # The reserve has its blocks: a start on a full disk can delete.
    vc.stop()
    disk.fill()
    vc.start()
    check_deletes(vc)
    use_up(vc, {})
    check_full(vc)
    vc.stop()
    disk.drain()
    vc.start()
    check_over(vc)


def test_deletes_make_room(disk):
    """The store itself filled the disk."""
    vc, known = disk.vc.start(), {}
    seed(vc)
    use_up(vc, known)
    assert notice(vc) == ["DiskFull"]
    for name in list(known)[:-20]:
        vc.api.delete(f"{CMS}/{name}")
    check_over(vc)
    before = state(vc)
    vc.restart(kill=True)
    assert state(vc) == before


def test_read_only_at_start(disk):
    vc = disk.vc.start()
    seed(vc)
    before = state(vc)
    vc.kill()
    assert disk.size("state.db-wal") > 0  # answered writes that are nowhere else
    for _ in range(2):  # the second time without a log
        disk.read_only(True)
        vc.start()
        assert state(vc) == before
        assert notice(vc) == ["DiskReadOnly"]
        check_shut(vc, "the disk cannot be written: nothing is stored (Read-only file system)")
        disk.read_only(False)
        check_over(vc)
        assert state(vc) == before
        vc.stop()
    vc.start()
    assert state(vc) == before
    assert log_lines(vc, "disk: DiskReadOnly") == log_lines(vc, "disk: no longer DiskReadOnly") == 2


@pytest.mark.parametrize("how,why", [("fill", "No space left on device"), ("read_only", "Read-only file system")])
def test_start_of_nothing(disk, how, why):
    """There is nothing to serve: an error that names the file, and an exit code."""
    disk.fill() if how == "fill" else disk.read_only(True)
    disk.vc.process.start()
    assert disk.vc.process.wait() == 1
    assert f"{why}" in disk.vc.process.tail() and disk.path in disk.vc.process.tail(), disk.vc.process.tail()
    disk.drain() if how == "fill" else disk.read_only(False)
    disk.vc.start()
    seed(disk.vc)


def test_nothing_loops(disk):
    """Controllers and the syncer try again by their backoff, or wait: the disk and the API are tried a few times."""
    vc, known = disk.vc.start(), {}
    seed(vc)
    vc.api.post("/apis/apps/v1/namespaces/default/deployments", {
        "metadata": {"name": "d"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}}})
    pods = "/api/v1/namespaces/default/pods"
    eventually(lambda: len(vc.api.get(pods)["items"]) == 3, 30, "three pods")
    disk.fill()
    use_up(vc, known)
    for pod in vc.api.get(pods)["items"]:
        vc.api.raw("DELETE", f"{pods}/{pod['metadata']['name']}?gracePeriodSeconds=0")
    revision, ticks = metric(vc, "sublet_store_revision"), cpu_ticks(vc)
    for _ in range(4):  # the probe's steps and those of the backoff are doubled: few fit into any time
        refused(vc.api.raw("POST", CMS, config_map("new")), "the disk is full")
        with contextlib.suppress(AssertionError):
            eventually(lambda: False, 1.0, "nothing")
    assert metric(vc, "sublet_store_revision") - revision < 40
    assert cpu_ticks(vc) - ticks < 200, "a loop that is busy takes 100 ticks a second"
    disk.drain()
    eventually(lambda: len(vc.api.get(pods)["items"]) == 3, 60, "three pods again")


def pod(name):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}


PODS = "/api/v1/namespaces/default/pods"


def is_running(vc, name):
    return vc.api.get(f"{PODS}/{name}").get("status", {}).get("phase") == "Running"


def on_host(vc):
    return {o["metadata"]["annotations"]["sublet.dev/name"]: o["metadata"]["uid"] for o in vc.host_pods()}


def test_pods_on_the_host(tenant, embedded_host):
    """Nothing goes to the host without a record, nothing of the host goes because there is none, and deletes go through."""
    vc, known = tenant("disk", on=embedded_host, start=False), {}
    disk = Disk(vc)
    try:
        vc.start()
        for name in ("kept", "doomed", "last"):
            vc.api.post(PODS, pod(name))
        eventually(lambda: all(is_running(vc, name) for name in ("kept", "doomed", "last")), 60, "three running pods")
        before = on_host(vc)
        disk.fill()
        use_up(vc, known)
        refused(vc.api.raw("POST", PODS, pod("new")), "the disk is full")
        assert vc.api.raw("DELETE", f"{PODS}/doomed")[0] == 200
        eventually(lambda: vc.api.raw("GET", f"{PODS}/doomed")[0] == 404, 60, "the pod to go")
        eventually(lambda: on_host(vc) == {n: u for n, u in before.items() if n != "doomed"}, 60, "the host's pod to go")
        assert is_running(vc, "kept")

        vc.kill()
        disk.drain()
        disk.read_only(True)
        vc.start()
        refused(vc.api.raw("DELETE", f"{PODS}/last"), "the disk cannot be written")
        refused(vc.api.raw("POST", PODS, pod("new")), "the disk cannot be written")
        eventually(lambda: log_lines(vc, "syncer: the host answers") or is_running(vc, "kept"), 60, "the host to be seen")
        assert on_host(vc) == {n: u for n, u in before.items() if n != "doomed"}
        disk.read_only(False)
        eventually(lambda: vc.api.raw("DELETE", f"{PODS}/last")[0] == 200, 30, "a delete to be stored")
        eventually(lambda: on_host(vc) == {"kept": before["kept"]}, 60, "the host's pod to go")
        eventually(lambda: vc.api.raw("POST", PODS, pod("new"))[0] == 201, 30, "a pod to be stored")
        eventually(lambda: is_running(vc, "new") and is_running(vc, "kept"), 60, "both to run")
        vc.stop()
    finally:
        vc.kill()
        disk.holder.kill()


def cpu_ticks(vc):
    with open(f"/proc/{vc.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])
