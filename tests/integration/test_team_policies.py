# SPDX-License-Identifier: Apache-2.0
"""examples/team-policies.yaml: who may request GPUs, which registries images are from, and read-only root file systems."""
import json
import os

import pytest

from testenv import eventually
from testenv.binaries import TREE

from test_tenant import pod, running

IMAGE = "registry.example.com/train:1"


def workload(name, gpus=0, image=IMAGE, read_only=True):
    body = pod(name, gpus)
    body["spec"]["containers"][0].update(image=image, securityContext={"readOnlyRootFilesystem": read_only})
    return body


def deployment(name, gpus):
    template = {"metadata": {"labels": {"app": name}}, "spec": workload(name, gpus)["spec"]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}}


def cron(name, gpus):
    spec = workload(name, gpus)["spec"]
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": {
        "schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": {**spec, "restartPolicy": "Never"}}}}}}


@pytest.fixture
def vc(tenant, pools):
    """A tenant with the policies, and two editors: ada has the role, bob has not."""
    made = tenant("research", config=pools)
    made.kubectl("apply", "-f", os.path.join(TREE, "examples", "team-policies.yaml"))
    for user in ("ada", "bob"):
        made.kubectl("create", "rolebinding", f"{user}-edits", "--clusterrole=edit", f"--user={user}")
    made.kubectl("create", "rolebinding", "ada-uses-gpus", "--clusterrole=gpu-user", "--user=ada")
    eventually(lambda: made.kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(workload("w", image="x")))[0], 30,
               "the policies to apply")
    return made


def create(vc, user, body):
    """(exit code, what kubectl says)"""
    code, out, err = vc.kubectl.run("create", "--as", user, "-f", "-", stdin=json.dumps(body))
    return code, out + err


def test_who_may_request_gpus(vc):
    for body, kind in ((workload("gpu", 1), "pods"), (deployment("gpu", 1), "deployments"), (cron("gpu", 1), "cronjobs")):
        code, said = create(vc, "bob", body)
        assert code and "GPUs: bob has no role to use them in namespace default" in said, (kind, said)
        code, said = create(vc, "ada", body)
        assert code == 0, (kind, said)
    assert create(vc, "bob", workload("plain"))[0] == 0
    assert create(vc, "bob", deployment("plain", 0))[0] == 0
    running(vc.kubectl, "gpu")
    vc.kubectl("rollout", "status", "deployment/gpu", "--timeout=180s")  # its pods are a controller's
    patch = json.dumps({"spec": {"template": {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}})
    said = vc.kubectl.fails("patch", "--as", "bob", "deployment", "plain", "-p", patch)
    assert "GPUs: bob has no role" in said, said
    early = workload("early")
    early["spec"]["initContainers"] = [{"name": "i", "image": IMAGE, "securityContext": {"readOnlyRootFilesystem": True},
                                        "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    assert "GPUs: bob has no role" in create(vc, "bob", early)[1]
    vc.kubectl("delete", "rolebinding", "ada-uses-gpus")
    eventually(lambda: "GPUs: ada has no role" in create(vc, "ada", workload("later", 1))[1], 30, "the role to be taken")


def test_images_and_root_file_systems(vc):
    code, said = create(vc, "ada", workload("other", image="docker.io/library/busybox:1"))
    assert code and "images are from registry.example.com/" in said, said
    code, said = create(vc, "ada", workload("other", image="registry.example.com.evil.example/x"))
    assert code and "images are from registry.example.com/" in said, said
    code, said = create(vc, "ada", workload("writes", read_only=False))
    assert code and "readOnlyRootFilesystem is true in each container" in said, said
    assert create(vc, "ada", workload("good"))[0] == 0
    running(vc.kubectl, "good")
    said = vc.kubectl.fails("debug", "good", "--image=busybox:1", "--profile=baseline", "--", "sh")
    assert "images of debug containers are from registry.example.com/" in said, said
    vc.restart()
    assert create(vc, "ada", workload("writes", read_only=False))[0]
