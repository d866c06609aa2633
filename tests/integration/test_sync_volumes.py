# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes of a tenant on the host, by sync.toHost.persistentVolumes, and the claims that name them."""
import secrets

import pytest

from testenv import ApiError, eventually

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CONFIG = {"sync": {"toHost": {"persistentVolumes": {"enabled": True, "max": 3, "drivers": {"csi.example": {
    "volumeHandles": ["fs-*"], "volumeAttributes": {"tier": ["fast"]}, "mountOptions": ["noatime"]}}}}},
          "policy": {"storageClasses": ["standard"], "annotations": {"allow": ["pv.kubernetes.io/"]}}}


@pytest.fixture
def vc(tenant, host):
    vc = tenant("research", config=CONFIG)
    yield vc
    for volume in volumes(vc).values():  # those that no tenant deletes
        host.api.patch(f"{VOLUMES}/{volume['metadata']['name']}", {"metadata": {"finalizers": None}})
        host.api.raw("DELETE", f"{VOLUMES}/{volume['metadata']['name']}")


@pytest.fixture
def handle():
    """Handles are of the whole host, which other tests share."""
    return f"fs-{secrets.token_hex(6)}"


def create(vc, name, handle, source=None, csi=None, **more):
    source = source or {"csi": {"driver": "csi.example", "volumeHandle": handle, **(csi or {})}}
    return vc.api.post(VOLUMES, {"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "shared", **source, **more}})


def claim(vc, name, volume, size="1Gi", class_name="shared"):
    return vc.api.post(CLAIMS, {"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}, "storageClassName": class_name,
        **({"volumeName": volume} if volume else {})}})


def volumes(vc):
    """Those of this virtual cluster on the host."""
    found = [o for o in vc.host.api.get(VOLUMES)["items"]
             if o["metadata"].get("labels", {}).get("sublet.dev/host-namespace") == vc.namespace]
    return {o["metadata"]["annotations"]["sublet.dev/name"]: o for o in found}


def host_claims(vc):
    return {c["metadata"]["annotations"]["sublet.dev/name"]: c for c in vc.host_objects("/api/v1", "persistentvolumeclaims")}


def phase(vc, path):
    return vc.api.get(path)["status"].get("phase")


def becomes(vc, path, wanted):
    eventually(lambda: phase(vc, path) == wanted, 60, f"{path} to be {wanted}")


def bound(vc, name, volume):
    becomes(vc, f"{CLAIMS}/{name}", "Bound")
    becomes(vc, f"{VOLUMES}/{volume}", "Bound")


def has_event(vc, words):
    eventually(lambda: any(words in e["message"] for e in vc.api.get("/api/v1/namespaces/default/events")["items"]), 60,
               f"an Event: {words}")


def refused(call, words):
    with pytest.raises(ApiError) as caught:
        call()
    assert caught.value.code == 403 and words in str(caught.value), caught.value


def test_life(vc, host, handle):
    vc.api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "key"}, "stringData": {"k": "v"}})
    own = create(vc, "data", handle, csi={"fsType": "ext4", "volumeAttributes": {"tier": "fast"}, "nodeStageSecretRef": {
        "namespace": "default", "name": "key"}}, mountOptions=["noatime"])
    becomes(vc, f"{VOLUMES}/data", "Available")
    assert not volumes(vc)
    claim(vc, "a", "data")
    bound(vc, "a", "data")

    # Both sides, each with its own names.
    mine, there = volumes(vc)["data"], host_claims(vc)["a"]
    assert mine["metadata"]["annotations"]["sublet.dev/uid"] == own["metadata"]["uid"]
    assert mine["spec"]["claimRef"]["uid"] == there["metadata"]["uid"]
    assert mine["spec"]["claimRef"]["namespace"] == vc.namespace
    assert (there["spec"]["volumeName"], there["spec"]["storageClassName"]) == (mine["metadata"]["name"], "")
    secret = mine["spec"]["csi"]["nodeStageSecretRef"]
    assert secret["namespace"] == vc.namespace
    eventually(lambda: host.api.get(f"/api/v1/namespaces/{vc.namespace}/secrets/{secret['name']}"), 60, "its Secret")
    volume, held = vc.api.get(f"{VOLUMES}/data"), vc.api.get(f"{CLAIMS}/a")
    assert volume["spec"]["claimRef"]["uid"] == held["metadata"]["uid"]
    assert (held["spec"]["volumeName"], held["spec"]["storageClassName"]) == ("data", "shared")
    assert held["status"]["capacity"] == {"storage": "1Gi"}
    assert [v["metadata"]["name"] for v in vc.api.get(VOLUMES)["items"]] == ["data"]

    # A change of the tenant's, one on the host, a restart between them: it stays bound.
    vc.api.patch(f"{VOLUMES}/data", {"spec": {"mountOptions": None, "capacity": {"storage": "2Gi"}}})
    eventually(lambda: volumes(vc)["data"]["spec"]["capacity"]["storage"] == "2Gi", 60, "the change")
    assert "mountOptions" not in volumes(vc)["data"]["spec"]
    vc.stop()
    host.api.patch(f"{VOLUMES}/{mine['metadata']['name']}", {"spec": {"mountOptions": ["suid"]}})
    vc.start()
    eventually(lambda: "mountOptions" not in volumes(vc)["data"]["spec"], 60, "the host's change to be put right")
    vc.restart(kill=True)
    now = volumes(vc)["data"]
    assert now["spec"]["claimRef"]["uid"] == there["metadata"]["uid"] and now["status"]["phase"] == "Bound"
    assert (now["metadata"]["uid"], phase(vc, f"{CLAIMS}/a")) == (mine["metadata"]["uid"], "Bound")

    # A deleted claim releases it; the next one has it once the tenant says so.
    vc.api.delete(f"{CLAIMS}/a")
    becomes(vc, f"{VOLUMES}/data", "Released")
    assert not host_claims(vc)
    claim(vc, "b", "data")
    has_event(vc, 'volume "data" already bound to a different claim.')
    assert not host_claims(vc)
    vc.api.patch(f"{VOLUMES}/data", {"spec": {"claimRef": None}})
    bound(vc, "b", "data")
    assert volumes(vc)["data"]["metadata"]["uid"] == mine["metadata"]["uid"]

    vc.api.delete(f"{CLAIMS}/b")
    becomes(vc, f"{VOLUMES}/data", "Released")
    vc.api.delete(f"{VOLUMES}/data")
    eventually(lambda: not volumes(vc), 60, "the volume to leave")


def test_a_claim_it_names(vc, host, handle):
    """claimRef first: no other claim has it, and a volume that the host deletes is created again."""
    create(vc, "data", handle, claimRef={"namespace": "default", "name": "a"})
    first = eventually(lambda: volumes(vc).get("data"), 60, "the volume on the host")
    becomes(vc, f"{VOLUMES}/data", "Available")
    claim(vc, "other", "data")
    has_event(vc, "already bound to a different claim")
    host.api.delete(f"{VOLUMES}/{first['metadata']['name']}")
    eventually(lambda: volumes(vc).get("data", first)["metadata"]["uid"] != first["metadata"]["uid"], 60, "it again")
    claim(vc, "a", "data")
    bound(vc, "a", "data")
    assert set(host_claims(vc)) == {"a"}

    # The list becomes shorter, or is no more: a volume on the host stays, with its claim.
    for label, drivers in (("listed", {"csi.example": {"volumeHandles": ["vol-*"]}}),
                           ("other", {"csi.example": None, "other.example": {"volumeHandles": ["x"]}})):
        vc.stop()
        vc.write_config({"sync": {"toHost": {"persistentVolumes": {"drivers": drivers}}}})
        vc.start()
        if label == "listed":
            refused(lambda: vc.api.patch(f"{VOLUMES}/data", {"metadata": {"labels": {"a": "b"}}}), "volumeHandle: is not listed")
        else:
            vc.api.patch(f"{VOLUMES}/data", {"metadata": {"labels": {"a": "b"}}})
        claim(vc, f"new-{label}", None, class_name="standard")
        eventually(lambda n=label: host_claims(vc).get(f"new-{n}"), 60, "another claim on the host")
        assert phase(vc, f"{CLAIMS}/a") == "Bound"
    assert volumes(vc)["data"]["status"]["phase"] == "Bound"
    vc.api.delete(f"{CLAIMS}/a")
    eventually(lambda: "a" not in host_claims(vc), 60, "the claim to leave")
    vc.api.delete(f"{VOLUMES}/data")
    eventually(lambda: not volumes(vc), 60, "the volume to leave")


def test_one_handle_one_volume(vc, tenant, host, handle):
    """Another tenant whose list has the same handle, and an admin."""
    other = tenant("rival", config=CONFIG)
    create(vc, "mine", handle, claimRef={"namespace": "default", "name": "a"})
    first = eventually(lambda: volumes(vc).get("mine"), 60, "the volume on the host")
    create(other, "theirs", handle, claimRef={"namespace": "default", "name": "a"})
    claim(other, "a", "theirs")
    has_event(other, f'another volume of the host cluster has the handle "{handle}"')
    assert not volumes(other) and not host_claims(other)
    claim(vc, "a", "mine")
    bound(vc, "a", "mine")
    assert not volumes(other) and not host_claims(other)
    assert volumes(vc)["mine"]["metadata"]["uid"] == first["metadata"]["uid"]
    admins = host.api.post(VOLUMES, {"metadata": {"generateName": "admins-"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "x",
        "csi": {"driver": "csi.example", "volumeHandle": f"{handle}-b"}}})
    try:
        create(vc, "second", f"{handle}-b", claimRef={"namespace": "default", "name": "b"})
        has_event(vc, f'has the handle "{handle}-b"')
        assert set(volumes(vc)) == {"mine"}
    finally:
        host.api.delete(f"{VOLUMES}/{admins['metadata']['name']}")


def test_what_is_refused(vc, handle):
    at = {"claimRef": {"namespace": "default", "name": "a"}}
    for source in ({"hostPath": {"path": "/"}}, {"nfs": {"server": "s", "path": "/"}},
                   {"local": {"path": "/x"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}}}):
        refused(lambda s=source: create(vc, "v", handle, source=s, **at), f"spec.{next(iter(source))}: only volumes of")
    for csi, words in (({"driver": "other.example"}, 'spec.csi.driver: "other.example" is not'),
                       ({"volumeHandle": "vol-1"}, "spec.csi.volumeHandle: is not listed"),
                       ({"volumeHandle": f"{handle}/../x"}, "spec.csi.volumeHandle: is not listed"),
                       ({"fsType": "a/b"}, "spec.csi.fsType: is not one of"),
                       ({"volumeAttributes": {"tier": "slow"}}, "spec.csi.volumeAttributes.tier: is a value"),
                       ({"volumeAttributes": {"server": "x"}}, "spec.csi.volumeAttributes.server: is not listed")):
        refused(lambda c=csi: create(vc, "v", handle, csi=c, **at), words)
    refused(lambda: create(vc, "v", handle, persistentVolumeReclaimPolicy="Delete"), "spec.persistentVolumeReclaimPolicy")
    refused(lambda: create(vc, "v", handle, mountOptions=["suid"]), "spec.mountOptions[0]: is not listed")
    refused(lambda: create(vc, "v", handle, nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}]}}), "matchExpressions[0].key: is not one of")
    refused(lambda: claim(vc, "a", "none"), "spec.volumeName: names no PersistentVolume")
    for i in range(3):
        create(vc, f"v{i}", f"{handle}-{i}", claimRef={"namespace": "default", "name": "a"})
    eventually(lambda: len(volumes(vc)) == 3, 60, "three volumes on the host")
    refused(lambda: create(vc, "v3", f"{handle}-3", **at), "exceeded quota: sync.toHost.persistentVolumes.max")

    # What does not fit waits.
    create(vc, "free", f"{handle}-9")
    claim(vc, "big", "free", size="2Gi")
    has_event(vc, 'Cannot bind to requested volume "free": requested PV is too small')
    claim(vc, "classless", "free", class_name="")
    has_event(vc, 'Cannot bind to requested volume "free": storageClassName does not match')
    assert not host_claims(vc)


def test_claims_of_the_host_have_their_volumes(vc):
    """A claim that the host's provisioner serves is as without the option."""
    vc.api.post(CLAIMS, {"metadata": {"name": "made"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "standard"}})
    becomes(vc, f"{CLAIMS}/made", "Bound")
    name = vc.api.get(f"{CLAIMS}/made")["spec"]["volumeName"]
    becomes(vc, f"{VOLUMES}/{name}", "Bound")
    assert vc.api.get(f"{VOLUMES}/{name}")["spec"]["csi"]["driver"] == "host.sublet.dev"
    assert not volumes(vc)
    vc.api.delete(f"{CLAIMS}/made")
    eventually(lambda: not vc.api.get(VOLUMES)["items"], 60, "its volume to leave")
