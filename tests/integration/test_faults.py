# SPDX-License-Identifier: Apache-2.0
"""Moments and machines at their worst: a signal before there is anything to end, no files left to open, a reader
that hangs up, what a kill left behind."""
import os
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from test_full_disk import CMS, config_map, disk  # noqa: F401  pylint: disable=unused-import
from testenv import binaries, eventually
from testenv.stored import EMPTY_LOG, stored

FILES = 128


def catches(pid, number):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        mask = next(line.split()[1] for line in f if line.startswith("SigCgt:"))
    return int(mask, 16) >> (number - 1) & 1


def test_an_end_asked_for_while_it_starts(disk):  # noqa: F811  pylint: disable=redefined-outer-name
    """Whoever ends it does so once: it must not go on because the store took its time."""
    vc, _, _ = disk
    vc.stop()
    shutil.rmtree(vc.store)  # of nothing it makes the most
    os.mkdir(vc.store)
    hung = os.path.join(vc.store, "hung")
    with open(hung, "wb"):
        vc.start(wait=False)
        eventually(lambda: catches(vc.pid, signal.SIGTERM), 60, "the process to open its store")
        os.kill(vc.pid, signal.SIGTERM)
    os.unlink(hung)
    assert vc.process.wait(60) == 0
    vc.start()
    assert vc.api.raw("POST", CMS, config_map("after", "x"))[0] == 201


def test_a_crowd_does_not_take_all_files(tenant):
    """Idle connections take neither the last file descriptor nor the place of clients that send requests."""
    vc = tenant("crowd", on=False, start=False)
    vc.process.argv = ["prlimit", f"--nofile={FILES}:{FILES}", "--", *vc.process.argv]
    vc.start()
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    crowd = []

    def ask():
        try:
            return vc.api.raw("POST", CMS, config_map("one", "x"))[0] in (201, 409)
        except OSError:  # no room yet
            return False

    try:
        for _ in range(FILES + 20):
            s = socket.create_connection(("127.0.0.1", vc.port.number), timeout=30)
            crowd.append(s)
            try:
                crowd[-1] = anybody.wrap_socket(s)
            except OSError:
                pass  # turned away, or for another
        assert len(os.listdir(f"/proc/{vc.pid}/fd")) < FILES * 3 // 4
        copy = os.path.join(vc.dir, "copy.db")
        r = subprocess.run([binaries.sublet(), "backup", "--data-dir", vc.store, "--output", copy],
                           capture_output=True, check=False)
        assert r.returncode == 0, r.stderr
        vc.api.close()
        eventually(ask, 30, "a request to be answered")
    finally:
        for s in crowd:
            s.close()


def test_a_reader_that_hangs_up(tenant):
    """The copy that was made for it does not stay."""
    vc = tenant("reader", on=False)
    vc.stop()
    there = set(os.listdir(vc.store))
    out, into = os.pipe()
    os.close(out)
    r = subprocess.run([binaries.sublet(), "backup", "--data-dir", vc.store], stdout=into, stderr=subprocess.PIPE,
                       check=False)
    os.close(into)
    assert r.returncode == 1 and b"Broken pipe" in r.stderr, (r.returncode, r.stderr)
    assert set(os.listdir(vc.store)) <= there


def stored_uid(vc):
    with stored(vc.store) as db:
        return db.execute("SELECT value FROM record WHERE CAST(key AS TEXT) = 'cluster-uid'").fetchone()


def test_a_first_start_whose_log_is_lost(tenant, embedded_host):
    """The cluster's uid and keys are in the file itself: no other cluster begins in its place. It is known that newer
    writes are lost: the data goes on as a restored backup does."""
    vc = tenant("young", on=embedded_host)
    with open(vc.kubeconfig, encoding="utf-8") as f:
        ca = f.read().split("certificate-authority-data: ")[1].split()[0]
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{vc.namespace}/leases"
    eventually(lambda: embedded_host.api.get(leases)["items"], 60, "the Lease to be taken")
    vc.kill()
    os.unlink(os.path.join(vc.store, "state.db-wal"))
    uid = stored_uid(vc)
    assert uid
    vc.start()
    assert b"StoreLogMissing" in vc.api.raw("GET", "/readyz?verbose")[2]
    assert vc.api.raw("POST", CMS, config_map("after", "x"))[0] == 201
    vc.stop()
    assert stored_uid(vc) == uid
    with open(vc.kubeconfig, encoding="utf-8") as f:
        assert ca in f.read()
    vc.start()  # it is reported for a day
    assert b"StoreLogMissing" in vc.api.raw("GET", "/readyz?verbose")[2]
    assert vc.api.raw("GET", CMS + "/after")[0] == 200


POD = "/api/v1/namespaces/default/pods"


def host_uids(vc):
    return {p["metadata"]["annotations"]["sublet.dev/name"]: p["metadata"]["uid"] for p in vc.host_pods()}


def test_a_log_that_is_lost(tenant, pools, embedded_host):
    """Whoever copies the file alone, or loses the log with the disk: it is reported, what the host has stays, and
    the tenant goes on, once the Lease of the process that the lost log knew of has expired."""
    vc = tenant("logless", config=pools, on=embedded_host)
    eventually(lambda: vc.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 60, "the service account")

    def create(name):
        pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}
        eventually(lambda: vc.api.post(POD, pod), 60, f"{name} to be created")
        eventually(lambda: host_uids(vc)[name], 60, f"{name} on the host", also=(KeyError,))
    create("old")
    vc.restart()  # what is folded, and what only the log has
    create("new")
    before = host_uids(vc)
    revision = int(vc.api.get(POD)["metadata"]["resourceVersion"])
    vc.kill()
    log = os.path.join(vc.store, "state.db-wal")
    assert os.path.getsize(log) > len(EMPTY_LOG)
    os.unlink(log)
    r = subprocess.run([binaries.sublet(), "check", "--data-dir", vc.store], capture_output=True, text=True, check=False)
    assert r.returncode == 1 and "damaged  log: missing" in r.stdout, r
    vc.start()
    assert b"StoreLogMissing" in vc.api.raw("GET", "/readyz?verbose")[2]
    vc.kill()
    vc.start()
    assert b"StoreLogMissing" in vc.api.raw("GET", "/readyz?verbose")[2]
    r = subprocess.run([binaries.sublet(), "check", "--data-dir", vc.store], capture_output=True, text=True, check=False)
    assert r.returncode == 1 and "damaged  log: a start made good at 20" in r.stdout, r
    create("later")
    assert int(vc.api.get(POD)["metadata"]["resourceVersion"]) > revision
    code, _, text = vc.api.raw("GET", f"{POD}?watch=true&timeoutSeconds=5&resourceVersion={revision}")
    assert code == 410 or b'"code":410' in text, (code, text)
    after = host_uids(vc)
    assert {name: after.get(name) for name in before} == before
    assert os.path.exists(log)


@pytest.mark.parametrize("name", ["backup.db", "backup.db.partial", "backup.db.partial-journal"])
def test_what_a_kill_left_of_a_backup_goes(tenant, name):
    vc = tenant("remains", on=False)
    vc.kill()
    with open(os.path.join(vc.store, name), "wb") as f:
        f.write(b"x" * 1000)
    vc.start()
    assert name not in os.listdir(vc.store)
