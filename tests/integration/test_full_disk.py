# SPDX-License-Identifier: Apache-2.0
"""A disk without room under a running `sublet serve`: writes are refused, reads go on, nothing is lost."""
import errno
import os
import socket
import subprocess
import threading

import pytest

from raw_http import sanitizers
from testenv import eventually
from testenv.api import Api

HERE = os.path.dirname(os.path.abspath(__file__))
CMS = "/api/v1/namespaces/default/configmaps"


def config_map(name, value):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}


@pytest.fixture
def disk(workdir, tenant, monkeypatch):
    """(vc, fill, drain): a virtual cluster whose store lies on a disk that can be filled."""
    shim = os.path.join(workdir, "full_disk.so")
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", shim,
                    os.path.join(HERE, "full_disk.c"), "-ldl"], check=True)
    vc = tenant("disk", on=False, start=False)
    os.makedirs(vc.store, exist_ok=True)
    switch = os.path.join(vc.store, "full")
    vc.process.env.update(LD_PRELOAD=":".join(sanitizers() + [shim]), FULL_DISK=switch,
                          HUNG_DISK=switch.replace("full", "hung"))
    vc.start()

    def fill(why=errno.ENOSPC):
        with open(switch + ".new", "w", encoding="ascii") as f:
            f.write(str(why))
        os.rename(switch + ".new", switch)

    def drain():
        os.unlink(switch)

    return vc, fill, drain


def state(vc):
    return {o["metadata"]["name"]: o["data"]["v"] for o in vc.api.get(CMS)["items"] if "v" in o.get("data", {})}


def refused(answer):
    code, _, body = answer
    assert code == 507, (code, body)
    assert b'"kind":"Status"' in body and b'"status":"Failure"' in body, body
    assert b'"reason":"InsufficientStorage"' in body, body


def test_writes_are_refused_and_reads_go_on(disk):
    vc, fill, drain = disk
    known = {}
    for i in range(20):
        vc.api.post(CMS, config_map(f"c{i}", "before"))
        known[f"c{i}"] = "before"
    events, watching = [], Api(vc.kubeconfig)
    stream = watching.open("GET", f"{CMS}?watch=1&resourceVersion={vc.api.get(CMS)['metadata']['resourceVersion']}")
    threading.Thread(target=lambda: events.extend(iter(stream.readline, b"")), daemon=True).start()

    for _ in range(3):
        fill()
        for method, path, body in (("POST", CMS, config_map("new", "x")), ("DELETE", f"{CMS}/c1", None),
                                   ("PUT", f"{CMS}/c2", config_map("c2", "x"))):
            refused(vc.api.raw(method, path, body))
        refused(vc.api.raw("PATCH", f"{CMS}/c3", b'{"data":{"v":"x"}}', content_type="application/merge-patch+json"))
        assert state(vc) == known
        assert vc.api.raw("GET", f"{CMS}/c1")[0] == 200
        assert vc.api.raw("GET", "/livez")[0] == 200

        drain()
        eventually(lambda: vc.api.raw("POST", CMS, config_map("again", "after"))[0] == 201, 30, "a write to succeed")
        vc.api.delete(f"{CMS}/again")
        vc.api.put(f"{CMS}/c2", config_map("c2", "after"))
        known["c2"] = "after"
        assert state(vc) == known

    # A watch hears of what was stored, and of nothing else.
    eventually(lambda: sum(b'"again"' in e for e in events) >= 6, 30, "the watch")
    assert not any(b'"new"' in e or b'"v":"x"' in e for e in events)
    watching._conn.sock.shutdown(socket.SHUT_RDWR)  # wakes the reader; pylint: disable=protected-access

    fill()
    refused(vc.api.raw("POST", CMS, config_map("new", "x")))
    vc.kill()
    drain()
    vc.start()
    assert state(vc) == known


@pytest.mark.parametrize("why,reason", [(errno.EROFS, "DiskReadOnly"), (errno.EDQUOT, "DiskReserveUsedUp")])
def test_what_else_a_disk_can_say(disk, why, reason):
    """A file system that turns read-only under the process, as after an error of the device; a quota."""
    vc, fill, drain = disk
    vc.api.post(CMS, config_map("c1", "before"))
    for _ in range(2):
        fill(why)
        for method, path, body in (("POST", CMS, config_map("new", "x")), ("DELETE", f"{CMS}/c1", None),
                                   ("PUT", f"{CMS}/c1", config_map("c1", "x"))):
            refused(vc.api.raw(method, path, body))
        assert state(vc) == {"c1": "before"}
        assert f"[!]disk warning: {reason}" in vc.api.raw("GET", "/readyz?verbose")[2].decode()
        drain()
        eventually(lambda: vc.api.raw("POST", CMS, config_map("again", "after"))[0] == 201, 30, "a write to succeed")
        vc.api.delete(f"{CMS}/again")
    fill(why)
    refused(vc.api.raw("POST", CMS, config_map("new", "x")))
    vc.restart(kill=True)
    assert state(vc) == {"c1": "before"}
    refused(vc.api.raw("POST", CMS, config_map("new", "x")))
    drain()
    eventually(lambda: vc.api.raw("DELETE", f"{CMS}/c1")[0] == 200, 30, "a delete to succeed")


def test_no_answered_write_is_lost(disk):
    """Writers go on while the disk fills and empties; the process is killed at the end."""
    vc, fill, drain = disk
    known, unsure, stop = {}, set(), threading.Event()

    def write(index):
        api = Api(vc.kubeconfig)
        n = 0
        while not stop.is_set():
            n += 1
            name = f"w{index}-{n}"
            code = api.raw("POST", CMS, config_map(name, "1"))[0]
            if code == 201:
                known[name] = "1"
            else:
                assert code in (507, 429), code
                unsure.add(name)

    writers = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for w in writers:
        w.start()
    for _ in range(5):
        fresh = len(known)
        eventually(lambda fresh=fresh: len(known) > fresh + 20, 60, "writes to succeed")
        fill()
        refusals = len(unsure)
        eventually(lambda refusals=refusals: len(unsure) > refusals + 5, 60, "writes to be refused")
        drain()
    stop.set()
    for w in writers:
        w.join(600)
    vc.kill()
    vc.start()
    there = state(vc)
    assert set(known) <= set(there) and not set(there) & unsure, (set(known) - set(there), set(there) & unsure)


def test_health_tells_of_a_disk_that_hangs(disk):
    """Reads go on; who looks for another place to send requests to learns it, who would restart us does not yet."""
    vc, _, _ = disk
    answers, api = [], Api(vc.kubeconfig)
    assert vc.api.raw("GET", "/readyz/etcd")[0] == 200
    with open(os.path.join(vc.store, "hung"), "wb"):
        writer = threading.Thread(target=lambda: answers.append(api.raw("POST", CMS, config_map("late", "x"))[0]))
        writer.start()
        eventually(lambda: vc.api.raw("GET", "/readyz/etcd")[2] == b"internal server error: the store does not answer\n",
                   30, "/readyz/etcd to fail")
        code, _, text = vc.api.raw("GET", "/readyz")
        assert code == 500 and b"[-]etcd failed: reason withheld\n[-]etcd-readiness failed" in text, text
        assert vc.api.raw("GET", "/readyz?exclude=etcd&exclude=etcd-readiness")[0] == 200
        assert vc.api.raw("GET", "/livez")[0] == vc.api.raw("GET", "/healthz/etcd")[0] == vc.api.raw("GET", CMS)[0] == 200
        assert not answers
    os.unlink(os.path.join(vc.store, "hung"))
    writer.join()
    assert answers == [201]
    eventually(lambda: vc.api.raw("GET", "/readyz")[0] == 200, 30, "/readyz")
