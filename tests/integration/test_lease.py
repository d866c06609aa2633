# SPDX-License-Identifier: Apache-2.0
"""Two processes of one virtual cluster on a real host: one writes, the other serves reads and touches nothing."""
import os
import re
import shutil
import subprocess
import time

import pytest

from testenv import binaries, eventually
from testenv.api import ApiError
from testenv.virtual import VirtualCluster

SHORT = {"lease": {"duration": "10s"}}
MAPS = "/api/v1/namespaces/default/configmaps"


def lease_of(vc):
    return vc.host.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{vc.namespace}/leases/{vc.name}")


def holder(vc):
    return lease_of(vc)["spec"].get("holderIdentity", "")


def leads(vc):
    """A process is ready once it has read the Lease; it has taken it a moment later."""
    try:
        return holder(vc)
    except ApiError as e:
        if e.code != 404:
            raise
        return ""


@pytest.fixture
def first(tenant):
    vc = tenant("research", config=SHORT)
    eventually(lambda: leads(vc), 30, "the Lease")
    return vc


@pytest.fixture
def another(first, tmp_path):
    """another(dir name, force) -> a second process of the same virtual cluster, on a directory that the caller fills."""
    made = []

    def make(name):
        vc = VirtualCluster("research", tmp_path / name, first.host, first.namespace, SHORT)
        made.append(vc)
        return vc

    yield make
    for vc in made:
        vc.close()


def copied(first, vc):
    """The second directory is a copy of the first one, as it was after an orderly end."""
    first.stop()
    shutil.copytree(first.store, vc.store, ignore=shutil.ignore_patterns("control"))
    first.start()
    eventually(lambda: leads(first), 30, "the Lease")
    return vc


def start_beside(vc):
    """It is up, and not ready: another process leads."""
    vc.start(wait=False)
    eventually(vc._read_ready_line, 60, "the ready line")
    vc.close_api()
    eventually(lambda: b"another process" in vc.api.raw("GET", "/readyz/lease")[2]
               or b"superseded" in vc.api.raw("GET", "/readyz/lease")[2], 30, "another holder")
    return vc


def lacking_of(vc):
    with open(os.path.join(vc.store, "lacking.txt"), encoding="utf-8") as f:
        return f.read().splitlines()


def log_of(vc):
    with open(vc.process.log_path, encoding="utf-8") as f:
        return f.read()


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def check_read_only(vc, other, reason=b"LeaseHeldByAnother"):
    assert vc.api.raw("GET", "/readyz")[0] == 500
    assert vc.api.get(MAPS)["kind"] == "ConfigMapList"
    with pytest.raises(ApiError) as e:
        vc.api.post(MAPS, config_map("no"))
    assert e.value.code == 503 and e.value.reason == "ServiceUnavailable", e.value
    assert e.value.status["details"]["retryAfterSeconds"] == 5
    assert holder(other) in e.value.status["message"], e.value
    assert vc.api.post(MAPS, config_map("dry"), dryRun="All")
    # "Superseded" names what the other life lacks, which is found out first.
    eventually(lambda: reason in vc.api.raw("GET", "/readyz/warnings")[2], 60, "the notice")


def test_a_copied_directory_serves_reads_and_touches_nothing(first, another):
    first.kubectl("run", "kept", "--image=busybox:1")
    first.kubectl("wait", "--for=condition=Ready", "pod/kept", "--timeout=180s")
    second = copied(first, another("second"))
    first.kubectl("run", "later", "--image=busybox:1")  # the second has never heard of it
    first.kubectl("wait", "--for=condition=Ready", "pod/later", "--timeout=180s")
    before = {p["metadata"]["uid"] for p in first.host_pods()}
    assert len(before) == 2
    start_beside(second)
    check_read_only(second, first, b"LeaseSuperseded")
    assert set(second.kubectl.names("pods")) == {"kept"}
    code, _, said = second.kubectl.run("exec", "kept", "--", "true")
    assert code != 0 and "has led this virtual cluster since this data did" in said, said
    assert second.kubectl("auth", "can-i", "list", "pods").strip() == "yes"  # a review persists nothing
    token = second.api.post("/api/v1/namespaces/default/serviceaccounts/default/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
    assert token["status"]["token"]
    held = holder(first)
    end = time.monotonic() + 25  # two durations
    while time.monotonic() < end:
        assert holder(first) == held and {p["metadata"]["uid"] for p in first.host_pods()} == before
        time.sleep(1)
    assert all("deletionTimestamp" not in p["metadata"] for p in first.host_pods())

    first.api.post(MAPS, config_map("only-first"))
    first.kill()
    end = time.monotonic() + 15  # the Lease expires
    while time.monotonic() < end:
        assert second.api.raw("GET", "/readyz")[0] == 500 and holder(second) == held
        time.sleep(1)
    second.stop()
    epoch = lease_of(first)["metadata"]["annotations"]["sublet.dev/epoch"]
    second.process.argv.append("--force")
    second.start()
    eventually(lambda: holder(second) not in ("", held), 60, "the takeover, in another epoch")
    assert lease_of(second)["metadata"]["annotations"]["sublet.dev/epoch"] > epoch
    second.close_api()  # it opened its data again
    eventually(lambda: b"pods default/later" in second.api.raw("GET", "/readyz/warnings")[2], 60, "the quarantine")
    assert {p["metadata"]["uid"] for p in first.host_pods()} == before
    second.api.post(MAPS, config_map("mine"))
    assert re.search(r'lease: a new epoch begins .*because="--force"', log_of(second))
    start_beside(first)
    check_read_only(first, second, b"LeaseSuperseded")
    lines = eventually(lambda: [x for x in lacking_of(first) if "configmaps" in x], 30, "what the other one lacks")
    assert any(x.startswith("written configmaps default/only-first ") for x in lines), lines
    assert not any("default/mine" in x for x in lines)


def test_a_restart_after_a_kill_waits_for_nothing(first):
    for _ in range(2):
        held = holder(first)
        transitions = lease_of(first)["spec"].get("leaseTransitions", 0)
        assert held
        first.kill()
        assert holder(first) == held
        first.start()
        first.api.post(MAPS, config_map("m" + os.urandom(3).hex()))
        eventually(lambda h=held: holder(first) not in ("", h), 8, "the Lease, before it can have expired")
        assert lease_of(first)["spec"]["leaseTransitions"] == transitions + 1
    assert 'because="its process is dead"' in log_of(first)


def test_an_orderly_end_releases_it(first):
    assert holder(first)
    first.stop()
    assert holder(first) == ""


def test_force_takes_it_from_a_live_process(first, another):
    second = copied(first, another("second"))
    start_beside(second)
    second.stop()
    held = holder(first)
    second.process.argv.append("--force")
    second.start()
    eventually(lambda: holder(second) not in ("", held), 60, "the takeover, in another epoch")
    second.close_api()
    second.api.post(MAPS, config_map("forced"))
    eventually(lambda: first.api.raw("GET", "/readyz")[0] == 500, 30, "the first to notice")
    check_read_only(first, second, b"LeaseSuperseded")
    assert 'because="--force"' in log_of(second)
    lost = [line for line in log_of(first).splitlines() if "lease: lost holder=" in line]
    assert len(lost) == 1 and 'because="--force"' in lost[0], lost


def test_a_restored_backup_beside_the_live_cluster(first, another, tmp_path):
    """It waits until the previous process ends; that one, started again, never writes."""
    first.kubectl("run", "kept", "--image=busybox:1")
    first.kubectl("wait", "--for=condition=Ready", "pod/kept", "--timeout=180s")
    first.api.post(MAPS, config_map("both"))
    first.api.post(MAPS, config_map("changed"))
    copy, restored = tmp_path / "copy.db", another("restored")
    r = subprocess.run([binaries.sublet(), "backup", "--data-dir", first.store, "--output", str(copy)],
                       capture_output=True, check=False)
    assert r.returncode == 0, r.stderr
    r = subprocess.run([binaries.sublet(), "restore", "--data-dir", restored.store, "--input", str(copy)],
                       capture_output=True, check=False)
    assert r.returncode == 0, r.stderr
    uids = {p["metadata"]["uid"] for p in first.host_pods()}
    first.api.post(MAPS, config_map("only-first"))
    first.api.patch(f"{MAPS}/changed", {"data": {"by": "first"}})
    first.api.delete(f"{MAPS}/both")
    start_beside(restored)
    check_read_only(restored, first)
    assert {p["metadata"]["uid"] for p in first.host_pods()} == uids
    first.stop()
    eventually(lambda: restored.api.raw("GET", "/readyz")[0] == 200, 30, "the restored one to lead")
    restored.api.post(MAPS, config_map("after"))
    first.start(wait=False)
    eventually(lambda: first._read_ready_line() and first.api.raw("GET", "/readyz/lease")[0] == 500, 60, "the old one")
    with pytest.raises(ApiError) as e:
        first.api.post(MAPS, config_map("lost"))
    assert e.value.code == 503
    assert holder(restored) in e.value.status["message"]
    lines = eventually(lambda: [x for x in lacking_of(first) if "configmaps" in x], 30, "what the restored one lacks",
                       also=(FileNotFoundError,))
    assert [x.rsplit(" ", 1)[0] for x in lines] == [
        "written configmaps default/changed", "written configmaps default/only-first", "deleted configmaps default/both"]
    revisions = [int(x.rsplit(" ", 1)[1]) for x in lines]
    assert revisions[1] < revisions[0] < revisions[2]
    warnings = first.api.raw("GET", "/readyz/warnings")[2].decode()
    assert "LeaseSuperseded" in warnings and "configmaps default/only-first" in warnings, warnings
    assert restored.api.get(f"{MAPS}/both")["metadata"]["name"] == "both"


def backup_of(vc, path):
    subprocess.run([binaries.sublet(), "backup", "--data-dir", vc.store, "--output", str(path)], check=True)
    return path


def restored(vc, copy):
    subprocess.run([binaries.sublet(), "restore", "--data-dir", vc.store, "--input", str(copy)], check=True)
    return vc


def epoch_of(vc):
    return lease_of(vc)["metadata"]["annotations"]["sublet.dev/epoch"]


def run_pod(vc, name):
    vc.kubectl("run", name, "--image=busybox:1")
    vc.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=180s")


def revisions_of(vc, *names):
    """Each answer's, and the list's."""
    made = [vc.api.post(MAPS, config_map(name)) for name in names]
    return [int(o["metadata"]["resourceVersion"]) for o in (*made, vc.api.get(MAPS))]


def served_read_only(vc, other, reason):
    """The ConfigMaps that it serves, and it refuses writes."""
    check_read_only(vc, other, reason)
    return {i["metadata"]["name"] for i in vc.api.get(MAPS)["items"]} - {"kube-root-ca.crt"}


def test_two_restores_of_one_backup(first, another, tmp_path):
    """Two lives of one cluster, both alive: one leads, and the earlier one never again once the later one did."""
    run_pod(first, "kept")
    first.api.post(MAPS, config_map("both"))
    copy = backup_of(first, tmp_path / "copy.db")
    run_pod(first, "later")  # neither has heard of it
    before, epochs = int(first.api.get(MAPS)["metadata"]["resourceVersion"]), [epoch_of(first)]
    first.stop()
    a, b = restored(another("a"), copy), restored(another("b"), copy)
    a.start()
    eventually(lambda: holder(a), 30, "the first restore to lead")
    epochs.append(epoch_of(a))
    run_pod(a, "of-a")
    pods = {p["metadata"]["uid"] for p in first.host_pods()}
    assert len(pods) == 3
    start_beside(b)
    of_a = revisions_of(a, "a0", "a1", "a2")
    assert served_read_only(b, a, b"LeaseHeldByAnother") == {"both"}
    held, end = holder(a), time.monotonic() + 25  # two durations
    while time.monotonic() < end:
        assert holder(a) == held and b.api.raw("GET", "/readyz")[0] == 500
        time.sleep(1)

    a.stop()
    eventually(lambda: b.api.raw("GET", "/readyz")[0] == 200, 30, "the second restore to lead")
    epochs.append(epoch_of(b))
    assert epochs == sorted(set(epochs)), epochs
    of_b = revisions_of(b, "b0", "b1", "b2")
    assert min(of_a + of_b) > before and not set(of_a) & set(of_b), (before, of_a, of_b)
    eventually(lambda: all(f"pods default/{name}" in b.api.raw("GET", "/readyz/warnings")[2].decode()
                           for name in ("later", "of-a")), 60, "the quarantine")

    start_beside(a)
    assert served_read_only(a, b, b"LeaseSuperseded") == {"both", "a0", "a1", "a2"}
    lines = eventually(lambda: [x.split()[2] for x in lacking_of(a)], 30, "what the other one lacks",
                       also=(FileNotFoundError,))
    assert {f"default/{name}" for name in ("a0", "a1", "a2", "of-a")} <= set(lines), lines
    assert not {"default/both", "default/kept", "default/b0"} & set(lines), lines
    held = holder(b)
    b.kill()
    end = time.monotonic() + 25  # it expires
    while time.monotonic() < end:
        assert holder(b) == held and a.api.raw("GET", "/readyz")[0] == 500
        time.sleep(1)
    b.start()
    eventually(lambda: holder(b) not in ("", held), 30, "the second restore to lead again")
    assert epoch_of(b) == epochs[-1] and a.api.raw("GET", "/readyz")[0] == 500
    assert min(revisions_of(b, "b3")) > max(of_b)
    assert {p["metadata"]["uid"] for p in first.host_pods()} == pods
    assert all("deletionTimestamp" not in p["metadata"] for p in first.host_pods())


def test_a_host_without_the_right(host, tenant):
    """An old chart's Role: it works, and says so."""
    vc = tenant("research", config=SHORT, start=False)
    account = host.service_account_kubeconfig(vc.namespace, "runner")
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{vc.namespace}"
    host.api.post(f"{rbac}/roles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "runner"},
        "rules": [{"apiGroups": [""], "resources": ["*"], "verbs": ["*"]}]})
    host.api.post(f"{rbac}/rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "runner"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "runner"},
        "subjects": [{"kind": "ServiceAccount", "name": "runner", "namespace": vc.namespace}]})
    vc.write_config({"host": {"kubeconfig": account}})
    vc.start()
    vc.kubectl("run", "p", "--image=busybox:1")
    vc.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=180s")
    warnings = vc.api.raw("GET", "/readyz/warnings")[2]
    assert b"LeaseForbidden" in warnings and b"get leases" in warnings, warnings
