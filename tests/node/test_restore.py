# SPDX-License-Identifier: Apache-2.0
"""Pods that really run, over a restore of their virtual cluster and over one of their host: the same containers go on,
what is missing runs again under its uid, what is newer is kept, and the data of claims is there."""
import os
import subprocess

import pytest
import yaml

from testenv.binaries import TREE
from testenv.node import DISKS, SUBLET
from testenv.release import Release
from testenv.wait import eventually

from places import Place

EXAMPLE = os.path.join(TREE, "examples", "restore.yaml")
DATA = {"name": "d", "mountPath": "/d"}
VALUES = {"config": {"policy": {"storageClasses": [DISKS]}}}


@pytest.fixture(scope="module")
def phoenix(host, workdir):
    release = Release(host, "research", os.path.join(workdir, "restored"), {"hostFence": {"enabled": True}, **VALUES}, "team-phoenix")
    yield release.install()
    release.remove()


def backup(release, path):
    kubectl = release.on_host
    with open(path, "wb") as f:
        subprocess.run([kubectl.binary, "-n", release.namespace, "exec", f"{release.name}-0", "--", "sublet", "backup"],
                       stdout=f, check=True, env=kubectl.env)
    return path


def restore(release, path):
    """As docs/installing.md has it, of a release that has no pod and no claim."""
    kubectl = release.on_host
    with open(EXAMPLE, encoding="utf-8") as f:
        claim, pod = yaml.safe_load_all(f)
    claim["spec"]["storageClassName"] = DISKS
    pod["spec"]["containers"][0].update(image=SUBLET, imagePullPolicy="Never")
    kubectl.apply([claim, pod])
    kubectl("wait", "pod/research-restore", "--for=condition=Ready", "--timeout=120s")
    with open(path, "rb") as f:
        r = subprocess.run([kubectl.binary, "-n", release.namespace, "attach", "-i", "research-restore"], stdin=f,
                           check=False, env=kubectl.env, capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stderr + r.stdout + kubectl("logs", "research-restore")
    kubectl("wait", "pod/research-restore", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s")
    kubectl("delete", "pod", "research-restore")


def stop(release):
    release.close_api()
    release.on_host("scale", "statefulset", release.name, "--replicas=0")
    release.on_host("wait", f"pod/{release.name}-0", "--for=delete", "--timeout=120s")


def start(release):
    release.on_host("scale", "statefulset", release.name, "--replicas=1")
    release.wait_ready()


def container(place, name):
    found = place.get("pods", name)
    [status] = found["status"]["containerStatuses"]
    return found["metadata"]["uid"], status["containerID"], status["restartCount"]


def on_host(release, place, name):
    [found] = [p for p in release.on_host.items("pods")
               if (p["metadata"].get("annotations", {}).get("sublet.dev/namespace"),
                   p["metadata"]["annotations"].get("sublet.dev/name")) == (place.namespace, name)]
    return found


def warnings(release):
    return release.api.raw("GET", "/readyz/warnings")[2].decode()


def first_objects(place):
    """A pod with a claim that has content, another pod, and a Service; returns what must stay."""
    place.create("persistentvolumeclaims", {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": DISKS, "resources": {"requests": {"storage": "1Gi"}}}})
    place.start("stays", {"volumeMounts": [DATA]}, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
    place.sh("stays", "echo precious > /d/f")
    place.start("gone")
    place.service("web")
    return container(place, "stays"), place.get("pods", "gone")["metadata"]["uid"]


def remove(place, name):
    place.kubectl("delete", "pod", name, "--wait=true")


def restored(release, place, stays, gone):
    """What ran goes on in its container; what was removed since runs again under its uid."""
    assert container(place, "stays") == stays
    assert place.sh("stays", "cat /d/f") == "precious"
    assert place.ready("gone")["metadata"]["uid"] == gone
    assert place.sh("gone", "echo alive") == "alive"
    assert place.get("persistentvolumeclaims", "disk")["status"]["phase"] == "Bound"
    web = place.get("services", "web")["spec"]["clusterIP"]
    assert web in [s["spec"].get("clusterIP") for s in release.on_host.items("services")]


def test_a_backup_on_the_same_host(phoenix, tmp_path):
    with Place(phoenix, "same") as place:
        stays, gone = first_objects(place)
        copy = backup(phoenix, tmp_path / "copy.db")
        remove(place, "gone")
        place.start("newer")
        newer = on_host(phoenix, place, "newer")["status"]["containerStatuses"]

        stop(phoenix)
        phoenix.on_host("delete", "pvc", f"data-{phoenix.name}-0")
        restore(phoenix, copy)
        start(phoenix)
        restored(phoenix, place, stays, gone)
        eventually(lambda: "pods same/newer" in warnings(phoenix), 60, "the notice of the newer pod")
        kept = on_host(phoenix, place, "newer")
        assert kept["status"]["containerStatuses"] == newer and "deletionTimestamp" not in kept["metadata"]


def test_a_backup_on_another_host(host, workdir, tmp_path):
    """A namespace without any of its objects: for a virtual cluster that is another host."""
    old = Release(host, "research", os.path.join(workdir, "moved-from"), VALUES, "team-moved-from").install()
    place = Place(old, "moved").__enter__()
    stays, gone = first_objects(place)
    copy = backup(old, tmp_path / "copy.db")
    old.remove()

    new = Release(host, "research", os.path.join(workdir, "moved-to"), VALUES, "team-moved-to")
    new.create_namespace()
    restore(new, copy)
    try:
        new.install()
        place = Place(new, "moved")
        found = place.ready("stays")
        assert found["metadata"]["uid"] == stays[0] and container(place, "stays")[1] != stays[1]
        assert place.ready("gone")["metadata"]["uid"] == gone
        assert place.sh("stays", "ls /d") == ""  # a new volume; the content of claims is not in a backup
        assert place.get("persistentvolumeclaims", "disk")["status"]["phase"] == "Bound"
    finally:
        new.remove()


def test_a_host_that_is_rolled_back(host, phoenix, tmp_path):
    """Its etcd is restored while kubelet, containers and control plane go on."""
    with Place(phoenix, "back") as place:
        place.start("deleted")
        host.copy_state(tmp_path / "etcd")
        eventually(lambda: phoenix.api.get("/api"), 60, "the tenant's API", also=(OSError,))
        stays, gone = first_objects(place)
        remove(place, "deleted")

        host.roll_back(tmp_path / "etcd")

        def goes_on():
            assert place.get("pods", "stays")["metadata"]["uid"] == stays[0]
            assert place.sh("stays", "echo alive") == "alive"
            assert place.get("persistentvolumeclaims", "disk")["status"]["phase"] == "Bound"
            assert place.get("pods", "gone")["metadata"]["uid"] == gone
            assert place.sh("gone", "echo alive") == "alive"
            return True

        eventually(goes_on, 180, "the pods to run again", also=(Exception,))
        assert "deleted" not in place.kubectl.names("pods")
