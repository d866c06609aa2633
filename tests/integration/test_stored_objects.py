# SPDX-License-Identifier: Apache-2.0
"""Rows of a store that are no objects any more: they are hidden, reported, and can be deleted; others are served."""
import json

import pytest

from testenv import eventually
from testenv.stored import stored

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WARNING = "NetworkPolicy has no effect yet: the traffic of pods is not restricted by it"
POLICY = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"},
          "spec": {"podSelector": {}}}
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"


@pytest.fixture
def vc(tenant, pools):
    return tenant("research", config=pools)


def damage(vc, name, text):
    with stored(vc.store) as db:
        db.execute("UPDATE version SET bytes = ? WHERE revision = (SELECT max(revision) FROM version WHERE name = ?)",
                   (text, name))


def on_host(vc):
    return {p["metadata"]["annotations"]["sublet.dev/name"] for p in vc.host_pods()}


def test_unreadable_objects_are_hidden_and_deletable(vc):
    for name in ("kept", "torn"):
        vc.api.post(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    vc.kubectl("run", "runs", "--image=busybox:1")
    vc.kubectl("wait", "--for=condition=Ready", "pod/runs", "--timeout=180s")
    vc.stop()
    damage(vc, "torn", '{"kind":"ConfigMap","api')
    damage(vc, "runs", "{}")
    vc.start()

    for path, kind in ((CONFIG_MAPS + "/torn", "configmaps"), ("/api/v1/namespaces/default/pods/runs", "pods")):
        code, _, text = vc.api.raw("GET", path)
        status = json.loads(text)
        assert (code, status["reason"]) == (500, "StorageReadError"), status
        assert f'failed to read {kind} "' in status["message"]
    names = [i["metadata"]["name"] for i in vc.api.get(CONFIG_MAPS)["items"]]
    assert "kept" in names and "torn" not in names
    assert on_host(vc) == {"runs"}  # what cannot be read is not gone
    code, _, text = vc.api.raw("GET", "/readyz/warnings")
    assert b"configmaps default/torn" in text and b"pods default/runs" in text, text
    events = eventually(lambda: [e for e in vc.api.get("/api/v1/namespaces/default/events")["items"]
                                 if e["reason"] == "StoredObjectUnreadable"], 60, "the Events")
    assert {e["involvedObject"]["name"] for e in events} <= {"torn", "runs"}

    code, _, text = vc.api.raw("PUT", CONFIG_MAPS + "/torn", json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "torn"}}).encode(), "application/json")
    assert (code, json.loads(text)["reason"]) == (500, "StorageReadError"), text
    vc.kubectl("delete", "configmap", "torn", "--wait=false")
    vc.kubectl("delete", "pod", "runs", "--wait=false")
    eventually(lambda: not on_host(vc), 60, "the end of the host pod")
    assert b"torn" not in vc.api.raw("GET", "/readyz/warnings")[2]
    vc.api.post(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "torn"}})


def test_writes_without_effect_are_answered_with_a_warning(vc):
    def warned(method, path, body, content="application/json"):
        code, headers, text = vc.api.raw(method, path, json.dumps(body).encode(), content)
        assert code < 300, text
        assert headers.get_all("warning") == [f'299 - "{WARNING}"'], (method, path)

    warned("POST", POLICIES + "?dryRun=All", POLICY)
    warned("POST", POLICIES, POLICY)
    warned("PUT", POLICIES + "/closed", POLICY)
    warned("PATCH", POLICIES + "/closed", {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
    warned("PATCH", POLICIES + "/closed", {"spec": {"podSelector": {}}}, "application/strategic-merge-patch+json")
    warned("PATCH", POLICIES + "/closed?fieldManager=me&force=true", POLICY, "application/apply-patch+yaml")
    warned("PATCH", POLICIES + "/other?fieldManager=me&dryRun=All",
           {**POLICY, "metadata": {"name": "other"}}, "application/apply-patch+yaml")
    assert vc.api.raw("DELETE", POLICIES + "/closed")[1].get_all("warning") is None
