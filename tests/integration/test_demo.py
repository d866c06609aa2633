# SPDX-License-Identifier: Apache-2.0
"""tests/demo, as a newcomer runs it: what it shows must be so, and what it starts must end."""
import json
import os
import re
import subprocess

from testenv.binaries import TREE
from testenv.demo import Demo, demo  # noqa: F401 - a fixture


def test_says_what_it_did(demo):  # noqa: F811
    """Short, whole, and without a line that is wider than a README."""
    said = demo.said
    assert len(said.splitlines()) < 80
    assert "\x1b" not in said, "colours belong to terminals"
    assert re.search(r'pool\s+"a100" allows 4', said)
    assert re.search(r"exceeded quota: gpu/l4, requested: gpu=2, used: gpu=2, limited:\s+gpu=3", said)
    assert len(re.findall(r"(research|prod) +\d+\.\d MB, \d+\.\d of it private", said)) == 2
    for cluster in ("research", "prod", "host"):
        assert f"export KUBECONFIG={demo.kubeconfig(cluster)}" in said


def test_two_versions_of_one_kind(demo):  # noqa: F811
    for cluster, version in (("research", "v1alpha1"), ("prod", "v1")):
        crd = json.loads(demo.kubectl(cluster, "get", "crd", "trainings.ml.example.com", "-o", "json"))
        assert [v["name"] for v in crd["spec"]["versions"]] == [version]
        assert demo.kubectl(cluster, "get", "trainings.ml.example.com", "-o", "name").strip() == \
            "training.ml.example.com/llm"


def test_pods_are_where_their_pool_says(demo):  # noqa: F811
    pods = json.loads(demo.kubectl("host", "get", "pods", "-A", "-o", "json"))["items"]
    by_name = {p["metadata"]["annotations"]["sublet.dev/name"]: p for p in pods
               if "sublet.dev/name" in p["metadata"].get("annotations", {})}
    assert len(by_name) == 6
    for name, pool, node in (("train", "a100", "gpu-a100-"), ("infer", "shared", "gpu-l4-")):
        spec = by_name[name]["spec"]
        assert spec["nodeSelector"]["sublet.dev/pool"] == pool
        assert {t["key"] for t in spec["tolerations"]} >= {"sublet.dev/pool", "nvidia.com/gpu"}
        assert spec["nodeName"].startswith(node)
    for name, pod in by_name.items():
        if name.startswith(("notebook", "web")):
            assert pod["spec"]["nodeName"].startswith("cpu-")
        assert pod["status"]["phase"] == "Running"


def test_teams_see_their_own(demo):  # noqa: F811
    names = {c: demo.kubectl(c, "get", "pods", "-o", "name").split() for c in ("research", "prod")}
    assert "pod/train" in names["research"] and "pod/infer" in names["prod"]
    assert len(names["research"]) == len(names["prod"]) == 3
    assert not set(names["research"]) & set(names["prod"])


def test_second_run_says_that_it_runs(demo):  # noqa: F811
    before = demo.pids()
    assert len(before) == 3
    said = demo.run()
    assert "runs already" in said and demo.kubeconfig("research") in said
    assert demo.pids() == before


def test_restarts_after_a_crash(demo):  # noqa: F811
    """A part that died takes the others with it, and all are new."""
    before = demo.pids()
    demo.kill("research")
    demo.run()
    after = demo.pids()
    assert len(after) == 3 and not set(before) & set(after)


def test_stop_without_a_demo(workdir):
    d = Demo(os.path.join(workdir, "no-demo"))
    assert "does not run" in d.run("stop")


FEW_PROGRAMS = ("awk", "bash", "cat", "chmod", "dirname", "grep", "mkdir", "mv", "readlink", "realpath", "rm", "sha256sum",
                "tail", "tr", "uname")


def run_without_kubectl(workdir, name, curl=None):
    """The demo on a machine without kubectl, where curl is what is given; returns its stderr and the cache."""
    d = Demo(os.path.join(workdir, name))
    path, cache = os.path.join(workdir, name + "-programs"), os.path.join(workdir, name + "-cache")
    os.makedirs(path)
    for program in FEW_PROGRAMS:
        os.symlink(os.path.join("/usr/bin", program), os.path.join(path, program))
    if curl:
        with open(os.path.join(path, "curl"), "w", encoding="utf-8") as f:
            f.write(curl)
        os.chmod(f.name, 0o755)
    r = subprocess.run([os.path.join(TREE, "tests", "demo")], text=True, capture_output=True, timeout=300, check=False,
                       env={**d.env, "KUBECTL": "", "SUBLET_CACHE": cache, "PATH": path})
    assert r.returncode != 0 and not d.pids()
    return r.stderr, os.listdir(cache)


def test_kubectl_cannot_be_fetched(workdir):
    """It says what to do, and nothing is left running."""
    stderr, cache = run_without_kubectl(workdir, "no-kubectl")
    assert "kubectl could not be fetched from https://dl.k8s.io/" in stderr and not cache


def test_kubectl_is_not_what_it_ought_to_be(workdir):
    """A download that is not what its checksum says is never run, nor kept."""
    curl = """#!/bin/bash
[[ $* == *.sha256 ]] && echo 0000000000000000000000000000000000000000000000000000000000000000 && exit
while [ "$1" != -o ]; do shift; done
echo surprise >"$2"
"""
    stderr, cache = run_without_kubectl(workdir, "bad-kubectl", curl)
    assert "is not what its checksum says" in stderr and not cache
