# SPDX-License-Identifier: Apache-2.0
"""`metrics.source: host`: kubectl top and HorizontalPodAutoscalers, by the host's metrics API."""
import os

import pytest

from testenv import eventually
from testenv.api import ApiError
from testenv.metrics import MetricsApi

from test_tenant import pod, running

ROOT = "/apis/metrics.k8s.io/v1beta1"
ON = {"metrics": {"source": "host"}}


@pytest.fixture(scope="module")
def metrics_dir(workdir):
    return os.path.join(workdir, "metrics")


@pytest.fixture
def metrics(host, metrics_dir):
    """The host's metrics API, which a test may change."""
    api = MetricsApi(host, metrics_dir)
    yield api.start()
    api.stop()


def labelled(name, **labels):
    body = pod(name)
    body["metadata"]["labels"] = labels
    return body


def names(answer):
    return [o["metadata"]["name"] for o in answer["items"]]


def test_pods_are_the_tenants_own(tenant, metrics):
    a, b = tenant("alpha", config=ON), tenant("beta", config=ON)
    a.kubectl.apply(labelled("web", app="web", tier="front"))
    a.kubectl.apply(labelled("job", app="job"))
    b.kubectl.apply(labelled("web", app="web"))
    for vc in (a, b):
        running(vc.kubectl, "web")
    running(a.kubectl, "job")
    a.kubectl("create", "namespace", "other")
    list_path = f"{ROOT}/namespaces/default/pods"
    assert eventually(lambda: names(a.api.get(list_path)) == ["job", "web"], 30, "both pods")
    one = a.api.get(f"{list_path}/web")
    assert one["kind"] == "PodMetrics" and one["apiVersion"] == "metrics.k8s.io/v1beta1"
    assert one["metadata"]["labels"].items() >= {"app": "web", "tier": "front"}.items() and one["window"] == "15s"
    assert one["containers"] == [{"name": "main", "usage": {"cpu": "100m", "memory": "64Mi"}}]
    assert names(a.api.get(list_path, labelSelector="app=web")) == ["web"]
    assert names(a.api.get(list_path, labelSelector="app in (job)")) == ["job"]
    assert names(a.api.get(list_path, fieldSelector="metadata.name=job")) == ["job"]
    assert names(a.api.get(f"{ROOT}/namespaces/other/pods")) == []
    assert names(a.api.get(f"{ROOT}/pods")) == ["job", "web"] and names(b.api.get(f"{ROOT}/pods")) == ["web"]
    with pytest.raises(ApiError) as e:
        a.api.get(f"{list_path}/none")
    assert e.value.code == 404 and 'podmetrics.metrics.k8s.io "default/none" not found' in str(e.value)
    top = a.kubectl("top", "pods", "--containers")
    assert "web" in top and "100m" in top and "64Mi" in top
    assert a.namespace not in str(a.api.get(f"{ROOT}/pods")) and a.namespace not in top


def test_what_is_measured_is_not_believed(tenant, metrics):
    vc = tenant("lies", config=ON)
    vc.kubectl.apply(labelled("web", app="web"))
    running(vc.kubectl, "web")
    list_path = f"{ROOT}/namespaces/default/pods"
    metrics.usage = lambda p: {"main": ("5m", "1Mi"), "sidecar-of-the-host": ("900m", "1Gi")}
    eventually(lambda: vc.api.get(f"{list_path}/web")["containers"] == [
        {"name": "main", "usage": {"cpu": "5m", "memory": "1Mi"}}], 30, "its own containers alone", also=(404,))
    metrics._times = lambda: {"timestamp": "2020-01-01T00:00:00Z", "window": "15s"}  # of an earlier pod of this name
    assert names(vc.api.get(list_path)) == []


def test_nodes_show_the_tenants_own_usage(host, tenant, metrics):
    vc, whole = tenant("nodes", config=ON), tenant("whole", config={"metrics": {"source": "host", "nodes": "whole"}})
    metrics.node_usage = {n: ("3", "2Gi") for n in ("cpu-1", "cpu-2", "gpu-a100-1")}
    body = pod("web")
    vc.kubectl.apply(body)
    running(vc.kubectl, "web")
    node = vc.kubectl.json("get", "pod", "web")["spec"]["nodeName"]
    usage = eventually(lambda: {o["metadata"]["name"]: o["usage"] for o in vc.api.get(f"{ROOT}/nodes")["items"]}, 30)
    eventually(lambda: vc.api.get(f"{ROOT}/nodes/{node}")["usage"] == {"cpu": "100000000n", "memory": "65536Ki"}, 30,
               "the pod's usage")
    assert set(usage) == set(vc.kubectl.names("nodes")) and "gpu-a100-1" not in usage
    for other in set(usage) - {node}:
        assert usage[other] == {"cpu": "0n", "memory": "0Ki"}
    assert "100m" in vc.kubectl("top", "nodes")
    shown = eventually(lambda: whole.api.get(f"{ROOT}/nodes")["items"], 30)
    assert [o["metadata"]["name"] for o in shown] == ["cpu-1", "cpu-2"] and shown[0]["usage"] == {
        "cpu": "3", "memory": "2Gi"}


def test_a_host_without_metrics_is_unavailable(tenant, host):
    vc, off = tenant("none", config=ON), tenant("off")
    status, headers, body = vc.api.raw("GET", f"{ROOT}/namespaces/default/pods")
    assert (status, body) == (503, b"service unavailable\n")
    assert "the server is currently unable to handle the request (get pods.metrics.k8s.io)" in \
        vc.kubectl.fails("top", "pods")
    assert vc.api.get("/apis/metrics.k8s.io")["preferredVersion"]["version"] == "v1beta1"
    assert [r["name"] for r in vc.api.get(ROOT)["resources"]] == ["nodes", "pods"]
    assert "Metrics API not available" in off.kubectl.fails("top", "pods")
    assert off.api.raw("GET", "/apis/metrics.k8s.io")[0] == 404


def deployment(replicas=1):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "d"}}, "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}}}}


def hpa(**spec):
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                     "minReplicas": 1, "maxReplicas": 5,
                     "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {
                         "type": "Utilization", "averageUtilization": 50}}}],
                     "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}, **spec}}


def condition(vc, kind):
    return next(c for c in vc.kubectl.json("get", "hpa", "h")["status"]["conditions"] if c["type"] == kind)


def test_an_autoscaler_follows_the_host(tenant, metrics):
    vc = tenant("scales", config=ON)
    vc.kubectl.apply(deployment())
    metrics.usage = lambda p: {"c": ("150m", "64Mi")}
    vc.kubectl.apply(hpa())
    scale = "/apis/apps/v1/namespaces/default/deployments/d/scale"
    eventually(lambda: vc.api.get(scale)["spec"]["replicas"] == 5, 120, "150 % of 100m where 50 % is wanted")
    eventually(lambda: condition(vc, "ScalingActive")["reason"] == "ValidMetricFound", 60)
    now = eventually(lambda: vc.kubectl.json("get", "hpa", "h")["status"]["currentMetrics"], 60)
    assert now[0]["resource"]["current"]["averageUtilization"] == 150
    metrics.usage = lambda p: {"c": ("10m", "64Mi")}
    eventually(lambda: vc.api.get(scale)["spec"]["replicas"] == 1, 120, "the way down")


def test_an_autoscaler_says_that_nothing_is_measured(tenant):
    vc = tenant("blind", config=ON)
    vc.kubectl.apply(deployment())
    vc.kubectl.apply(hpa())
    eventually(lambda: condition(vc, "ScalingActive")["reason"] == "FailedGetResourceMetric", 60, also=(StopIteration, KeyError))
    assert condition(vc, "ScalingActive")["message"] == (
        "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for "
        "resource cpu: unable to fetch metrics from resource metrics API: the server is currently unable to handle the "
        "request (get pods.metrics.k8s.io)")
