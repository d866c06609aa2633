# SPDX-License-Identifier: Apache-2.0
"""What a kubelet serves, through a virtual cluster: logs, exec, attach, port-forward, as kubectl requests it.

The host is real up to its kube-apiserver; the simulated kubelet behind it reads logs from a file, runs
commands on this machine and echoes what is sent to a port.
"""
import base64
import contextlib
import json
import os
import socket

import pytest

from testenv.api import ApiError
from testenv.kubectl import echoed, end
from testenv.wait import eventually

from test_tenant import host_pod
from test_watch_socket import DONE, Socket, frame

STANDS = 8  # looks in a row, of a second at most each, that find the same


@pytest.fixture
def running(host, tenant):
    """A virtual cluster with a running pod `web` of two containers."""
    host.clear_log()
    vc = tenant("streams")
    eventually(lambda: vc.api.raw("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, 60, "the account of pods")
    vc.api.post("/api/v1/namespaces/default/pods", pod("web", "main", "side"))
    wait_running(vc, "web")
    return vc


def pod(name, *containers, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": c, "image": "example.com/x:1"} for c in containers], **spec}}


def wait_running(vc, name):
    eventually(lambda: vc.api.get(f"/api/v1/namespaces/default/pods/{name}")["status"].get("phase") == "Running",
               60, f"pod {name} to run")


def log_path(name="web", query="container=main"):
    return f"/api/v1/namespaces/default/pods/{name}/log?{query}"


def refused(vc, path, method="GET"):
    with pytest.raises(ApiError) as e:
        vc.api.request(method, path)
    return e.value


def test_logs(host, running):
    """Every parameter arrives; the output is the container's, not an object."""
    host.write_log("one\ntwo\nthree")
    kubectl = running.kubectl
    assert kubectl("logs", "web", "-c", "main").splitlines() == ["one", "two", "three"]
    assert kubectl("logs", "web", "-c", "side", "--tail=1").splitlines() == ["three"]
    stamped = kubectl("logs", "web", "-c", "main", "--timestamps", "--tail=1").split()
    assert stamped[0].startswith("20") and stamped[1] == "three"
    assert kubectl("logs", "web", "-c", "main", "--limit-bytes=5")[:5] == "one\nt"
    status, headers, body = raw_get(running, log_path(query="container=main&tailLines=1"))
    assert status == 200 and headers["content-type"] == "text/plain" and body == b"three\n"


# --- logs over a WebSocket: scripts in browsers read them so ---

SOCKETS = {
    "none": {}, "binary": {"Sec_WebSocket_Protocol": "binary.k8s.io"}, "base64": {"Sec_WebSocket_Protocol": "base64.binary.k8s.io"},
    "second": {"Sec_WebSocket_Protocol": "x, base64.binary.k8s.io, binary.k8s.io"}, "unknown": {"Sec_WebSocket_Protocol": "x"},
    "no origin": {"Origin": None}, "bad origin": {"Origin": "%zz"}, "no key": {"Sec_WebSocket_Key": None},
    "version": {"Sec_WebSocket_Version": "8"}, "upper case": {"Upgrade": "WebSocket", "Connection": "UPGRADE"},
}


def sides(host, vc, query):
    """The same log, of the tenant and of the host's own API server."""
    name = host_pod(vc, "web")["metadata"]["name"]
    return (vc.api, log_path(query=query)), (host.api, f"/api/v1/namespaces/{vc.namespace}/pods/{name}/log?{query}")


def messages(s):
    """(operations, the bytes of all messages, and the end) of a log that ends."""
    first, got = s.message(), [s.message()]
    assert first[1] == b""
    while got[-1][0] != DONE[0]:
        got.append(s.message())
    assert got.pop() == DONE and s.ended()
    text = b"".join(base64.b64decode(m[1]) if m[0] == 1 else m[1] for m in got)
    return {first[0], *(m[0] for m in got)}, text


def test_logs_over_a_websocket(host, running):
    text = "\n".join([*(f"line {i} " + "x" * 90 for i in range(200)), "the end"])
    host.write_log(text)
    for name, headers in SOCKETS.items():
        got = []
        for api, path in sides(host, running, "container=main"):
            s = Socket(api, path, **headers)
            shown = [s.headers.get(h) for h in ("upgrade", "sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-version")]
            got.append((s.status, shown, messages(s) if s.status == 101 else s.text))
            s.socket.close()
        assert got[0] == got[1], name
        if name in ("none", "binary", "base64", "second"):
            assert got[0][2] == ({1 if name in ("base64", "second") else 2}, text.encode() + b"\n"), name
    for query in ("container=none", "container=main&tailLines=x"):
        got = [(s.status, json.loads(s.text).get("reason")) for s in (Socket(*side) for side in sides(host, running, query))]
        assert got[0] == got[1], query


def test_a_followed_log_over_a_websocket(host, running):
    host.write_log("first")
    for api, path in sides(host, running, "container=main&follow=true&tailLines=1"):
        s = Socket(api, path, Sec_WebSocket_Protocol="base64.binary.k8s.io")
        assert s.message() == (1, b"") and base64.b64decode(s.message()[1]) == b"first\n"
        s.send(frame(9, b"ping"))
        assert s.message() == (10, b"ping")
        host.write_log("second")
        assert base64.b64decode(s.message()[1]) == b"second\n"
        s.send(frame(1, b"ignored") + frame(8, b"\x03\xe8"))
        assert s.message() == DONE and s.ended()
        host.clear_log()
        host.write_log("first")
    assert raw_get(running, log_path())[0] == 200


def test_log_refusals(host, running):
    """In upstream's words, before a request to the host."""
    e = refused(running, log_path(query=""))
    assert e.code == 400 and "a container name must be specified for pod web, choose one of: [main side]" in str(e)
    e = refused(running, log_path(query="container=no"))
    assert e.code == 400 and "container no is not valid for pod web" in str(e)
    e = refused(running, log_path("none"))
    assert e.code == 404 and 'pods "none" not found' in str(e)
    e = refused(running, log_path(query="container=main&tailLines=-1"))
    assert e.code == 422 and "tailLines" in str(e)
    e = refused(running, log_path(query="container=main&tailLines=x"))
    assert e.code == 400 and 'strconv.ParseInt: parsing "x": invalid syntax' in str(e)


def test_log_of_a_pod_that_waits(host, tenant, pools):
    """Not on the host: what a kubelet says of a container that has not started."""
    vc = tenant("waiting", pools)
    waits = pod("waits", "main", volumes=[{"name": "v", "configMap": {"name": "none"}}])
    vc.api.post("/api/v1/namespaces/default/pods", waits)
    e = eventually(lambda: refused(vc, log_path("waits")), 30, "a refusal")
    assert e.code == 400 and 'container "main" in pod "waits" is waiting to start: ContainerCreating' in str(e)


def test_nothing_of_the_host_is_told(host, running):
    """Refusals of the host carry the tenant's names."""
    host.clear_log()
    os.rename(host.container_log, host.container_log + ".away")
    try:
        e = refused(running, log_path())
        assert running.namespace not in str(e) and host_name(running, "web") not in str(e)
    finally:
        os.rename(host.container_log + ".away", host.container_log)


def test_follow(host, running):
    """Lines come as they are written; a client that leaves ends the host's request."""
    host.write_log("first")
    before = set(host_connections(running))
    p = running.kubectl.start("logs", "-f", "web", "-c", "main")
    try:
        assert p.stdout.readline() == b"first\n"
        host.write_log("second")
        assert p.stdout.readline() == b"second\n"
        made = set(host_connections(running)) - before
        assert made
    finally:
        end(p)
    eventually(lambda: made - set(host_connections(running)), 30, "the host's request to end")


def test_slow_reader_stops_the_host(host, running):
    """A client that reads nothing of a large log: what it has not read stays in the host's connection, unread. How
    much fits there is the kernel's choice, between 6 KB and 400 KB by how fast it was read before: that it stands, with
    something in it, is what shows that the reader stopped."""
    looks = []

    def stands():
        looks.append(max(host_queues(running)))
        return looks[-1] > 0 and len(looks) >= STANDS and len(set(looks[-STANDS:])) == 1

    for _ in range(40):
        host.write_log("\n".join(["x" * 1000] * 1000))
    with connect(running) as s:
        s.sendall(f"GET {log_path()} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        got = len(s.recv(1))
        eventually(stands, 60, "the host's connection to stand")
        assert raw_get(running, log_path(query="container=main&tailLines=1"))[0] == 200
        looks.clear()
        eventually(stands, 60, "it to stay so, whatever was read between")
        while block := s.recv(65536):
            got += len(block)
    assert got > 40_000_000


def test_exec(host, running):
    """kubectl speaks WebSockets; output, exit code, stdin."""
    kubectl = running.kubectl
    assert kubectl("exec", "web", "-c", "main", "--", "/bin/echo", "hello").strip() == "hello"
    code, _, err = kubectl.run("exec", "web", "-c", "main", "--", "/bin/sh", "-c", "echo no >&2; exit 7")
    assert code != 0 and "no" in err
    data = "a line\n" * 200_000  # the simulated kubelet never closes stdin: the command has to know its end
    count = f"/usr/bin/head -c {len(data)} | /usr/bin/wc -c"
    assert int(kubectl("exec", "-i", "web", "-c", "main", "--", "/bin/sh", "-c", count, stdin=data)) == len(data)


def test_exec_spdy(host, running):
    """The older protocol is the same tunnel."""
    code, out, err = running.kubectl.run("exec", "web", "-c", "main", "--", "/bin/echo", "spdy",
                                         env={"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"})
    assert code == 0 and out == "spdy\n", err


@pytest.mark.parametrize("websockets", ["true", "false"])
def test_port_forward(host, running, websockets):
    data = os.urandom(300_000)
    with running.kubectl.forwarded("pod/web", 8080, KUBECTL_PORT_FORWARD_WEBSOCKETS=websockets) as port:
        assert echoed(port, data) == data


def test_who_may(host, running):
    """The tenant's RBAC decides: `get` on pods/exec is not enough to act in a pod, nor is a log without pods/log."""
    running.kubectl("create", "role", "reader", "--verb=get", "--resource=pods,pods/exec")
    user = running.kubectl_as(running.service_account_kubeconfig("default", "reader"))
    running.kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader")
    assert "forbidden" in user.fails("exec", "web", "-c", "main", "--", "/bin/echo", "x").lower()
    assert 'cannot get resource "pods/log"' in user.fails("logs", "web", "-c", "main")


def test_escapes(host, running):
    """Nodes belong to the host; a proxied path cannot leave its pod."""
    node = running.api.get("/api/v1/nodes")["items"][0]["metadata"]["name"]
    for path in (f"/api/v1/nodes/{node}/proxy/", f"/api/v1/nodes/{node}/proxy/containerLogs/x/y/z"):
        assert refused(running, path).code == 403
    base = "/api/v1/namespaces/default/pods/web/proxy"
    for tail in ("/../../../secrets", "/%2e%2e/%2e%2e/secrets", "/a/..%2f..%2fx", "/a%5c..", "/x%0d%0ay"):
        status, _, body = raw_get(running, base + tail)
        assert status == 400 and b"dot segments" in body, tail
    status, _, body = raw_get(running, "/api/v1/namespaces/default/pods/ftp:web:21/proxy/")
    assert status == 400 and b"invalid pod request" in body


def test_service_proxy(host, running):
    """Goes to the host's Service; what the host says of it carries the tenant's name."""
    running.api.post("/api/v1/namespaces/default/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "empty"},
        "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]}})
    path = "/api/v1/namespaces/default/services/empty:80/proxy/x"
    e = eventually(lambda: refused(running, path) if "has not been read" not in str(refused(running, path)) else None,
                   30, "the host's answer")
    assert e.code == 503 and 'no endpoints available for service "empty"' in str(e)
    assert refused(running, "/api/v1/namespaces/default/services/none/proxy").code == 404
    code, _, body = running.api.raw("POST", path, b"x" * 100_000)
    assert code == 503 and b"no endpoints available" in body


def test_every_method_reaches_a_proxy(host, running):
    """HEAD and OPTIONS as well: they arrive at the host's Service, whose endpoints are what lacks, and RBAC asks for `get`
    of a HEAD and for the empty verb of OPTIONS, as the host's own does."""
    running.api.post("/api/v1/namespaces/default/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "bare"},
        "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]}})
    path = "/api/v1/namespaces/default/services/bare:80/proxy/x?y=1"
    eventually(lambda: b"no endpoints available" in running.api.raw("GET", path)[2], 30, "the host's answer")
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        code, _, body = running.api.raw(method, path, b"x" * 10_000 if method != "GET" else None)
        assert code == 503 and b'no endpoints available for service \\"bare' in body, (method, body)
    code, headers, body = running.api.raw("HEAD", path)
    assert code == 503 and body == b"" and headers["content-type"] == "application/json"
    assert running.api.raw("HEAD", path)[0] == 503  # the connection lives on
    code, _, body = running.api.raw("OPTIONS", path, b"x" * (4 << 20))
    assert code == 413, body
    running.kubectl("create", "role", "proxies", "--verb=get", "--resource=services/proxy")
    running.kubectl("create", "rolebinding", "proxies", "--role=proxies", "--user=eve")
    as_user = {"Impersonate-User": "eve"}
    assert running.api.raw("HEAD", path, headers=as_user)[0] == 503
    code, _, body = running.api.raw("OPTIONS", path, headers=as_user)
    assert code == 403 and 'cannot  resource "services/proxy"' in json.loads(body)["message"]
    running.api.patch("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/proxies", {"rules": [
        {"apiGroups": [""], "resources": ["services/proxy"], "verbs": [""]}]})
    eventually(lambda: running.api.raw("OPTIONS", path, headers=as_user)[0] == 503, 30, "the Role")
    assert running.api.raw("HEAD", path, headers=as_user)[0] == 403


def test_host_away(host, running):
    """503 at once, and the answer when it is back."""
    host.write_log("here")
    host.stop_component("kube-apiserver")
    try:
        assert refused(running, log_path()).code == 503
    finally:
        host.start_component("kube-apiserver")
    eventually(lambda: raw_get(running, log_path())[0] == 200, 60, "logs again")


def test_stop_with_streams_open(host, running):
    """A stopping server cuts them and ends with 0."""
    p = running.kubectl.start("logs", "-f", "web", "-c", "main")
    host.write_log("x")
    assert p.stdout.readline() == b"x\n"
    running.stop()
    assert p.wait(180) is not None
    p.stdout.close()


# --- helpers ------------------------------------------------------------------------------------------


def host_name(vc, name):
    return next(p["metadata"]["name"] for p in vc.host_pods() if p["metadata"]["annotations"]["sublet.dev/name"] == name)


def host_connections(vc):
    """Of each TCP connection of the process to the host's API, the bytes it has not read: {inode: bytes}."""
    port = vc.host.ports["kube-apiserver"].number
    fds = f"/proc/{vc.pid}/fd"
    open_files = set()
    for fd in os.listdir(fds):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            open_files.add(os.readlink(os.path.join(fds, fd)))
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return {r[9]: int(r[4].split(":")[1], 16) for r in rows
            if r[3] == "01" and int(r[2].split(":")[1], 16) == port and f"socket:[{r[9]}]" in open_files}


def host_queues(vc):
    return list(host_connections(vc).values())


def raw_get(vc, path):
    """(status, headers, body) whatever it is; the path goes out as it stands here."""
    return vc.api.raw("GET", path)


def connect(vc):
    """A TLS connection of its own, as the tenant's admin."""
    sock = socket.create_connection((vc.api.server.hostname, vc.api.server.port), timeout=180)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    return vc.api.tls.wrap_socket(sock, server_hostname=vc.api.server.hostname)
