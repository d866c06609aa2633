# SPDX-License-Identifier: Apache-2.0
"""GPUUsage and ClusterGPUUsage: what a tenant reads of its own GPUs, on a real host."""
import re
import time


import pytest

from testenv import eventually
from testenv.kubectl import end
from testenv.nodes import pool_config

from test_tenant import pod, running

ROOT = "/apis/sublet.dev/v1"


@pytest.fixture
def vc(tenant):
    return tenant("usage", config={
        "pools": [pool_config("shared", "l4", kind="shared")],
        "bindings": [{"pool": "shared", "guarantee": "1", "burst": "2", "overQuota": "queue", "default": True}]})


def series(vc):
    """{what: value} of the pool, without the buckets."""
    found = re.findall(r'^sublet_gpu_(\w+)\{pool="shared"\} (\S+)$', vc.api.raw("GET", "/metrics")[2].decode(), re.M)
    return {name: value for name, value in found if not name.endswith("_sum")}


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_usage_follows_pods_and_the_line(vc):
    k = vc.kubectl
    assert cells(k("get", "gpuusages")) == [["NAME", "USED", "LIMIT", "GUARANTEE", "PODS", "WAITING", "WAITING-PODS", "UNAVAILABLE"],
                                            ["shared", "0", "3", "1", "0", "0", "0"]]
    k("create", "namespace", "other")
    k.apply(pod("a", 2))
    running(k, "a")
    k.apply(pod("b", 2))
    made = k.json("get", "pod", "b")["metadata"]["creationTimestamp"]
    eventually(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > made, 5, "the next second: pods of one have no order")
    k.within("other").apply(pod("c", 3))
    eventually(lambda: k.json("get", "clustergpuusage", "shared")["status"]["waitingPods"] == 2, 60, "the line")
    assert cells(k("get", "clustergpuusages"))[1] == ["shared", "2", "3", "1", "1", "exclusive", "1", "5", "2"]
    mine, other = (k.json("get", "gpuusage", "shared", "-n", ns) for ns in ("default", "other"))
    assert int(mine["metadata"].pop("resourceVersion")) > 0
    assert (mine["apiVersion"], mine["kind"], mine["metadata"]) == (
        "sublet.dev/v1", "GPUUsage", {"name": "shared", "namespace": "default"})
    status = mine["status"]
    assert {m: status[m] for m in ("used", "pods", "waiting", "waitingPods")} == {
        "used": "2", "pods": 1, "waiting": "2", "waitingPods": 1}
    assert [(p["name"], p["gpus"], p["position"], p["ahead"]) for p in status["queue"]] == [("b", "2", 1, "0")]
    assert other["status"]["used"] == "0"
    assert [(p["namespace"], p["name"], p["position"], p["ahead"]) for p in other["status"]["queue"]] == [
        ("other", "c", 2, "2")]
    assert [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in k.items("gpuusages", "-A")] == [
        ("default", "shared"), ("other", "shared")]
    assert k.names("gpuusages", "--field-selector", "metadata.name=none") == []
    now = series(vc)
    assert float(now.pop("queue_oldest_seconds")) >= 0
    assert now == {"quota_limit": "3", "quota_guarantee": "1", "quota_used": "2", "quota_borrowed": "1",
                   "queue_depth": "2", "queue_gpus": "5", "queue_wait_seconds_count": "0",
                   "pod_scheduling_seconds_count": "1", "pods_created_total": "3", "pods_reclaimed_total": "0",
                   "reclaimed_gpu_seconds_total": "0"}
    eventually(lambda: float(k.json("get", "clustergpuusage", "shared")["status"]["gpuHours"]) > 0, 60, "a thousandth of a GPU hour")
    assert "namespaces" not in status and "mode" not in status
    whole = k.json("get", "clustergpuusage", "shared")["status"]
    hours = {u["metadata"]["namespace"]: float(u["status"]["gpuHours"]) for u in k.items("gpuusages", "-A")}
    assert hours["other"] == 0 and float(whole["gpuHours"]) <= hours["default"] < float(whole["gpuHours"]) + 0.1
    assert float(k.json("get", "gpuusage", "shared", "-n", "default")["status"]["gpuHours"]) >= hours["default"]
    assert whole["namespaces"] == [{"namespace": "default", "gpuHours": whole["gpuHours"]}] and whole["otherGPUHours"] == "0"
    rows = k("get", "clustergpuusage", "shared", "-o", r'jsonpath={range .status.namespaces[*]}{.namespace}{"\t"}{.gpuHours}{"\n"}{end}')
    assert [line[0] for line in cells(rows)] == ["default"]
    assert (whole["mode"], whole["trust"], whole["isolation"]) == (
        "exclusive", "cooperative", "whole GPUs, which no other pod has at the same time")
    k("delete", "pod", "a", "--now")
    running(k, "b")
    assert series(vc)["queue_wait_seconds_count"] == "1" and series(vc)["pod_scheduling_seconds_count"] == "2"
    eventually(lambda: k.json("get", "gpuusage", "shared")["status"]["waiting"] == "0", 60, "the end of the wait")


def test_usage_is_watched(vc):
    k = vc.kubectl
    p = k.start("get", "gpuusages", "--watch", "--output-watch-events")
    try:
        lines = [p.stdout.readline().decode().split()[:4] for _ in range(2)]
        assert lines == [["EVENT", "NAME", "USED", "LIMIT"], ["ADDED", "shared", "0", "3"]]
        k.apply(pod("a", 2))
        seen = []
        while not seen or seen[-1][:3] != ["MODIFIED", "shared", "2"]:
            seen.append(p.stdout.readline().decode().split())
            assert seen[-1], "the watch ended"
        k("delete", "pod", "a", "--now")
        while seen[-1][2] != "0":
            seen.append(p.stdout.readline().decode().split())
            assert seen[-1], "the watch ended"
        assert {line[0] for line in seen} == {"MODIFIED"}
    finally:
        end(p)


def test_usage_is_read_only_and_described(vc):
    k = vc.kubectl
    assert {r["name"]: r["verbs"] for r in vc.api.get(ROOT)["resources"]} == {
        "gpuusages": ["get", "list", "watch"], "clustergpuusages": ["get", "list", "watch"]}
    assert "GPUs of one pool, named like the pool" in " ".join(k("explain", "gpuusage").split())
    assert "position" in k("explain", "clustergpuusage.status.queue")
    assert 'gpuusages.sublet.dev "none" not found' in k.fails("get", "gpuusage", "none")
    assert "the server does not allow this method on the requested resource" in k.fails(
        "delete", "gpuusage", "shared")
    path = f"{ROOT}/namespaces/default/gpuusages"
    for method, params in (("POST", {}), ("DELETE", {})):
        status, _, body = vc.api.raw(method, path, {"metadata": {"name": "x"}} if method == "POST" else None)
        assert status == 405, (method, body)
    events = vc.api.raw("GET", f"{path}?watch=1&timeoutSeconds=1&resourceVersion=7")[2].decode()
    assert '"type":"ERROR"' in events and '"reason":"Expired"' in events, events
    assert vc.api.get(f"{ROOT}/namespaces/none/gpuusages")["items"] == []


def test_viewers_read_their_namespace_alone(vc):
    k = vc.kubectl
    k("create", "namespace", "other")
    viewer = vc.kubectl_as(vc.service_account_kubeconfig("default", "viewer"))
    k("create", "rolebinding", "view", "--clusterrole", "view", "--serviceaccount", "default:viewer")
    eventually(lambda: cells(viewer("get", "gpuusages"))[1][0] == "shared", 60, "the permission", also=(AssertionError,))
    for refused in (("gpuusages", "-n", "other"), ("gpuusages", "-A"), ("clustergpuusages",)):
        assert "cannot list resource" in viewer.fails("get", *refused)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_definition_of_the_same_name_is_not_served(vc, version):
    k = vc.kubectl
    names = {"kind": "GPUUsage", "plural": "gpuusages", "singular": "gpuusage", "listKind": "GPUUsageList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    k.apply({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
             "metadata": {"name": "gpuusages.sublet.dev"},
             "spec": {"group": "sublet.dev", "scope": "Namespaced", "names": names,
                      "versions": [{"name": version, "served": True, "storage": True, "schema": schema}]}})
    eventually(lambda: "False" in k("get", "crd", "gpuusages.sublet.dev", "-o",
                                    "jsonpath={.status.conditions[*].status}"), 30, "the refusal")
    vc.restart()
    assert cells(k("get", "gpuusages"))[1][0] == "shared"
    assert [v["version"] for v in vc.api.get("/apis/sublet.dev")["versions"]] == ["v1"]
    assert {r["name"]: r["verbs"] for r in vc.api.get(ROOT)["resources"]}["gpuusages"] == ["get", "list", "watch"]
    k("delete", "crd", "gpuusages.sublet.dev")
    assert cells(k("get", "gpuusages"))[1][0] == "shared"


def test_a_tenant_without_pools_has_none(tenant):
    assert tenant("plain").api.raw("GET", ROOT)[0] == 404
