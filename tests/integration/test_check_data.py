# SPDX-License-Identifier: Apache-2.0
"""`sublet check --data-dir`, and what the program does with a damaged, a newer and an older store."""
import hashlib
import json
import os
import pathlib
import sqlite3
import subprocess

import pytest

from testenv import binaries, eventually
from testenv.api import ApiError
from testenv.stored import stored

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FIXTURES = pathlib.Path(__file__).parents[1] / "unit" / "store" / "fixtures"
CURRENT = 2


def check(directory, **env):
    """Exit code, lines of output, what it says on standard error."""
    r = subprocess.run([binaries.sublet(), "check", "--data-dir", str(directory)], capture_output=True, text=True,
                       check=False, env=os.environ | env)
    return r.returncode, r.stdout.splitlines(), r.stderr


def sql(vc, *statements):
    with stored(vc.store) as db:
        rows = [db.execute(statement).fetchone() for statement in statements]
    return rows[-1]


def files(directory):
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest()
            for f in pathlib.Path(directory).iterdir() if f.is_file()}


def dump(directory, name):
    with stored(directory, name) as db:
        return list(db.iterdump())


def whole(vc):
    return 0, [f"{vc.store}: 0 damaged, 0 kept on the host"], ""


def put(vc, *names):
    for name in names:
        vc.api.post(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


def refused(vc):
    """Starts it in vain; what its log says."""
    vc.process.start()
    assert vc.process.wait() == 1
    return vc.process.tail()


@pytest.fixture
def vc(tenant):
    return tenant("research", on=False)


def test_a_whole_store(vc, tmp_path):
    put(vc, "one")
    assert check(vc.store) == whole(vc)
    put(vc, "two")  # the process serves as before
    eventually(lambda: "backup.db" not in os.listdir(vc.store), 30, "the copy beside the store to go")
    vc.stop()
    before = files(vc.store)
    assert check(vc.store) == whole(vc)
    assert files(vc.store) == before
    assert check(vc.store, TMPDIR=str(tmp_path / "nowhere")) == whole(vc)  # as in a pod: beside the data
    assert files(vc.store) == before
    assert check(tmp_path / "nowhere")[0] == 2
    assert "nowhere" in check(tmp_path / "nowhere")[2]


def test_damaged_rows(vc):
    put(vc, "kept", "torn", "lost")
    vc.stop()
    sql(vc, "UPDATE version SET bytes = replace(bytes, 'torn', 'born') WHERE name = 'torn'",
        "DELETE FROM version WHERE name = 'lost'")
    before = files(vc.store)
    code, lines, _ = check(vc.store)
    assert code == 1 and lines[-1] == f"{vc.store}: {len(lines) - 1} damaged, 0 kept on the host", lines
    assert any(line.startswith("damaged  object configmaps default/torn: ") for line in lines), lines
    assert any(line.startswith("damaged  object: ") and "name is unknown" in line for line in lines), lines
    assert files(vc.store) == before

    vc.start()
    assert {i["metadata"]["name"] for i in vc.api.get(CONFIG_MAPS)["items"]} == {"kept", "kube-root-ca.crt"}
    for name in ("torn", "lost"):
        code, _, text = vc.api.raw("GET", f"{CONFIG_MAPS}/{name}")
        assert (code, json.loads(text)["reason"]) == (500, "StorageReadError"), text
        assert "its row is damaged" in json.loads(text)["message"]
        assert vc.api.raw("POST", CONFIG_MAPS, json.dumps({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode(), "application/json")[0] == 409
    text = vc.api.raw("GET", "/readyz/warnings")[2].decode()
    assert "configmaps default/torn" in text and "names unknown" in text and "the history restarts" in text, text
    assert b'reason="StoredObjectLost"' in vc.api.raw("GET", "/metrics")[2]
    assert check(vc.store)[0] == 1  # while it serves
    assert os.path.exists(os.path.join(vc.store, "state.db.damaged"))

    for name in ("torn", "lost"):
        vc.kubectl("delete", "configmap", name, "--wait=false")
        put(vc, name)
    lines = check(vc.store)[1]
    assert not [line for line in lines if line.startswith("damaged  object")], lines
    vc.restart(kill=True)  # which forgets what is left of their history
    put(vc, "later")
    eventually(lambda: check(vc.store) == whole(vc), 30, "the damage to end")
    assert {"kept", "torn", "lost"} <= {i["metadata"]["name"] for i in vc.api.get(CONFIG_MAPS)["items"]}


def test_a_damaged_page(vc):
    """The file is made again, of all that can be read."""
    names = [f"n{i}" for i in range(300)]
    put(vc, *names)
    vc.stop()
    path = os.path.join(vc.store, "state.db")
    page = sql(vc, "SELECT pageno FROM dbstat WHERE name = 'version' AND pagetype = 'leaf' LIMIT 1 OFFSET 3")[0]
    with open(path, "r+b") as f:
        f.seek((page - 1) * 4096)
        f.write(b"\x05" * 4096)
    code, lines, _ = check(vc.store)
    assert code == 1 and "damaged  file: the structure of the file is damaged" in lines, lines
    vc.start()
    left = {i["metadata"]["name"] for i in vc.api.get(CONFIG_MAPS)["items"]}
    for name in set(names) - left:
        assert vc.api.raw("GET", f"{CONFIG_MAPS}/{name}")[0] == 500
    assert len(left) > 250
    assert "StoreSalvaged" in vc.api.raw("GET", "/readyz?verbose")[2].decode()
    put(vc, "later")
    vc.restart()
    assert left | {"later"} == {i["metadata"]["name"] for i in vc.api.get(CONFIG_MAPS)["items"]}


def test_a_damaged_log(vc):
    """Of writes behind a damaged frame none is served, and no revision of theirs is given again."""
    put(vc, "one")
    for i in range(20):
        put(vc, f"n{i}")
    revision = int(vc.api.get(CONFIG_MAPS)["metadata"]["resourceVersion"])
    vc.kill()
    path = os.path.join(vc.store, "state.db-wal")
    with open(path, "r+b") as f:
        f.seek(os.path.getsize(path) // 2)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))
    code, lines, _ = check(vc.store)
    assert code == 1 and any(line.startswith("damaged  log: ") for line in lines), lines
    vc.start()
    assert "StoreLogLost" in vc.api.raw("GET", "/readyz?verbose")[2].decode()
    put(vc, "later")
    assert int(vc.api.get(f"{CONFIG_MAPS}/later")["metadata"]["resourceVersion"]) > revision + 10**6
    assert os.path.exists(path + ".damaged")


def test_a_damaged_ca_is_made_good_from_its_second_row(vc):
    ca = eventually(lambda: vc.api.get(CONFIG_MAPS + "/kube-root-ca.crt"), 30, "the published CA")["data"]["ca.crt"]
    vc.stop()
    sql(vc, "UPDATE record SET value = x'00' WHERE key = CAST('ca.key' AS BLOB)")
    code, lines, _ = check(vc.store)
    assert code == 1 and "damaged  record ca.key: it is damaged" in lines, lines
    vc.start()
    assert vc.api.get(CONFIG_MAPS + "/kube-root-ca.crt")["data"]["ca.crt"] == ca
    vc.stop()
    code, lines, _ = check(vc.store)
    assert code == 0, lines


def lose(vc, key):
    """Both rows of a record."""
    vc.stop()
    sql(vc, f"UPDATE record SET value = x'00' WHERE CAST(key AS TEXT) = '{key}' OR CAST(key AS TEXT) LIKE '~%/{key}'")


def check_reads_alone(vc, what):
    """It starts, is not ready, serves reads and says why it refuses writes; another start changes nothing."""
    before = dump(vc.store, "state.db")
    vc.start(wait=False)
    eventually(vc._read_ready_line, 60, "the ready line")
    vc.close_api()
    vc.kubeconfig += ".read-only"
    code, _, text = vc.api.raw("GET", "/readyz/identity")
    assert code == 500 and f"the stored {what} cannot be read" in text.decode(), text
    assert vc.api.raw("GET", "/livez")[0] == 200 and vc.api.raw("GET", "/readyz")[0] == 500
    assert "kept" in {i["metadata"]["name"] for i in vc.api.get(CONFIG_MAPS)["items"]}
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "no"}}).encode()
    for answer in (vc.api.raw("POST", CONFIG_MAPS, body, "application/json"),
                   vc.api.raw("DELETE", CONFIG_MAPS + "/kept")):
        assert answer[0] == 503 and "restore the store from a backup" in json.loads(answer[2])["message"], answer
    copy = os.path.join(vc.dir, "copy.db")
    subprocess.run([binaries.sublet(), "backup", "--data-dir", vc.store, "--output", copy], check=True)
    vc.stop()
    assert dump(vc.store, "state.db") == before


@pytest.mark.parametrize("key, what", [("ca.key", "CA"), ("token.key", "token key")])
def test_keys_damaged_twice_are_not_made_again(vc, key, what):
    put(vc, "kept")
    with open(vc.kubeconfig, encoding="utf-8") as f:
        kubeconfig = f.read()
    lose(vc, key)
    code, lines, _ = check(vc.store)
    assert code == 1 and f"damaged  record {key}: it is damaged" in lines, lines
    check_reads_alone(vc, what)
    with open(os.path.join(vc.store, "kubeconfig"), encoding="utf-8") as f:
        assert f.read() == kubeconfig


def test_a_uid_damaged_twice_is_not_made_again(tenant):
    """And nothing goes to the host."""
    vc = tenant("research")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{vc.namespace}/leases/{vc.name}"
    eventually(lambda: vc.host.api.get(lease), 30, "the Lease", also=(ApiError,))
    put(vc, "kept")
    lose(vc, "cluster-uid")
    before = vc.host.api.get(lease)
    check_reads_alone(vc, "uid of the cluster")
    assert vc.host.api.get(lease) == before


def test_a_newer_format_is_refused(vc):
    vc.stop()
    sql(vc, f"PRAGMA user_version={CURRENT + 1}")
    before = files(vc.store)
    text = f"state.db has format {CURRENT + 1}, this program knows formats 1 to {CURRENT}"
    assert text in refused(vc)
    code, lines, _ = check(vc.store)
    assert code == 1 and lines[0].startswith(f"damaged  file: {vc.store}/{text}"), lines
    assert files(vc.store) == before


def test_an_older_format_is_migrated(tenant):
    """With a copy of the file as it was."""
    vc = tenant("research", on=False, start=False)
    os.makedirs(vc.store)
    with sqlite3.connect(os.path.join(vc.store, "state.db")) as db:
        db.executescript((FIXTURES / "format-1.sql").read_text())
    db.close()
    before, rows = files(vc.store), dump(vc.store, "state.db")
    check(vc.store)
    assert files(vc.store) | before == files(vc.store)
    # No namespace a, and an object that is none of its resource: both are of the fixture.
    vc.start()
    put(vc, "one")
    assert vc.api.raw("GET", "/api/v1/namespaces/a/pods/created")[0] == 500
    vc.stop()
    assert sql(vc, "PRAGMA user_version")[0] == CURRENT
    assert dump(vc.store, "state.db.format-1") == rows
    vc.start()
    vc.api.get(f"{CONFIG_MAPS}/one")
