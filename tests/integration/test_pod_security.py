# SPDX-License-Identifier: Apache-2.0
"""Pod Security beside the real thing: upstream's own pods that pass and fail at each level of each version, pod
templates, labels that make no sense, new levels over old pods, updates. Codes, messages and warnings are those of a
kube-apiserver. The pods are read from the Go module k8s.io/pod-security-admission, whose folders name the result."""
import glob
import os
import re

import pytest
import yaml

import testenv
from alike import alike, both, namespace as alike_namespace
from differential.servers import prepare, start_pair
from testenv import binaries

MODULE = "k8s.io/pod-security-admission@v0.36.3"
LEVELS = ("baseline", "restricted")
KEY = "pod-security.kubernetes.io/"
NEWEST = 35  # the last version in which a check changed
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# ---- upstream's pods ----

@pytest.fixture(scope="module")
def fixtures():
    """{(level, version): [(name, passes, pod)]}"""
    folder = binaries.module_source(MODULE)
    out, texts = {}, {}
    for path in sorted(glob.glob(f"{folder}/test/testdata/*/v1.*/*/*.yaml")):
        level, version, verdict, file = path.split("/")[-4:]
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if text not in texts:  # the same pods come again in many versions
            texts[text] = yaml.load(text, LOADER)
        pod, name = texts[text], file[:-5].replace("_", "-")
        pod = {**pod, "metadata": {**pod["metadata"], "name": name}}
        out.setdefault((level, version), []).append((name, verdict == "pass", pod))
    assert {level for level, _ in out} == set(LEVELS) and len(out) >= 2 * (NEWEST + 1)
    return out


@pytest.fixture(scope="module")
def pair(workdir):
    here, there = start_pair(os.path.join(workdir, "pod-security"))
    for api in (here.api, there.api):
        prepare(api, "psa")
    yield here.api, there.api
    try:
        here.close()
    finally:
        there.stop()


def namespace(pair, name, **labels):
    """A namespace of such labels on both; enforce_version -> .../enforce-version."""
    path = alike_namespace(pair, name, {KEY + k.replace("_", "-"): v for k, v in labels.items()})
    in_force(pair, path, **labels)
    return path


def in_force(pair, path, enforce="privileged", enforce_version="latest", warn="privileged", warn_version="latest", **_):
    """Waits until pods are judged by these labels: a kube-apiserver's admission reads them from a cache."""
    level, version = (enforce, enforce_version) if enforce in LEVELS else (warn, warn_version)
    policies = {f"{level}:{version}"} if level in LEVELS else set()  # who is refused is not warned

    def seen():
        for api in pair:
            _, headers, data = api.raw("POST", path + "/pods", simple("probe", hostPID=True), query={"dryRun": "All"})
            told = " ".join([data.decode(), *(headers.get_all("Warning") or [])]).replace("\\", "")
            if policies != set(re.findall(r'(?:violates|would violate) PodSecurity "([^"]*)"', told)):
                return False
        return True
    testenv.eventually(seen, 30, f"{path} to be judged by {policies}")


# ---- pods ----

def impossible(code, name):
    """An unmasked /proc without users of one's own is no valid pod any more, whatever the level."""
    return code == 422 and name.startswith("procmount")


def rightly(told, passes, policy):
    code, why, _ = told
    if passes:
        assert code == 201, why
    else:
        assert impossible(code, why[2]) or (code == 403 and f'violates PodSecurity "{policy}": ' in why[1]), told


def test_every_pod_of_every_version(pair, fixtures):
    pods = refused = 0
    wrong = []
    for (level, version), cases in sorted(fixtures.items()):
        ns = namespace(pair, f"{level}-{version.replace('.', '-')}", enforce=level, enforce_version=version)
        for name, passes, pod in cases:
            here, there = both(pair, "POST", f"{ns}/pods", pod, dryRun="All")
            if here != there:
                wrong.append(f"{level}/{version}/{name}:\n  ours  {here}\n  real  {there}")
            rightly(there, passes, f"{level}:{version}")
            pods += 1
            refused += there[0] == 403
    print(f"{pods} pods, {refused} of them refused, {len(wrong)} answers differ")
    assert not wrong, "\n".join(wrong[:25])
    assert refused > 2500


@pytest.mark.parametrize("level", LEVELS)
def test_versions_to_come_are_the_latest(pair, fixtures, level):
    for version in ("latest", f"v1.{NEWEST + 1}", "v1.9223372036854775807"):
        ns = namespace(pair, f"later-{level}", enforce=level, enforce_version=version)
        for name, passes, pod in fixtures[level, f"v1.{NEWEST}"]:
            rightly(alike(pair, name, "POST", f"{ns}/pods", pod, dryRun="All"), passes, f"{level}:{version}")


# ---- templates ----

def wrap(kind, pod):
    """pod as the template of an object of this kind; (path below a namespace, object)."""
    template = {"metadata": {"labels": {"a": "b"}, **{k: v for k, v in pod["metadata"].items() if k == "annotations"}},
                "spec": pod["spec"]}
    never = {**template, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    group, version, plural, body = {
        "Deployment": ("apis/apps", "v1", "deployments", {"spec": spec}),
        "ReplicaSet": ("apis/apps", "v1", "replicasets", {"spec": spec}),
        "StatefulSet": ("apis/apps", "v1", "statefulsets", {"spec": {**spec, "serviceName": "s"}}),
        "DaemonSet": ("apis/apps", "v1", "daemonsets", {"spec": spec}),
        "Job": ("apis/batch", "v1", "jobs", {"spec": {"template": never}}),
        "CronJob": ("apis/batch", "v1", "cronjobs",
                    {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": never}}}}),
        "ReplicationController": ("api", "v1", "replicationcontrollers",
                                  {"spec": {"selector": {"a": "b"}, "template": template}}),
        "PodTemplate": ("api", "v1", "podtemplates", {"template": template}),
    }[kind]
    return f"/{group}/{version}/namespaces/%s/{plural}", {
        "apiVersion": f"{group.removeprefix('apis/')}/{version}".removeprefix("api/"), "kind": kind,
        "metadata": {"name": "w"}, **body}


KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController", "PodTemplate")


def restarts(pod):
    """Sidecars and the like that a template of a job may not have are left out."""
    return not any("restartPolicy" in c for c in pod["spec"].get("initContainers", []))


@pytest.mark.parametrize("kind", KINDS)
def test_templates_are_warned_about(pair, fixtures, kind):
    warned = 0
    for level in LEVELS:
        ns = f"templates-{level}"
        namespace(pair, ns, enforce=level)  # and with it, warn
        for name, passes, pod in fixtures[level, f"v1.{NEWEST}"]:
            path, body = wrap(kind, pod)
            code, why, told = alike(pair, f"{kind} {name}", "POST", path % ns, body, dryRun="All")
            assert code == 201 or impossible(code, name), f"{kind} {name}: {why}"
            mine = [x for x in told if x.startswith("would violate PodSecurity")]
            assert bool(mine) != passes or code == 422, f"{kind} {name}: {told}"
            warned += bool(mine)
    assert warned > 80


def test_who_warns_does_not_refuse(pair, fixtures):
    ns = namespace(pair, "warns", warn="restricted", warn_version="v1.20", audit="baseline")
    for name, passes, pod in fixtures["restricted", "v1.20"]:
        code, _, told = alike(pair, name, "POST", f"{ns}/pods", pod, dryRun="All")
        assert code == 201 and any("would violate PodSecurity" in x for x in told) != passes


# ---- namespaces ----

LABELS = [
    {"enforce": "x"}, {"enforce": ""}, {"enforce": "Baseline"}, {"enforce": "baseline", "enforce-version": "1.20"},
    {"enforce-version": "v1.01"}, {"enforce-version": "v1."}, {"enforce-version": "v2.0"}, {"enforce-version": "v1.0"},
    {"enforce-version": "v1.9223372036854775807"}, {"enforce-version": "v1.9223372036854775808"},
    {"enforce-version": "v1.-1"}, {"enforce-version": "v1.1.1"}, {"warn": "x", "audit": "y"},
    {"enforce": "x", "enforce-version": "x", "warn": "x", "warn-version": "x", "audit": "x", "audit-version": "x"},
    {"audit": "privileged", "audit-version": "latest"}, {"unknown": "x"},
]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_labels_must_make_sense(pair, labels):
    body = {"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "labelled", "labels": {KEY + k: v for k, v in labels.items()}}}
    alike(pair, "create", "POST", "/api/v1/namespaces", body, dryRun="All")
    path = namespace(pair, "labelled")
    alike(pair, "update", "PATCH", path, {"metadata": {"labels": body["metadata"]["labels"]}}, dryRun="All")


def test_labels_without_sense_are_strict(pair):
    """Where they are from before (here: from the path that does not check them) pods meet the strictest level."""
    ns = namespace(pair, "senseless")
    for api in pair:
        api.raw("PATCH", ns + "/status", {"metadata": {"labels": {KEY + "enforce": "x"}}},
                "application/merge-patch+json")
    in_force(pair, ns, enforce="restricted")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    alike(pair, "pod", "POST", f"{ns}/pods", pod, dryRun="All")
    alike(pair, "other label", "PATCH", ns, {"metadata": {"labels": {"a": "b"}}}, dryRun="All")
    alike(pair, "other nonsense", "PATCH", ns, {"metadata": {"labels": {KEY + "enforce": "y"}}}, dryRun="All")


def simple(name, owner=None, **spec):
    refs = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    return {"metadata": {"name": name, **({"ownerReferences": refs} if owner else {})},
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def test_a_new_level_is_told_whom_it_forbids(pair):
    ns = namespace(pair, "tightened")
    pods = [simple("z-alone", hostPID=True), simple("a-alone", hostPID=True), simple("both", hostPID=True, hostIPC=True),
            *[simple(f"many-{i}", owner="rs", hostNetwork=True) for i in range(4)], simple("fine"),
            simple("volumes", volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
            simple("annotated") | {"metadata": {"name": "annotated", "annotations": {
                "container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}}]
    for api in pair:
        for pod in pods:
            api.post(f"{ns}/pods", pod)

    def known():  # upstream looks at pods in a cache, which gets them in order
        _, headers, _ = pair[1].raw("PATCH", ns, {"metadata": {"labels": {KEY + "enforce": "baseline"}}},
                                    "application/merge-patch+json", query={"dryRun": "All"})
        return any("annotated:" in w for w in headers.get_all("Warning") or [])
    testenv.eventually(known, 60, "upstream to know the last of the pods")

    def relabel(what, **labels):
        _, _, told = alike(pair, what, "PATCH", ns, {"metadata": {"labels": {KEY + k: v for k, v in labels.items()}}})
        return told

    told = relabel("baseline", enforce="baseline")
    assert told == ["a-alone (and 6 other pods): host namespaces", "annotated: forbidden AppArmor profiles",
                    r'existing pods in namespace \"tightened\" violate the new PodSecurity enforce level \"baseline:latest\"',
                    "volumes: hostPath volumes"]
    assert relabel("restricted", enforce="restricted")
    assert not relabel("relaxed", enforce="baseline")
    assert relabel("older", **{"enforce-version": "v1.20"})
    assert not relabel("open", enforce="privileged")
    assert not relabel("warn only", warn="restricted")


# ---- updates ----

def test_updates_count_where_they_matter(pair):
    ns = namespace(pair, "updates")
    for api in pair:
        api.post(f"{ns}/pods", simple("p", hostPID=True))
        api.patch(ns, {"metadata": {"labels": {KEY + "enforce": "baseline", KEY + "warn": "restricted"}}})
    in_force(pair, ns, enforce="baseline", warn="restricted")
    p = f"{ns}/pods/p"
    assert alike(pair, "label", "PATCH", p, {"metadata": {"labels": {"a": "b"}}})[0] == 200
    assert alike(pair, "image", "PATCH", p, {"spec": {"containers": [{"name": "c", "image": "j"}]}})[0] == 403
    assert alike(pair, "toleration", "PATCH", p, {"spec": {"activeDeadlineSeconds": 99}})[0] == 200
    assert alike(pair, "status", "PATCH", p + "/status", {"status": {"message": "m"}})[0] == 200
    debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i", "securityContext": {"privileged": True}}]}}
    assert alike(pair, "debug", "PATCH", p + "/ephemeralcontainers", debug)[0] == 403
    resize = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    alike(pair, "resize", "PATCH", p + "/resize", resize)
    for api in pair:
        api.post(f"{ns}/pods", simple("q"))
    assert alike(pair, "debug", "PATCH", f"{ns}/pods/q/ephemeralcontainers", debug)[0] == 403
    harmless = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
    code, _, told = alike(pair, "debug", "PATCH", f"{ns}/pods/q/ephemeralcontainers", harmless)
    assert code == 200 and told
