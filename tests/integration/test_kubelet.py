# SPDX-License-Identifier: Apache-2.0
"""`sync.kubelets: own`: what a tenant reads of a node's kubelet is of its own pods; without it nothing is."""
import json
import os

import pytest

from testenv import eventually
from testenv.api import ApiError
from testenv.kubelet import Kubelet

from test_tenant import host_pod, pod, running

ON = {"sync": {"kubelets": "own"}}
SERVED = ["stats/summary", "pods", "pods/", "runningpods/", "runningpods", "metrics", "metrics/resource", "metrics/cadvisor",
          "metrics/probes", "healthz"]
REFUSED = {"configz": "the configuration of a node", "logs/": "the logs of a node", "logs/syslog": "the logs of a node",
           "containerLogs/default/web/main": "pods/log", "exec/default/web/main?command=id": "pods/exec",
           "run/default/web/main?cmd=id": "pods/exec", "attach/x": "pods/attach", "portForward/x": "pods/portforward",
           "debug/pprof/": "only its statistics", "": "only its statistics", "stats/summary/x": "only its statistics",
           "checkpoint/default/web/main": "only its statistics", "metrics/../configz": "dot segments", "podsx": "only its"}


@pytest.fixture
def kubelet(host, workdir):
    made = Kubelet(host, ["cpu-1", "cpu-2"], os.path.join(workdir, "kubelet"))
    yield made.start()
    made.stop()


def path(vc, rest, node=None):
    node = node or vc.api.get("/api/v1/namespaces/default/pods/web")["spec"]["nodeName"]
    return f"/api/v1/nodes/{node}/proxy/{rest}"


def read(vc, rest):
    code, headers, data = vc.api.raw("GET", path(vc, rest))
    assert code == 200, (rest, code, data)
    return headers["content-type"], data.decode()


@pytest.fixture
def teams(tenant, kubelet):
    """Two tenants with a pod `web` each, that of the second with another container as well; a pod of no tenant beside it."""
    alpha, beta = tenant("alpha", config=ON), tenant("beta", config=ON)
    for vc, name in ((alpha, "web"), (beta, "web"), (beta, "secret-of-beta")):
        vc.kubectl.apply(pod(name))
    for vc in (alpha, beta):
        running(vc.kubectl, "web")
    running(beta.kubectl, "secret-of-beta")
    alpha.host.api.post(f"/api/v1/namespaces/{alpha.namespace}/serviceaccounts", {"metadata": {"name": "admins"}})
    alpha.host.api.post(f"/api/v1/namespaces/{alpha.namespace}/pods", {
        "metadata": {"name": "of-the-admin"}, "spec": {"serviceAccountName": "admins", "nodeName": "cpu-1",
                                                      "containers": [{"name": "main", "image": "a:1"}]}})
    return alpha, beta


def test_only_own_pods_are_shown(teams, kubelet):
    alpha, beta = teams
    own = alpha.api.get("/api/v1/namespaces/default/pods/web")
    eventually(lambda: json.loads(read(alpha, "pods")[1])["items"], 30, "the pod on record")
    theirs = [p["metadata"] for p in beta.host_pods()]
    mine = host_pod(alpha, "web")["metadata"]
    for rest in SERVED:
        kind, text = read(alpha, rest)
        assert kind.startswith("application/json" if rest.startswith(("pods", "runningpods", "stats")) else "text/plain"), rest
        for hidden in (beta.namespace, alpha.namespace, "of-the-admin", "secret-of-beta", "987654321", "kubepods", mine["name"], mine["uid"],
                       *(m["name"] for m in theirs), *(m["uid"] for m in theirs)):
            assert hidden not in text, (rest, hidden)
    assert [p["metadata"]["uid"] for p in json.loads(read(alpha, "pods")[1])["items"]] == [own["metadata"]["uid"]]
    reference = {k: own["metadata"][k] for k in ("name", "namespace", "uid")}
    running_ = json.loads(read(alpha, "runningpods/")[1])["items"]
    assert [(p["metadata"], [c["name"] for c in p["spec"]["containers"]]) for p in running_] == [(reference, ["main"])]
    stats = json.loads(read(alpha, "stats/summary")[1])
    assert list(stats["node"]) == ["nodeName"] and [p["podRef"] for p in stats["pods"]] == [reference]
    assert stats["pods"][0]["containers"] == [{"name": "main", "cpu": stats["pods"][0]["cpu"], "rootfs": {"usedBytes": 1}}]
    assert read(alpha, "metrics/resource")[1].splitlines() == [
        "# HELP container_cpu_usage_seconds_total [STABLE] x", "# TYPE container_cpu_usage_seconds_total counter",
        'container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 1.5 1700000000000']
    assert read(alpha, "metrics/cadvisor")[1] == \
        'container_memory_usage_bytes{image="a:1",name="c",container="main",namespace="default",pod="web"} 5\n'
    assert read(alpha, "metrics/probes")[1] == \
        f'prober_probe_total{{namespace="default",pod="web",pod_uid="{own["metadata"]["uid"]}",result="successful"}} 2\n'
    assert read(alpha, "metrics")[1] == "" and read(alpha, "healthz")[1] == "ok"
    assert len(json.loads(read(beta, "stats/summary")[1])["pods"]) == 2


def test_what_is_refused(teams, kubelet):
    alpha, _ = teams
    read(alpha, "healthz")
    kubelet.requests.clear()
    for rest, why in REFUSED.items():
        code, _, data = alpha.api.raw("GET", path(alpha, rest))
        assert code in (400, 403) and why in json.loads(data)["message"], (rest, data)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert alpha.api.raw(method, path(alpha, "stats/summary"), {})[0] in (403, 415), method
    code, _, _ = alpha.api.raw("GET", path(alpha, "pods"), headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert code == 200 and kubelet.requests == ["GET /pods"]
    node = alpha.api.get("/api/v1/namespaces/default/pods/web")["spec"]["nodeName"]
    for name in (f"https:{node}:10250", f"{node}:10250"):
        assert alpha.api.raw("GET", f"/api/v1/nodes/{name}/proxy/healthz")[0] in (403, 404)
    assert alpha.api.raw("GET", "/api/v1/nodes/no-such/proxy/healthz")[0] == 404


def test_a_kubelet_that_misbehaves(teams, kubelet):
    alpha, _ = teams
    for body, kind in ((b"{", "application/json"), (b"[]", "application/json"), (b"x" * (17 << 20), "application/json")):
        kubelet.answers["/stats/summary"] = (200, kind, body)
        with pytest.raises(ApiError) as e:
            alpha.api.get(path(alpha, "stats/summary"))
        assert e.value.code == 503 and "gave no answer that can be shown" in str(e.value)
    kubelet.answers["/pods"] = (500, "text/plain", b"dial tcp 10.1.2.3: refused")
    code, _, data = alpha.api.raw("GET", path(alpha, "pods"))
    assert code == 503 and b"10.1.2.3" not in data
    kubelet.answers["/healthz"] = (500, "text/plain", b"syncloop failed")
    assert alpha.api.raw("GET", path(alpha, "healthz"))[::2] == (500, b"syncloop failed")
    kubelet.answers["/metrics/cadvisor"] = (200, "text/plain", b"m{" + b"x" * 100000 + b"\n" + b"\xff\x00{}\n" * 1000)
    assert read(alpha, "metrics/cadvisor")[1] == ""


def test_off_by_default(tenant, kubelet):
    vc = tenant("closed")
    vc.kubectl.apply(pod("web"))
    running(vc.kubectl, "web")
    for rest in SERVED:
        code, _, data = vc.api.raw("GET", path(vc, rest))
        assert code == 403 and b"belongs to the host cluster" in data
    assert kubelet.requests == []
