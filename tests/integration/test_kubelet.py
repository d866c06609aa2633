# SPDX-License-Identifier: Apache-2.0
"""`sync.kubelets: own`: what a tenant reads of a node's kubelet is of its own pods; without it nothing is."""
import concurrent.futures
import gzip
import http.client
import json
import os
import socket
import time

import pytest

from testenv import Api, eventually
from testenv.kubelet import Kubelet
from testenv.pki import derive_kubeconfig

from test_tenant import host_pod, pod, running

ON = {"sync": {"kubelets": "own"}}
SERVED = ["stats/summary", "pods", "pods/", "runningpods/", "runningpods", "metrics", "metrics/resource", "metrics/cadvisor",
          "metrics/probes", "healthz"]
REFUSED = {"configz": "the configuration of a node", "logs/": "the logs of a node", "logs/syslog": "the logs of a node",
           "exec/default/web/main?command=id": "pods/exec",
           "run/default/web/main?cmd=id": "pods/exec", "attach/x": "pods/attach", "portForward/x": "pods/portforward",
           "debug/pprof/": "only its statistics", "": "only its statistics", "stats/summary/x": "only its statistics",
           "checkpoint/default/web/main": "only its statistics", "metrics/../configz": "dot segments", "podsx": "only its",
           "metrics/%2e%2e/configz": "dot segments", "%2e%2e%2fpods": "dot segments", "metrics%2f..%2fconfigz": "dot segments",
           "pods%5c": "dot segments", "pods%00": "dot segments", "%70ods": "only its", "stats%2fsummary": "only its", "pods%2f": "only its",
           "pods//": "only its", "/pods": "only its", "PODS": "only its", "exec%2fdefault/web/main": "only its",
           "pods%3fx": "only its", "pods;x=y": "only its"}


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


def test_the_log_of_a_container(teams, kubelet):
    """/containerLogs of a node is the log of a pod of the tenant's on that node, and of nothing else."""
    alpha, beta = teams
    mine, theirs = host_pod(alpha, "web")["metadata"]["name"], host_pod(beta, "secret-of-beta")["metadata"]["name"]
    kubelet.answers[f"/containerLogs/{alpha.namespace}/{mine}/main"] = 200, "text/plain", b"a line\n"
    kubelet.requests.clear()
    code, _, data = alpha.api.raw("GET", path(alpha, "containerLogs/default/web/main"), query={"tailLines": "1", "container": "x", "x": "y"})
    assert (code, data) == (200, b"a line\n")
    assert kubelet.requests == [f"GET /containerLogs/{alpha.namespace}/{mine}/main?tailLines=1"]
    node = alpha.api.get("/api/v1/namespaces/default/pods/web")["spec"]["nodeName"]
    other = next(n["metadata"]["name"] for n in alpha.api.get("/api/v1/nodes")["items"] if n["metadata"]["name"] != node)
    refused = {"containerLogs/default/secret-of-beta/main": 404, f"containerLogs/{beta.namespace}/{theirs}/main": 404,
               f"containerLogs/{alpha.namespace}/{mine}/main": 404, f"containerLogs/{alpha.namespace}/of-the-admin/main": 404,
               "containerLogs/default/web/none": 400, "containerLogs/default/web": 404, "containerLogs/default/web/main/x": 403,
               "containerLogs/default%2fweb/main/x": 404, "containerLogs": 403, "containerLogs/default/web/main?tailLines=x": 400}
    for rest, wanted in refused.items():
        assert alpha.api.raw("GET", path(alpha, rest))[0] == wanted, rest
    assert alpha.api.raw("GET", path(alpha, "containerLogs/default/web/main", other))[0] == 404
    assert alpha.api.raw("DELETE", path(alpha, "containerLogs/default/web/main"))[0] in (403, 405)
    assert len(kubelet.requests) == 1


def test_what_is_refused(teams, kubelet):
    alpha, _ = teams
    read(alpha, "healthz")
    kubelet.requests.clear()
    for rest, why in REFUSED.items():
        code, _, data = alpha.api.raw("GET", path(alpha, rest))
        assert code in (400, 403) and why in json.loads(data)["message"], (rest, data)
    for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"):
        assert alpha.api.raw(method, path(alpha, "stats/summary"), {})[0] in (403, 405, 415), method
    assert kubelet.requests == []
    code, _, _ = alpha.api.raw("GET", path(alpha, "pods"), b"a body", headers={
        "Connection": "Upgrade", "Upgrade": "websocket", "X-Mine": "1", "Accept-Encoding": "br"}, query={
            "command": "id", "only_cpu_and_memory": "true"})
    assert code == 200 and kubelet.headers.keys().isdisjoint({"x-mine", "upgrade", "content-length", "transfer-encoding", "cookie"})
    assert kubelet.headers.get("accept-encoding") != "br"
    assert alpha.api.raw("GET", path(alpha, "stats/summary"), query={"x": "1", "only_cpu_and_memory": "true"})[0] == 200
    assert kubelet.requests[-2:] == ["GET /pods", "GET /stats/summary?only_cpu_and_memory=true"]
    node = alpha.api.get("/api/v1/namespaces/default/pods/web")["spec"]["nodeName"]
    for name in (f"https:{node}:10250", f"{node}:10250"):
        assert alpha.api.raw("GET", f"/api/v1/nodes/{name}/proxy/healthz")[0] in (403, 404)
    assert alpha.api.raw("GET", "/api/v1/nodes/no-such/proxy/healthz")[0] == 404


def not_shown(vc, rest, *hidden):
    code, _, data = vc.api.raw("GET", path(vc, rest))
    assert code == 503 and b"gave no answer that can be shown" in data, (rest, code, data)
    assert not any(h in data for h in hidden), data


def drip(handler):
    """Bytes without end, each in time."""
    handler.send_response(200)
    handler.send_header("content-type", "text/plain")
    handler.end_headers()
    while True:
        handler.wfile.write(b"m 1\n")
        time.sleep(0.2)


def hang(handler):
    handler.rfile.read()


def test_a_kubelet_that_misbehaves(teams, kubelet):
    alpha, _ = teams
    secret, json_type = b"secret-of-beta", "application/json"
    deep, wide = b'{"node":' + b"[" * 1000 + b"]" * 1000 + b"}", b'{"items":[' + b"1," * (2 << 20) + b"1]}"
    for rest, body in (("stats/summary", b"{"), ("stats/summary", b"[]"), ("stats/summary", b"x" * (17 << 20)), ("stats/summary", deep),
                       ("pods", wide), ("pods", b"\xff"), ("runningpods/", b'{"items":{}}'), ("healthz", b"x" * 5000)):
        kubelet.answers["/" + rest] = (200, json_type if rest != "healthz" else "text/plain", body)
        not_shown(alpha, rest)
    whole = json.dumps({"items": [], "x": secret.decode()}).encode()
    for answer in ((500, "text/plain", b"dial tcp 10.1.2.3: refused"), (201, json_type, secret), (203, "text/plain", secret),
                   (204, json_type, b""), (206, json_type, whole), (404, "text/plain", secret), (401, "text/plain", secret),
                   (200, "text/html", whole), (200, "application/jsonx", whole), (200, json_type, gzip.compress(whole), ("content-encoding", "gzip")),
                   (200, json_type, whole, ("content-encoding", "br")),
                   *((code, json_type, secret, ("location", f"https://{kubelet.address}:1/configz")) for code in (301, 302, 307, 308))):
        kubelet.answers["/pods"] = answer
        code, headers, data = alpha.api.raw("GET", path(alpha, "pods"))
        assert (code == 503 or answer[0] == 200) and secret not in data and b"10.1.2.3" not in data, (answer, code, data)
        assert "location" not in headers and "content-encoding" not in headers, (answer, headers.items())
    assert not any("configz" in r for r in kubelet.requests)
    for answer in ((500, "text/plain", b"[-]syncloop on secret-of-beta failed"), (200, "text/plain", secret)):
        kubelet.answers["/healthz"] = answer
        code, _, data = alpha.api.raw("GET", path(alpha, "healthz"))
        assert (code, data) == (answer[0], b"ok" if answer[0] == 200 else b"healthz check failed\n")
    kubelet.answers["/healthz"] = (500, json_type, b'{"kind":"Status","message":"no address of secret-of-beta"}')
    not_shown(alpha, "healthz", secret)
    log = alpha.process.tail(400)  # the admin's
    assert 'proxy/pods status=500 answer="dial tcp 10.1.2.3: refused"' in log and "proxy/stats/summary: its answer is cut off" in log
    kubelet.answers["/metrics/cadvisor"] = (200, "text/plain", b"m{" + b"x" * 100000 + b"\n" + b"\xff\x00{}\n" * 1000)
    assert read(alpha, "metrics/cadvisor")[1] == ""


def test_a_kubelet_without_an_end(teams, kubelet):
    """A deadline for the whole answer, and a limit of how many are open: a kubelet that says nothing, and one that never ends."""
    alpha, _ = teams
    kubelet.answers = {"/pods": hang, "/stats/summary": hang, "/metrics": drip}
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        def ask(rest):
            return pool.submit(alpha.api.clone().raw, "GET", path(alpha, rest))

        metrics, summary = ask("metrics"), ask("stats/summary")
        eventually(lambda: {"GET /metrics", "GET /stats/summary"} <= set(kubelet.requests), 20, "both to be open")
        answers = [f.result() for f in [ask("pods") for _ in range(48)]]
        with pytest.raises((OSError, http.client.HTTPException)):
            metrics.result()
        answers.append(summary.result())
    late = [data for code, _, data in answers if code == 503 and b"no answer within the deadline" in data]
    refused = [h["retry-after"] for code, h, data in answers if code == 429 and b"too many kubelets are read at once" in data]
    assert len(late) <= 31 and late and len(refused) >= 8 and set(refused) == {"1"}, [a[0] for a in answers]
    assert 25 < time.monotonic() - began < 60
    assert read(alpha, "healthz")[1] == "ok"


def test_off_by_default(tenant, kubelet):
    vc = tenant("closed")
    vc.kubectl.apply(pod("web"))
    running(vc.kubectl, "web")
    for rest in SERVED:
        code, _, data = vc.api.raw("GET", path(vc, rest))
        assert code == 403 and b"belongs to the host cluster" in data
    assert kubelet.requests == []


def addressed(host, tenant, name, services):
    """A tenant with host Services as the chart makes them, and their addresses, which its nodes have as far as they go."""
    vc = tenant(name, config={"sync": {"kubelets": "own", "kubeletAddresses": services}})
    ips = [host.api.post(f"/api/v1/namespaces/{vc.namespace}/services", {
        "metadata": {"name": f"{name}-kubelet-{i}"}, "spec": {"ports": [{"name": "kubelet", "port": 10250}]}})
           ["spec"]["clusterIP"] for i in range(services)]
    vc.restart()
    count = len(eventually(lambda: vc.api.get("/api/v1/nodes")["items"], 60, "nodes"))
    eventually(lambda: len(addresses_of(vc)) == min(count, services), 60, "addresses of nodes")
    return vc, ips


def addresses_of(vc, port=10250):
    """{node: its InternalIP} of those that have one; every other address is a name."""
    out = {}
    for node in vc.api.get("/api/v1/nodes")["items"]:
        found = [a["address"] for a in node["status"].get("addresses", []) if a["type"] == "InternalIP"]
        assert len(found) <= 1
        if found:
            out[node["metadata"]["name"]] = found[0]
            assert node["status"].get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0) == port
    return out


def test_a_kubelet_at_the_address_of_its_node(tenant, kubelet, host, workdir):
    """As Prometheus and metrics-server reach it: the InternalIP, port 10250, a kubelet's own rights."""
    alpha, ips = addressed(host, tenant, "alpha", 4)
    beta = tenant("beta", config=ON)
    for vc, name in ((alpha, "web"), (beta, "web"), (beta, "secret-of-beta")):
        vc.kubectl.apply(pod(name))
        running(vc.kubectl, name)
    node = alpha.api.get("/api/v1/namespaces/default/pods/web")["spec"]["nodeName"]
    shown = addresses_of(alpha)
    assert set(shown.values()) < set(ips)
    assert not set(addresses_of(beta, port=0).values()) & set(ips)

    def at(api, rest, ip=shown[node], method="GET"):
        code, headers, data = api.raw(method, rest, headers={"Host": f"{ip}:10250"})
        return code, headers.get("content-type"), data.decode()

    eventually(lambda: json.loads(at(alpha.api, "/pods")[2])["items"], 30, "the pod on record")
    for rest in SERVED:
        code, kind, text = at(alpha.api, "/" + rest)
        assert (code, kind, text) == (200, *read(alpha, rest)), rest
        assert "secret-of-beta" not in text and beta.namespace not in text
    assert at(alpha.api, "/containerLogs/default/web/main")[0] != 404
    for rest in ("/api/v1/namespaces", "/configz", "/exec/default/web/main?command=id", "/"):
        assert at(alpha.api, rest)[0] == 403, rest
    assert at(alpha.api, "/run/default/web/main?cmd=id", method="POST")[0] == 403
    free = next(ip for ip in ips if ip not in shown.values())
    assert at(alpha.api, "/pods", free)[0] == 404  # the API itself: no node has this address
    assert at(beta.api, "/pods")[0] == 404

    # TLS: clients verify the address.
    for ip in ips:
        with socket.create_connection(("127.0.0.1", int(str(alpha.port)))) as raw, \
                alpha.api.tls.wrap_socket(raw, server_hostname=ip) as tls:
            assert tls.getpeercert()

    # A scraper has a kubelet's rights, and no others.
    k = alpha.kubectl
    k("create", "serviceaccount", "scraper")
    k("create", "clusterrole", "scraper", "--verb=get", "--resource=nodes/metrics")
    k("create", "clusterrolebinding", "scraper", "--clusterrole=scraper", "--serviceaccount=default:scraper")
    scraper = Api(derive_kubeconfig(os.path.join(workdir, "scraper.kubeconfig"), alpha.kubeconfig,
                                    token=k("create", "token", "scraper").strip()))
    eventually(lambda: at(scraper, "/metrics/resource")[0] == 200, 30, "the right")
    assert 'pod="web"' in at(scraper, "/metrics/cadvisor")[2]
    for rest in ("/stats/summary", "/pods", "/runningpods/", "/healthz", "/containerLogs/default/web/main", "/configz"):
        code, _, text = at(scraper, rest)
        assert code == 403 and "nodes" in text, (rest, text)
    assert scraper.raw("GET", path(alpha, "metrics"))[0] == 403
    k("patch", "clusterrole", "scraper", "--type=json", "-p", json.dumps([
        {"op": "add", "path": "/rules/0/resources/-", "value": "nodes/pods"}]))
    eventually(lambda: at(scraper, "/pods")[0] == 200, 30, "the right to pods")
    k("delete", "clusterrolebinding", "scraper")
    eventually(lambda: at(scraper, "/metrics/resource")[0] == 403, 30, "the right to end")

    # A node keeps its address.
    alpha.restart()
    eventually(lambda: addresses_of(alpha) == shown, 60, "the same addresses")


def test_more_nodes_than_addresses(tenant, host):
    """The second has no address, until the first is gone."""
    vc, ips = addressed(host, tenant, "few", 1)
    nodes = {n["metadata"]["name"] for n in vc.api.get("/api/v1/nodes")["items"]}
    (first, ip), = addresses_of(vc).items()
    assert [ip] == ips and len(nodes) > 1
    host.api.patch(f"/api/v1/nodes/{first}", {"metadata": {"labels": {"sublet.dev/pool": "others"}}})
    try:
        eventually(lambda: ip in addresses_of(vc).values() and first not in addresses_of(vc), 60, "the address of another node")
    finally:
        host.api.patch(f"/api/v1/nodes/{first}", {"metadata": {"labels": {"sublet.dev/pool": None}}})


def test_addresses_without_services(tenant, host):
    """No address of the host is shown instead."""
    vc = tenant("none", config={"sync": {"kubelets": "own", "kubeletAddresses": 2}})
    eventually(lambda: vc.api.get("/api/v1/nodes")["items"], 60, "nodes")
    assert addresses_of(vc) == {}
    assert "of 2 host Services none-kubelet-N" in vc.process.tail(1000)
