# SPDX-License-Identifier: Apache-2.0
"""Backup while serving, and what a restored cluster is."""
import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

from raw_http import sanitizers
from testenv import binaries, eventually

HERE = os.path.dirname(os.path.abspath(__file__))


def sublet(command, data_dir, *args, stdin=None, source=None, env=None):
    """stdin: what is written to it; source: a descriptor instead."""
    given = {"input": stdin} if source is None else {"stdin": source}
    return subprocess.run([binaries.sublet(), command, "--data-dir", str(data_dir), *map(str, args)],
                          capture_output=True, check=False, env={**os.environ, **(env or {})}, **given)


def names(vc):
    return set(vc.kubectl.names("configmaps"))


@pytest.fixture
def vc(tenant):
    return tenant("research", on=False)


def test_a_copy_is_whole_and_goes_on(vc, tenant, tmp_path):
    """Writes go on meanwhile: the copy has all that was answered before the backup was requested."""
    k, api, answered, stop = vc.kubectl, vc.api.clone(), [], threading.Event()
    k("create", "namespace", "lab")
    k("create", "secret", "generic", "key", "-n", "lab", "--from-literal=a=b")

    def write():
        while not stop.is_set():
            api.post("/api/v1/namespaces/default/configmaps", {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{len(answered)}"},
                "data": {"x": "y" * 5000}})
            answered.append(f"m{len(answered)}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        eventually(lambda: len(answered) > 50, 60, "some writes")
        before = set(answered)
        copy = tmp_path / "copy.db"
        r = sublet("backup", vc.store, "--output", copy)
        assert r.returncode == 0, r.stderr
        piped = sublet("backup", vc.store)
        assert piped.returncode == 0 and piped.stdout.startswith(b"SQLite format 3\0")
    finally:
        stop.set()
        writer.join()
        api.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    eventually(lambda: "backup.db" not in os.listdir(vc.store), 30, "the copy beside the store to go")
    revision = int(k.json("get", "namespace", "lab")["metadata"]["resourceVersion"])
    uid = k.json("get", "namespace", "lab")["metadata"]["uid"]
    ca = open(vc.kubeconfig, encoding="utf-8").read().split("certificate-authority-data: ")[1].split()[0]
    vc.stop()

    other = tenant("research", on=False, start=False)
    r = sublet("restore", other.store, stdin=piped.stdout)
    assert r.returncode == 0, r.stderr
    other.start()
    assert before <= names(other)
    lab = other.kubectl.json("get", "namespace", "lab")
    assert lab["metadata"]["uid"] == uid and int(lab["metadata"]["resourceVersion"]) == revision
    assert ca in open(other.kubeconfig, encoding="utf-8").read()
    other.kubectl("create", "configmap", "later")
    assert int(other.kubectl.json("get", "configmap", "later")["metadata"]["resourceVersion"]) > revision + 10**8
    other.stop()
    assert sublet("backup", other.store, "--output", tmp_path / "offline.db").returncode == 0
    third = tenant("research", on=False, start=False)
    assert sublet("restore", third.store, "--input", tmp_path / "offline.db").returncode == 0
    assert "later" in names(third.start())


def test_what_is_refused(vc, tmp_path):
    copy = tmp_path / "copy.db"
    assert sublet("backup", vc.store, "--output", copy).returncode == 0
    r = sublet("restore", vc.store, "--input", copy)
    assert r.returncode == 1 and b"is in use by another process" in r.stderr
    r = sublet("backup", vc.store, "--output", tmp_path / "none" / "copy.db")
    assert r.returncode == 1 and b"cannot create" in r.stderr
    r = sublet("backup", tmp_path / "nowhere")
    assert r.returncode == 1 and b"nowhere" in r.stderr
    (tmp_path / "empty").mkdir()
    r = sublet("backup", tmp_path / "empty")
    assert r.returncode == 1 and b"state.db" in r.stderr and os.listdir(tmp_path / "empty") == []
    for junk in (b"", b"no database at all", copy.read_bytes()[:5000]):
        target = tmp_path / "target"
        r = sublet("restore", target, stdin=junk)
        assert r.returncode == 1 and b"sublet: " in r.stderr, junk[:20]
        assert set(os.listdir(target)) == {"lock", "state.db.restored"}
        r = sublet("serve", target, "--name", "research")
        assert r.returncode == 1 and b"did not finish: run `sublet restore` again" in r.stderr, r.stderr
    # An input that cannot be read: a volume that was there stays marked, of another directory nothing is left.
    unreadable = os.open(tmp_path, os.O_RDONLY)
    (tmp_path / "volume").mkdir()
    for target in (tmp_path / "volume", tmp_path / "made"):
        r = sublet("restore", target, source=unreadable)
        assert r.returncode == 1 and b"cannot read the backup" in r.stderr, r.stderr
    os.close(unreadable)
    assert os.listdir(tmp_path / "volume") == ["restore.db.partial"] and not (tmp_path / "made").exists()
    r = sublet("serve", tmp_path / "volume", "--name", "research")
    assert r.returncode == 1 and b"did not finish: run `sublet restore` again" in r.stderr, r.stderr
    assert sublet("restore", tmp_path / "volume", stdin=copy.read_bytes()).returncode == 0
    vc.stop()
    r = sublet("restore", vc.store, "--input", copy)
    assert r.returncode == 1 and b"exists already" in r.stderr
    # A pod without an account's token: only what reaches the host needs a namespace.
    in_pod = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    r = sublet("restore", tmp_path / "plan", "--plan", "--input", copy, env=in_pod)
    assert r.returncode == 1 and b"host.namespace is not given" in r.stderr
    r = sublet("restore", tmp_path / "in-pod", "--input", copy, env=in_pod)
    assert r.returncode == 0, r.stderr


def test_names_are_durable(vc, workdir, tmp_path):
    """A file that is renamed is there after a power loss: its directory is synced."""
    shim, log, copy = os.path.join(workdir, "names.so"), tmp_path / "names", tmp_path / "copy.db"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", shim,
                    os.path.join(HERE, "names_preload.c")], check=True)
    env = {"LD_PRELOAD": ":".join(sanitizers() + [shim]), "NAMES_LOG": str(log)}
    assert sublet("backup", vc.store, "--output", copy, env=env).returncode == 0
    assert log.read_text() == "1 0"
    with open(copy, "rb") as f:
        assert sublet("restore", tmp_path / "restored", stdin=f.read(), env=env).returncode == 0
    assert log.read_text() == "3 0"  # the input, its copy, the store


def start_after(vc, copy):
    """A start on what a killed restore left: "nothing" (a new cluster would begin), "whole", or "refused"."""
    left = set(os.listdir(vc.store)) - {"lock"} if os.path.isdir(vc.store) else set()
    if not left:
        return "nothing"
    if "state.db" not in left:
        vc.process.start()
        assert vc.process.wait() == 1
        assert "did not finish: run `sublet restore` again" in vc.process.tail(), vc.process.tail()
        assert "state.db" not in os.listdir(vc.store)
        r = sublet("restore", vc.store, "--input", copy)
        assert r.returncode == 0, r.stderr
    vc.start()
    assert "kept" in names(vc)
    vc.stop()
    return "whole" if "state.db" in left else "refused"


def test_a_killed_restore_is_no_empty_cluster(vc, tenant, tmp_path):
    """Whenever it is killed: what is there is the backup, or a start is refused until a restore finishes."""
    copy, other = tmp_path / "copy.db", tenant("research", on=False, start=False)
    vc.kubectl("create", "configmap", "kept")
    assert sublet("backup", vc.store, "--output", copy).returncode == 0
    argv, seen = [binaries.sublet(), "restore", "--data-dir", other.store], []
    began = time.monotonic()
    subprocess.run([*argv, "--input", copy], check=True, stdout=subprocess.DEVNULL)
    takes = time.monotonic() - began
    for i in range(15):
        shutil.rmtree(other.store, ignore_errors=True)
        with subprocess.Popen([*argv, "--input", copy], stdout=subprocess.DEVNULL) as p:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(takes * i / 12)
            p.kill()
        seen.append(start_after(other, copy))
    while "refused" not in seen and len(seen) < 60:  # a machine that is slower than it was: as soon as there is something
        shutil.rmtree(other.store, ignore_errors=True)
        with subprocess.Popen([*argv, "--input", copy], stdout=subprocess.DEVNULL) as p:
            while p.poll() is None and not (os.path.isdir(other.store) and set(os.listdir(other.store)) - {"lock"}):
                pass
            p.kill()
        seen.append(start_after(other, copy))
    assert seen[0] == "nothing" and "refused" in seen, " ".join(seen)

    shutil.rmtree(other.store, ignore_errors=True)  # the last one may have been killed before it began
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as p:
        p.stdin.write(copy.read_bytes()[:-1])
        p.stdin.flush()
        partial = os.path.join(other.store, "restore.db.partial")
        eventually(lambda: os.path.getsize(partial) > 0, 30, "the input", also=(FileNotFoundError,))
        p.kill()
        p.stdin.close()
    assert start_after(other, copy) == "refused"


def test_the_socket_bears_anything(vc):
    def line(data, answers=True):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        s.connect(os.path.join(vc.store, "control"))
        try:
            if data:
                s.sendall(data)
            return s, s.recv(200) if answers else b""
        except (ConnectionResetError, BrokenPipeError):  # turned away
            return s, b""

    assert os.stat(os.path.join(vc.store, "control")).st_mode & 0o777 == 0o600
    assert line(b"format c:\n")[1] == b"error: unknown request\n"
    assert line(b"x" * 100)[1] == b""
    first, answer = line(b"backup\nbackup\nmore")
    assert answer == b"ok\n" and os.path.exists(os.path.join(vc.store, "backup.db"))
    assert line(b"backup\n")[1] == b"error: another backup is under way\n"
    idle = [line(b"", False)[0] for _ in range(6)]
    first.close()
    for s in idle:
        s.close()
    eventually(lambda: "backup.db" not in os.listdir(vc.store), 30, "the copy to go with who asked for it")
    eventually(lambda: line(b"backup\n")[1] == b"ok\n", 30, "the next to be served")
    line(b"backup\n", False)
    vc.stop()
    assert not {"control", "backup.db"} & set(os.listdir(vc.store))
