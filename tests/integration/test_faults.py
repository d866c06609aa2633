# SPDX-License-Identifier: Apache-2.0
"""Moments and machines at their worst: a signal before there is anything to end, no files left to open, a reader
that hangs up, what a kill left behind."""
import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess

import pytest

from test_full_disk import CMS, config_map, disk  # noqa: F401  pylint: disable=unused-import
from testenv import binaries, eventually

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
    with contextlib.closing(sqlite3.connect(os.path.join(vc.store, "state.db"))) as db:
        return db.execute("SELECT value FROM record WHERE CAST(key AS TEXT) = 'cluster-uid'").fetchone()


def test_a_first_start_whose_log_is_lost(tenant, embedded_host):
    """The cluster's uid and keys are in the file itself: no other cluster begins in its place, and the Lease shows that
    this data is older than what led."""
    vc = tenant("young", on=embedded_host)
    with open(vc.kubeconfig, encoding="utf-8") as f:
        ca = f.read().split("certificate-authority-data: ")[1].split()[0]
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{vc.namespace}/leases"
    eventually(lambda: embedded_host.api.get(leases)["items"], 60, "the Lease to be taken")
    vc.kill()
    os.unlink(os.path.join(vc.store, "state.db-wal"))
    uid = stored_uid(vc)
    assert uid
    vc.start(wait=False)
    eventually(vc._read_ready_line, 60, "the ready line")
    vc.close_api()
    eventually(lambda: b"superseded" in vc.api.raw("GET", "/readyz/lease")[2], 60, "the Lease to be read")
    vc.stop()
    assert stored_uid(vc) == uid
    with open(vc.kubeconfig, encoding="utf-8") as f:
        assert ca in f.read()


@pytest.mark.parametrize("name", ["backup.db", "backup.db.partial", "backup.db.partial-journal"])
def test_what_a_kill_left_of_a_backup_goes(tenant, name):
    vc = tenant("remains", on=False)
    vc.kill()
    with open(os.path.join(vc.store, name), "wb") as f:
        f.write(b"x" * 1000)
    vc.start()
    assert name not in os.listdir(vc.store)
