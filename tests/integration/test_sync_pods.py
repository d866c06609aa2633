# SPDX-License-Identifier: Apache-2.0
"""sync.toHost.pods: images by another name on the host, and the classes of pods that get no other."""
import json
import subprocess

import pytest

from testenv import binaries, eventually

PODS = "/api/v1/namespaces/default/pods"
MIRROR = {"app:1": "mirror.example/app:1", "app:2": "mirror.example/app:2", "debug:1": "mirror.example/debug:1"}


def host_pod(vc, name):
    return next((p for p in vc.host_pods() if p["metadata"]["annotations"]["sublet.dev/name"] == name), None)


def create(vc, name, image):
    vc.api.post(PODS, {"metadata": {"name": name}, "spec": {
        "volumes": [{"name": "v", "image": {"reference": "app:1"}}],
        "initContainers": [{"name": "i", "image": "app:1"}], "containers": [{"name": "c", "image": image}]}})
    return eventually(lambda: host_pod(vc, name), 60, f"{name} on the host")


def images(pod):
    """Of a host pod: its container, init container and volume; before 1.35 a host drops image volumes by default."""
    spec = pod["spec"]
    volume = next((v["image"]["reference"] for v in spec["volumes"] if "image" in v), None)
    if not volume and binaries.host_minor() < 35:
        volume = spec["initContainers"][0]["image"]
    return spec["containers"][0]["image"], spec["initContainers"][0]["image"], volume


def test_images_are_translated(tenant):
    vc = tenant("research", config={"sync": {"toHost": {"pods": {"translateImage": MIRROR}}}})
    first = create(vc, "first", "app:1")
    assert images(first) == ("mirror.example/app:1",) * 3
    own = vc.api.get(f"{PODS}/first")
    assert own["spec"]["containers"][0]["image"] == own["spec"]["initContainers"][0]["image"] == "app:1"
    assert images(create(vc, "other", "other:1"))[0] == "other:1"

    # An image that the tenant changes, and a container that it adds.
    def image():
        return host_pod(vc, "first")["spec"]["containers"][0]["image"]

    def change(to):
        vc.api.patch(f"{PODS}/first", {"spec": {"containers": [{"name": "c", "image": to}]}}, "strategic-merge")

    change("app:2")
    eventually(lambda: image() == "mirror.example/app:2", 60, "the changed image on the host")
    vc.api.patch(f"{PODS}/first/ephemeralcontainers", {"spec": {"ephemeralContainers": [
        {"name": "d", "image": "debug:1"}]}}, "strategic-merge")
    added = eventually(lambda: host_pod(vc, "first")["spec"].get("ephemeralContainers"), 60, "the container on the host")
    assert added[0]["image"] == "mirror.example/debug:1"

    # Another map: what runs stays as it is, until the tenant changes it.
    vc.stop()
    vc.write_config({"sync": {"toHost": {"pods": {"translateImage": {
        "app:1": "new.example/app:1", "app:2": "new.example/app:2"}}}}})
    vc.start()
    assert images(create(vc, "later", "app:1")) == ("new.example/app:1",) * 3
    now = host_pod(vc, "first")
    assert now["metadata"]["uid"] == first["metadata"]["uid"] and image() == "mirror.example/app:2"
    change("app:1")
    eventually(lambda: image() == "new.example/app:1", 60, "the image by the other map")


def test_images_by_prefix(tenant, host):
    prefixes = {"docker.io/": "mirror.example/hub/", "docker.io/team/": "registry.example/", "debug:1": "tools.example/debug:1"}
    vc = tenant("research", config={"sync": {"toHost": {"pods": {"translateImage": prefixes}}}})
    first = create(vc, "first", "nginx:1.29")
    assert images(first) == ("mirror.example/hub/library/nginx:1.29", *["mirror.example/hub/library/app:1"] * 2)
    assert images(create(vc, "own", "team/app@sha256:" + "0" * 64))[0] == "registry.example/app@sha256:" + "0" * 64
    assert images(create(vc, "other", "quay.io/team/app:1"))[0] == "quay.io/team/app:1"
    vc.api.patch(f"{PODS}/first/ephemeralcontainers", {"spec": {"ephemeralContainers": [
        {"name": "d", "image": "debug:1"}, {"name": "e", "image": "debug:2"}]}}, "strategic-merge")
    added = eventually(lambda: host_pod(vc, "first")["spec"].get("ephemeralContainers"), 60, "the containers on the host")
    assert [c["image"] for c in added] == ["tools.example/debug:1", "mirror.example/hub/library/debug:2"]

    # The status is the host's as it is, the spec the tenant's.
    ran = {"name": "c", "image": "mirror.example/hub/library/nginx:1.29", "imageID": "mirror.example/hub/library/nginx@sha256:ab",
           "ready": True, "restartCount": 0, "state": {"running": {}}}
    host.api.patch(f"/api/v1/namespaces/{vc.namespace}/pods/{first['metadata']['name']}/status",
                      {"status": {"containerStatuses": [ran]}}, "merge")
    own = eventually(lambda: next((p for p in [vc.api.get(f"{PODS}/first")]
                                   if p["status"].get("containerStatuses", [{}])[0].get("imageID") == ran["imageID"]), None),
                     60, "the image that runs in the tenant")
    assert own["status"]["containerStatuses"][0]["image"] == ran["image"]
    assert own["spec"]["containers"][0]["image"] == "nginx:1.29"

    # Why, before it is done.
    said = subprocess.run([binaries.sublet(), "explain", "-f", "-", "--data-dir", vc.store], text=True, check=True,
                          capture_output=True, timeout=120, input=json.dumps({
                              "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "next"},
                              "spec": {"containers": [{"name": "c", "image": "nginx:1.30"}]}})).stdout
    assert "mirror.example/hub/library/nginx:1.30" in said and "translateImage" in said, said

    # Another map, and what a policy of the host makes of an image, is not fought.
    vc.stop()
    vc.write_config({"sync": {"toHost": {"pods": {"translateImage": {"docker.io/": "new.example/"}}}}})
    vc.start()
    assert images(create(vc, "later", "nginx:1.29")) == ("new.example/library/nginx:1.29", *["new.example/library/app:1"] * 2)
    now = host_pod(vc, "first")
    assert now["metadata"]["uid"] == first["metadata"]["uid"] and images(now)[0] == images(first)[0]


@pytest.fixture(scope="module")
def classes(real_host):
    made = {"/apis/node.k8s.io/v1/runtimeclasses": {"handler": "sandbox"},
            "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 5}}
    for path, body in made.items():
        real_host.api.post(path, {"metadata": {"name": "pods-of-all"}, **body})
    yield "pods-of-all"
    for path in made:
        real_host.api.delete(f"{path}/pods-of-all")


def test_pods_have_the_classes_of_all(tenant, classes):
    vc = tenant("research", config={"sync": {"toHost": {"pods": {
        "runtimeClassName": classes, "priorityClassName": classes}}}})
    spec = create(vc, "p", "app:1")["spec"]
    assert (spec["runtimeClassName"], spec["priorityClassName"], spec["priority"]) == (classes, classes, 5)
    own = vc.api.get(f"{PODS}/p")["spec"]
    assert "runtimeClassName" not in own and "priorityClassName" not in own


def test_pods_tolerate_what_all_do(real_host, tenant):
    """Without a pool: the node of that taint is the tenant's, and shows none; another tenant's pods stay off it."""
    node = "/api/v1/nodes/cpu-1"
    before = real_host.api.get(node)["spec"].get("taints", [])
    tainted = [{"key": "dedicated", "value": "edge", "effect": "NoSchedule"}]
    wanted = {"key": "dedicated", "operator": "Equal", "value": "edge", "effect": "NoSchedule"}
    real_host.api.patch(node, {"spec": {"taints": before + tainted}})
    try:
        vc = tenant("edge", config={"sync": {"toHost": {"pods": {"enforceTolerations": ["dedicated=edge:NoSchedule"]}}}})
        other = tenant("other")
        for each in (vc, other):
            each.api.post(PODS, {"metadata": {"name": "p"}, "spec": {
                "nodeSelector": {"kubernetes.io/hostname": "cpu-1"}, "containers": [{"name": "c", "image": "app:1"}]}})
        eventually(lambda: vc.api.get(f"{PODS}/p")["spec"].get("nodeName") == "cpu-1", 60, "the pod on that node")
        assert wanted in host_pod(vc, "p")["spec"]["tolerations"]
        assert wanted not in vc.api.get(f"{PODS}/p")["spec"].get("tolerations", [])
        eventually(lambda: not [t for t in vc.api.get(node)["spec"].get("taints", []) if t["key"] == "dedicated"], 60, "no taint")
        eventually(lambda: any("untolerated taint" in c.get("message", "") or "affinity/selector" in c.get("message", "")
                               for c in other.api.get(f"{PODS}/p")["status"].get("conditions", [])), 60, "the other to wait")
        assert wanted not in host_pod(other, "p")["spec"].get("tolerations", [])

        # One more, for a pod that is there.
        vc.stop()
        vc.write_config({"sync": {"toHost": {"pods": {"enforceTolerations": ["dedicated=edge:NoSchedule", "site"]}}}})
        vc.start()
        eventually(lambda: {"key": "site", "operator": "Exists"} in host_pod(vc, "p")["spec"]["tolerations"], 60, "it as well")
    finally:
        real_host.api.patch(node, {"spec": {"taints": before}})
