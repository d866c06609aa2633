# SPDX-License-Identifier: Apache-2.0
"""StorageClasses of a tenant on the host, by sync.toHost.storageClasses, and the claims that name them."""
import pytest

from testenv import ApiError, eventually

STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
CONFIG = {"sync": {"toHost": {"storageClasses": {"enabled": True, "provisioners": {"csi.example": {
    "parameters": {"type": ["fast", "slow"]}, "mountOptions": ["noatime"]}}}}},
          "policy": {"storageClasses": ["standard"], "annotations": {"allow": ["storageclass.kubernetes.io/"]}}}


@pytest.fixture
def vc(tenant):
    return tenant("research", config=CONFIG)


def create(vc, name="fast", kind="fast", provisioner="csi.example", annotations=None, **more):
    return vc.api.post(STORAGE, {"metadata": {"name": name, "annotations": annotations or {}}, "provisioner": provisioner,
                                 "parameters": {"type": kind}, **more})


def classes(vc):
    """Those of this virtual cluster on the host."""
    found = [o for o in vc.host.api.get(STORAGE)["items"]
             if o["metadata"].get("labels", {}).get("sublet.dev/host-namespace") == vc.namespace]
    return {o["metadata"]["annotations"]["sublet.dev/name"]: o for o in found}


def arrives(vc, name="fast"):
    return eventually(lambda: classes(vc).get(name), 60, f"the class {name} on the host")


def claim(vc, name, class_name):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if class_name:
        spec["storageClassName"] = class_name
    return vc.api.post(CLAIMS, {"metadata": {"name": name}, "spec": spec})


def host_claim(vc, name):
    return eventually(lambda: next((c for c in vc.host_objects("/api/v1", "persistentvolumeclaims")
                                    if c["metadata"]["annotations"]["sublet.dev/name"] == name), None), 60, f"the claim {name}")


def refused(call, words):
    with pytest.raises(ApiError) as caught:
        call()
    assert caught.value.code == 403 and words in str(caught.value), caught.value


def test_life(vc, host):
    own = create(vc, annotations={DEFAULT: "true"}, allowVolumeExpansion=True, mountOptions=["noatime"])
    create(vc, "own", provisioner="own.example")
    first = arrives(vc)
    meta = first["metadata"]
    assert meta["name"] != "fast" and meta["annotations"]["sublet.dev/uid"] == own["metadata"]["uid"]
    assert DEFAULT not in meta["annotations"] and first["parameters"] == {"type": "fast"}
    assert first["allowVolumeExpansion"] is True and first["mountOptions"] == ["noatime"]
    assert set(classes(vc)) == {"fast"}

    # Claims: of that class, of the tenant's default, of the host's, and of a provisioner of the tenant's own.
    for name, wanted, there in (("a", "fast", meta["name"]), ("b", None, meta["name"]), ("c", "standard", "standard")):
        claim(vc, name, wanted)
        assert host_claim(vc, name)["spec"]["storageClassName"] == there, name
    claim(vc, "d", "own")
    eventually(lambda: any(e["reason"] == "NotSynced" for e in vc.api.get("/api/v1/namespaces/default/events")["items"]), 60,
               "an Event")
    refused(lambda: claim(vc, "e", "other"), "is not offered")
    refused(lambda: claim(vc, "e", meta["name"]), "is not offered")
    assert vc.api.get(f"{CLAIMS}/a")["spec"]["storageClassName"] == "fast"
    # No other tenant, nor this one, is shown it under its name on the host.
    assert not any(c["metadata"]["name"] == meta["name"] for c in vc.api.get(STORAGE)["items"])

    # A change of the tenant's; a change and a deletion on the host; a restart.
    vc.api.patch(f"{STORAGE}/fast", {"allowVolumeExpansion": False})
    eventually(lambda: classes(vc)["fast"].get("allowVolumeExpansion") is False, 60, "the change")
    vc.stop()
    host.api.patch(f"{STORAGE}/{meta['name']}", {"allowVolumeExpansion": True})
    vc.start()
    eventually(lambda: classes(vc)["fast"].get("allowVolumeExpansion") is False, 60, "the host's change to be put right")
    host.api.delete(f"{STORAGE}/{meta['name']}")
    eventually(lambda: classes(vc).get("fast", first)["metadata"]["uid"] != meta["uid"], 60, "it again on the host")
    uid = classes(vc)["fast"]["metadata"]["uid"]
    vc.restart(kill=True)
    claim(vc, "f", "fast")
    host_claim(vc, "f")
    assert classes(vc)["fast"]["metadata"]["uid"] == uid
    vc.api.delete(f"{STORAGE}/fast")
    eventually(lambda: not classes(vc), 60, "the class to leave")
    assert host_claim(vc, "a")["spec"]["storageClassName"] == meta["name"]


def test_what_is_refused(vc):
    refused(lambda: create(vc, kind="huge"), "parameters.type: is a value")
    refused(lambda: create(vc, parameters={"csi.storage.k8s.io/provisioner-secret-name": "s"}), "is not listed")
    refused(lambda: create(vc, mountOptions=["suid"]), "mountOptions[0]: is not listed")
    refused(lambda: create(vc, reclaimPolicy="Retain"), "reclaimPolicy: is not one of")
    create(vc)
    arrives(vc)


def test_a_class_of_others_stays(vc, host):
    create(vc)
    name = arrives(vc)["metadata"]["name"]
    vc.api.delete(f"{STORAGE}/fast")
    eventually(lambda: not classes(vc), 60, "the class to leave")
    foreign = host.api.post(STORAGE, {"metadata": {"name": name, "labels": {"sublet.dev/cluster": "other"}},
                                      "provisioner": "foreign.example"})
    try:
        create(vc)
        eventually(lambda: any("its name is taken on the host" in e["message"]
                               for e in vc.api.get("/api/v1/namespaces/default/events")["items"]), 60, "an Event")
        vc.api.delete(f"{STORAGE}/fast")
        vc.restart()
        now = host.api.get(f"{STORAGE}/{name}")
        assert (now["metadata"]["uid"], now["provisioner"]) == (foreign["metadata"]["uid"], "foreign.example")
    finally:
        host.api.delete(f"{STORAGE}/{name}")
