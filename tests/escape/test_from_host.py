# SPDX-License-Identifier: Apache-2.0
"""What sync.fromHost shows: nothing of another tenant goes up, whatever an admin maps, and a copy is no way to its original."""
import base64
import json
import os
import secrets

import pytest

from testenv import eventually
from testenv.api import ApiError
from testenv.metrics import ROOT
from testenv.virtual import VirtualCluster

MARK = "sublet.dev/from-host"
CORE, CLASSES = "/api/v1/namespaces", "/apis/scheduling.k8s.io/v1/priorityclasses"


def secret(name, value="x", **more):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque",
            "data": {"k": base64.b64encode(value.encode()).decode()}, **more}


def priority(name, value, labels=None, **annotations):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value,
            "metadata": {"name": name, "labels": labels or {}, "annotations": annotations}}


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "example.com/i:1"}], **spec}}


@pytest.fixture
def shown(field, workdir):
    """A tenant whose admin maps too much: the victim's whole namespace, and its own."""
    tag = "t" + secrets.token_hex(3)
    host, victim = field.host, field.clusters["victim"]
    maps = {"enabled": True, "mappings": {"byName": {
        f"{victim.namespace}/*": "stolen/*", "/*": "own/*", f"shared-{tag}/*": "shared/*"}}}
    config = {"sync": {"fromHost": {"secrets": maps, "configMaps": maps,
                                    "priorityClasses": {"enabled": True, "selector": {"matchLabels": {"for": tag}}}}}}
    namespace = f"team-shown-{tag}"
    for ns in (namespace, f"shared-{tag}"):
        host.create_namespace(ns)
    vc = VirtualCluster("shown", os.path.join(workdir, "escape", tag), host, namespace, config).start()
    vc.tag = tag
    try:
        yield vc
    finally:
        vc.close()
        for ns in (namespace, f"shared-{tag}"):
            host.delete_namespace(ns)


def there(vc, path):
    def get():
        return vc.api.get(path)
    return eventually(get, 30, f"{path} to be shown", also=(404,))


def test_nothing_of_another_tenant_goes_up(field, shown):
    host, victim = field.host, field.clusters["victim"]
    canary = f"canary-{shown.tag}"
    host.api.post(f"{CORE}/{victim.namespace}/secrets", secret(canary))  # of no virtual cluster: the admin's own mistake
    try:
        there(shown, f"{CORE}/stolen/secrets/{canary}")
    finally:
        host.api.delete(f"{CORE}/{victim.namespace}/secrets/{canary}")
    for ns in ("stolen", "own"):
        for plural in ("secrets", "configmaps"):
            copies = [o["metadata"]["name"] for o in shown.api.get(f"{CORE}/{ns}/{plural}")["items"]
                      if MARK in o["metadata"].get("annotations", {})]
            assert set(copies) <= {canary}, copies
    everything = json.dumps([shown.api.get(f"/api/v1/{p}") for p in ("secrets", "configmaps", "events", "namespaces")])
    for word in ("victim_secret", "victim_cluster", "victim_uid", "victim_namespace"):
        assert field.words[word] not in everything, word


def test_a_copy_is_no_way_to_its_original(field, shown):
    host, source = field.host, f"{CORE}/shared-{shown.tag}/secrets"
    host.api.post(source, secret("gold", "host"))
    copy = f"{CORE}/shared/secrets/gold"
    there(shown, copy)
    before = host.api.get(f"{source}/gold")
    shown.api.patch(copy, {"stringData": {"k": "mine"}, "metadata": {
        "annotations": {MARK: None, "sublet.dev/name": "gold", "sublet.dev/uid": before["metadata"]["uid"]},
        "labels": {"sublet.dev/cluster": field.words["victim_cluster"]},
        "finalizers": ["example.com/stay"], "ownerReferences": []}})
    eventually(lambda: shown.api.get(copy)["data"] == before["data"]
               and "finalizers" not in shown.api.get(copy)["metadata"], 30, "the copy to be put right")
    shown.api.delete(copy)
    there(shown, copy)
    shown.api.delete(f"{CORE}/shared/secrets")
    there(shown, copy)
    assert host.api.get(f"{source}/gold")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_forged_mark_shows_nothing(field, shown):
    """A class of the host that is not shown stays out of reach, also under the name of a class of the tenant's own."""
    host, hidden, open_ = field.host, f"hidden-{shown.tag}", f"open-{shown.tag}"
    host.api.post(CLASSES, priority(hidden, 900))
    host.api.post(CLASSES, priority(open_, 500, {"for": shown.tag}))
    pods = f"{CORE}/default/pods"
    try:
        there(shown, f"{CLASSES}/{open_}")
        shown.api.post(CLASSES, priority(hidden, 7, **{MARK: "sync"}))
        with pytest.raises(ApiError) as e:
            shown.api.post(pods, pod("p", priorityClassName=hidden))
        assert e.value.code == 403 and "spec.priorityClassName" in str(e.value)
        assert shown.api.get(f"{CLASSES}/{hidden}")["value"] == 7  # never changed, never deleted
        shown.api.post(pods, pod("good", priorityClassName=open_))
        on_host = eventually(shown.host_pods, 30, "the host pod")[0]
        assert on_host["spec"]["priorityClassName"] == open_
        # its own in place of one that is shown is nothing to the host
        host.api.delete(f"{CLASSES}/{open_}")
        eventually(lambda: shown.api.raw("GET", f"{CLASSES}/{open_}")[0] == 404, 30, "the class to go")
        shown.api.post(CLASSES, priority(open_, 900000, **{MARK: "sync"}))
        with pytest.raises(ApiError) as e:
            shown.api.post(pods, pod("q", priorityClassName=open_))
        assert e.value.code == 403
    finally:
        for name in (hidden, open_):
            host.api.raw("DELETE", f"{CLASSES}/{name}")


def test_nothing_is_measured_unless_the_admin_says_so(shown):
    assert shown.api.raw("GET", f"{ROOT}/pods")[0] == 404
