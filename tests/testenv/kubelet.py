# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the kubelets of some nodes of a host: kube-apiserver's proxy of those nodes leads to it.

kube-apiserver refuses to proxy to 127.0.0.0/8 ("address not allowed"), which simulated nodes have: these get another address
of this machine, and clients from elsewhere are refused.

Simulated nodes have no statistics. This one reports what a kubelet would of all pods on the host, so a reader who gets more
than its own has been shown too much.
"""
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading

from .pki import Pki

WHEN = "2026-01-01T00:00:00Z"


class Address:
    """One that is not 127.0.0.0/8, on this machine alone: on the loopback interface where root may put one there (of
    198.18.0.0/15, which is for tests), else the machine's own."""

    def __init__(self):
        self.added = None
        if os.geteuid() == 0:
            self.text = self.added = f"198.18.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"
            subprocess.run(["ip", "address", "replace", f"{self.added}/32", "dev", "lo"], check=True)
            return
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:  # connecting a datagram socket sends nothing
            s.connect(("192.0.2.254", 9))
            self.text = s.getsockname()[0]

    def close(self):
        if self.added:
            subprocess.run(["ip", "address", "delete", f"{self.added}/32", "dev", "lo"], check=True)
        self.added = None


class Kubelet:
    """start(), stop(). `requests` are the requests that arrived, `headers` those of the last; `answers` may replace the answer
    of a path: (code, type, bytes, *headers), or a function that writes it to the handler."""

    def __init__(self, host, nodes, directory):
        os.makedirs(directory, exist_ok=True)
        self.host, self.api, self.nodes = host, host.api.clone(), nodes
        self.cert = Pki(os.path.join(directory, "pki")).issue("kubelet", "/CN=kubelet", hosts=("localhost",))
        self._own = Address()
        self.address = self._own.text
        self.requests, self.headers, self.answers = [], {}, {}
        self._before, self._server, self._lock = {}, None, threading.Lock()

    def start(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer._answer(self)

            do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_GET

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def verify_request(self, request, client_address):
                return client_address[0] == outer.address

            def handle_error(self, request, client_address):
                pass  # clients may leave

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.cert)
        self._server = Server((self.address, 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        for node in self.nodes:
            status = self.host.api.get(f"/api/v1/nodes/{node}")["status"]
            self._before[node] = {k: status[k] for k in ("addresses", "daemonEndpoints")}
            self._point(node, {"addresses": [{"type": "InternalIP", "address": self.address}],
                               "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_address[1]}}})
        return self

    def stop(self):
        for node, status in self._before.items():
            self._point(node, status)
        if self._server:
            self._server.shutdown()
            self._server.server_close()
        self.api.close()
        self._own.close()

    def _point(self, node, status):
        self.host.api.patch(f"/api/v1/nodes/{node}/status", {"status": status})

    # --- answers --------------------------------------------------------------------------------

    def _answer(self, handler):
        self.requests.append(handler.command + " " + handler.path)
        self.headers = {k.lower(): v for k, v in handler.headers.items()}
        path = handler.path.split("?")[0]
        answer = self.answers.get(path)
        if callable(answer):
            answer(handler)
            return
        with self._lock:
            code, kind, body, *headers = answer or self._usual(path)
        handler.send_response(code)
        for name, value in [("content-type", kind), ("content-length", str(len(body))), *headers]:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def _usual(self, path):
        pods = self.api.get("/api/v1/pods")["items"]
        documents = {"/pods": lambda: {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods},
                     "/runningpods/": lambda: {"kind": "PodList", "apiVersion": "v1", "items": [running(p) for p in pods]},
                     "/stats/summary": lambda: summary(pods)}
        texts = {"/healthz": lambda: "ok", "/metrics/resource": lambda: resource(pods), "/metrics/cadvisor": lambda: cadvisor(pods),
                 "/metrics/probes": lambda: probes(pods), "/metrics": lambda: "rest_client_requests_total{host=\"10.0.0.1\"} 1\n"}
        if path in documents:
            return 200, "application/json", json.dumps(documents[path]()).encode()
        if path in texts:
            return 200, "text/plain; version=0.0.4", texts[path]().encode()
        return 200, "text/plain", b"what a node says to its admin alone"


def _ref(pod):
    return {k: pod["metadata"][k] for k in ("name", "namespace", "uid")}


def running(pod):
    return {"metadata": _ref(pod), "spec": {"containers": [{"name": c["name"], "image": "sha256:1"} for c in pod["spec"]["containers"]]}}


def summary(pods):
    cpu = {"time": WHEN, "usageNanoCores": 1000}
    return {"node": {"nodeName": "n", "cpu": {"time": WHEN, "usageNanoCores": 987654321}},
            "pods": [{"podRef": _ref(p), "cpu": cpu, "containers": [
                {"name": c["name"], "cpu": cpu, "rootfs": {"usedBytes": 1, "capacityBytes": 987654321}}
                for c in p["spec"]["containers"]]} for p in pods]}


def _labels(pod, container=None):
    ref = _ref(pod)
    return (f'container="{container}",' if container else "") + f'namespace="{ref["namespace"]}",pod="{ref["name"]}"'


def resource(pods):
    lines = ["# HELP container_cpu_usage_seconds_total [STABLE] x", "# TYPE container_cpu_usage_seconds_total counter"]
    lines += [f"container_cpu_usage_seconds_total{{{_labels(p, c['name'])}}} 1.5 1700000000000"
              for p in pods for c in p["spec"]["containers"]]
    return "\n".join([*lines, "# TYPE node_cpu_usage_seconds_total counter", "node_cpu_usage_seconds_total 987654321", ""])


def cadvisor(pods):
    lines = ['container_memory_usage_bytes{id="/",image="",name="",namespace="",pod=""} 987654321']
    lines += [f'container_memory_usage_bytes{{id="/kubepods/pod{p["metadata"]["uid"]}/c",image="a:1",name="c",'
              f'{_labels(p, c["name"])}}} 5' for p in pods for c in p["spec"]["containers"]]
    return "\n".join([*lines, ""])


def probes(pods):
    return "".join(f'prober_probe_total{{{_labels(p)},pod_uid="{p["metadata"]["uid"]}",result="successful"}} 2\n' for p in pods)
