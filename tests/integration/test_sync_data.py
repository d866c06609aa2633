# SPDX-License-Identifier: Apache-2.0
"""ConfigMaps and Secrets that go down without a pod: by their annotation, or all of them by sync.toHost."""
import pytest

from testenv import eventually

BASE = "/api/v1/namespaces/default"
MARK = "sublet.dev/sync"
PLURALS = ["configmaps", "secrets"]


def on_host(vc, plural, name):
    found = [o for o in vc.host_objects("/api/v1", plural)
             if (o["metadata"]["annotations"]["sublet.dev/name"], o["metadata"]["annotations"]["sublet.dev/namespace"])
             == (name, "default")]
    assert len(found) < 2
    return found[0] if found else None


def create(vc, plural, name, mark=None, **more):
    notes = {MARK: mark} if mark else {}
    data = {"data": {"k": "djE="}}
    return vc.api.post(f"{BASE}/{plural}", {"metadata": {"name": name, "annotations": notes}, **data, **more})


def patch(vc, plural, name, body):
    return vc.api.patch(f"{BASE}/{plural}/{name}", body)


@pytest.mark.parametrize("plural", PLURALS)
def test_by_its_annotation(tenant, plural):
    vc = tenant("research")
    create(vc, plural, "plain", "yes")
    create(vc, plural, "marked", "true", metadata={
        "name": "marked", "annotations": {MARK: "true", "other.example/x": "y"}, "labels": {"app": "web"}})
    host = eventually(lambda: on_host(vc, plural, "marked"), 60, "the marked object on the host")
    assert host["data"] == {"k": "djE="}
    assert all(k.startswith("sublet.dev/") for k in (*host["metadata"]["annotations"], *host["metadata"]["labels"]))
    assert MARK not in host["metadata"]["annotations"]
    # It follows the tenant's, and a change on the host is put right.
    patch(vc, plural, "marked", {"data": {"k": "djI=", "l": "djM="}})
    wanted = {"k": "djI=", "l": "djM="}
    eventually(lambda: on_host(vc, plural, "marked")["data"] == wanted, 60, "the change on the host")
    path = f"/api/v1/namespaces/{vc.namespace}/{plural}/{host['metadata']['name']}"
    vc.host.api.patch(path, {"data": {"k": "eA=="}})
    eventually(lambda: on_host(vc, plural, "marked")["data"] == wanted, 60, "the content put right")
    # Deleted there, it is created again.
    vc.host.api.delete(path)
    eventually(lambda: (on_host(vc, plural, "marked") or host)["metadata"]["uid"] != host["metadata"]["uid"], 60,
               "another host object")
    uid = on_host(vc, plural, "marked")["metadata"]["uid"]
    vc.restart(kill=True)
    patch(vc, plural, "plain", {"metadata": {"annotations": {MARK: "true"}}})
    eventually(lambda: on_host(vc, plural, "plain"), 60, "what is marked later")
    assert on_host(vc, plural, "marked")["metadata"]["uid"] == uid
    # Without the annotation it leaves, and with its original.
    patch(vc, plural, "marked", {"metadata": {"annotations": {MARK: None}}})
    vc.api.delete(f"{BASE}/{plural}/plain")
    eventually(lambda: not on_host(vc, plural, "marked") and not on_host(vc, plural, "plain"), 60, "neither on the host")
    assert vc.api.get(f"{BASE}/{plural}/marked")["data"] == wanted


@pytest.mark.parametrize("plural", PLURALS)
def test_all_of_them(tenant, plural):
    key = {"configmaps": "configMaps", "secrets": "secrets"}[plural]
    vc = tenant("research", config={"sync": {"toHost": {key: {"all": True}}}})
    other = PLURALS[1 - PLURALS.index(plural)]
    create(vc, other, "stays")
    if plural == "secrets":
        create(vc, plural, "boot", "true", type="bootstrap.kubernetes.io/token")
        vc.api.post(f"{BASE}/secrets", {"type": "kubernetes.io/service-account-token", "metadata": {
            "name": "token", "annotations": {MARK: "true", "kubernetes.io/service-account.name": "default"}}})
    create(vc, plural, "plain")
    eventually(lambda: on_host(vc, plural, "plain"), 60, "an object that nothing refers to")
    assert not any(on_host(vc, plural, name) for name in ("boot", "token"))
    assert not on_host(vc, other, "stays")
    if plural == "configmaps":
        eventually(lambda: on_host(vc, plural, "kube-root-ca.crt"), 60, "the ConfigMap of every namespace")
    vc.stop()
    vc.write_config({"sync": {"toHost": {key: {"all": False}}}})
    vc.start()
    eventually(lambda: not on_host(vc, plural, "plain"), 60, "the host without it")
    assert vc.api.get(f"{BASE}/{plural}/plain")


def test_a_refusal_of_the_host_is_an_event(tenant):
    vc = tenant("research")
    vc.host.api.post(f"/api/v1/namespaces/{vc.namespace}/resourcequotas", {
        "metadata": {"name": "none"}, "spec": {"hard": {"count/configmaps": "0"}}})
    create(vc, "configmaps", "marked", "true")
    eventually(lambda: [e for e in vc.api.get(f"{BASE}/events")["items"] if e["reason"] == "SyncError"
                        and e["involvedObject"]["name"] == "marked" and "exceeded quota" in e["message"]], 60,
               "an Event of the refusal")
    vc.host.api.delete(f"/api/v1/namespaces/{vc.namespace}/resourcequotas/none")
    eventually(lambda: on_host(vc, "configmaps", "marked"), 90, "the object once the quota has room")
