# SPDX-License-Identifier: Apache-2.0
"""An extension API server in this process, at the cluster IP of its Service (webhook.address): it lets in whoever has a
certificate of the front proxy that ConfigMap extension-apiserver-authentication names, as k8s.io/apiserver does."""
import contextlib
import http.server
import json
import os
import socket
import threading
import urllib.parse

from .https import TlsServer
from .process import Port
from .wait import eventually
from .webhook import address, ca_bundle

TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class Extension:
    """Serves `group`/v1: gauges (namespaced, with a subresource) and meters. `seen` has every request but discovery."""

    def __init__(self, api, pki, directory, namespace, group="ext.example.com", node=None):
        self.api, self.pki, self.ns, self.group, self.port = api, pki, namespace, group, Port()
        self.path = f"/apis/{group}/v1"
        self.seen, self.discoveries, self.release = [], 0, threading.Event()
        self.directory, self.node, self._server, self.connections = directory, node, None, []
        self.cert = pki.issue(f"ext-{namespace}", "/CN=ext", (f"ext.{namespace}.svc",))
        self.stack = contextlib.ExitStack()
        api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})

    # --- objects --------------------------------------------------------------------------------

    def register(self, **over):
        spec = {"group": self.group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "caBundle": ca_bundle(self.pki), "service": {"namespace": self.ns, "name": "ext", "port": self.port.number}}
        return self.api.post(SERVICES, {"metadata": {"name": f"v1.{self.group}"}, "spec": {**spec, **over}})

    def service(self, **over):
        spec = {"selector": {"app": "ext"}, "ports": [{"name": "api", "port": self.port.number}], **over}
        made = self.api.post(f"/api/v1/namespaces/{self.ns}/services", {"metadata": {"name": "ext"}, "spec": spec})
        self.ip = made["spec"]["clusterIP"]
        self.stack.enter_context(address(self.ip))

    def pod(self):
        spec = {"containers": [{"name": "c", "image": "ext"}], **({"nodeName": self.node} if self.node else {})}
        self.api.post(f"/api/v1/namespaces/{self.ns}/pods", {"metadata": {"name": "ext", "labels": {"app": "ext"}}, "spec": spec})

    def condition(self):
        """(status, reason, message) of Available; without what differs between two servers."""
        found = self.api.get(f"{SERVICES}/v1.{self.group}").get("status", {}).get("conditions", [])
        assert len(found) <= 1
        return tuple(self.plain(found[0].get(k, "")) for k in ("status", "reason", "message")) if found else None

    def plain(self, text):
        return text.replace(str(self.port.number), "PORT").replace(getattr(self, "ip", "no address"), "ADDRESS")

    def becomes(self, reason):
        eventually(lambda: (self.condition() or ("", ""))[1] == reason, 90, f"the condition {reason}")
        return self.condition()

    def serve(self):
        """All of it, until it is available."""
        self.service()
        self.pod()
        self.start()
        self.register()
        self.becomes("Passed")
        eventually(lambda: self.api.raw("GET", f"{self.path}/namespaces/{self.ns}/gauges")[0] == 200, 30, "it to be served")
        self.seen.clear()
        return self

    # --- the server -----------------------------------------------------------------------------

    def start(self):
        trust = eventually(lambda: self.api.get(TRUST)["data"], 30, "what extension API servers trust")
        ca = os.path.join(self.directory, f"proxy-ca-{self.ns}.crt")
        with open(ca, "w", encoding="ascii") as f:
            f.write(trust["requestheader-client-ca-file"])
        assert trust["client-ca-file"]
        self.names = json.loads(trust["requestheader-allowed-names"])
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.connections.append(self.connection)

            def answer(self):
                outer.answer(self)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

            def say(self, status, tree, headers=()):
                data = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def piece(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def log_message(self, *args):
                pass

        self._server = TlsServer(self.cert, (self.ip, self.port.number), Handler, trusted=ca)

    def away(self):
        if self._server:
            self._server.stop()
        self._server = None
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    def stop(self):
        self.release.set()
        self.away()
        self.api.raw("DELETE", f"{SERVICES}/v1.{self.group}")
        self.stack.close()
        self.port.close()

    def resources(self):
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{self.group}/v1", "resources": [
            {"name": "gauges", "singularName": "gauge", "namespaced": True, "kind": "Gauge", "shortNames": ["gg"],
             "categories": ["all"], "verbs": ["create", "delete", "get", "list", "watch"]},
            {"name": "gauges/reset", "singularName": "", "namespaced": True, "group": "other.example.com", "version": "v2",
             "kind": "Reset", "verbs": ["create"]},
            {"name": "meters/raw", "singularName": "", "namespaced": False, "kind": "Meter", "verbs": ["get"]}]}

    def gauge(self, name="one"):
        return {"kind": "Gauge", "apiVersion": f"{self.group}/v1", "metadata": {
            "name": name, "namespace": self.ns, "creationTimestamp": "2026-01-01T00:00:00Z"}, "value": 7}

    def user(self, handler):
        return {k.lower(): handler.headers.get_all(k) for k in handler.headers.keys() if k.lower().startswith("x-remote-")}

    def answer(self, handler):
        names = [v for rdn in handler.connection.getpeercert()["subject"] for k, v in rdn if k == "commonName"]
        assert not self.names or names[0] in self.names, names
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        path, _, query = handler.path.partition("?")
        if path == self.path:
            self.discoveries += 1
            handler.say(200, self.resources())
            return
        if not path.startswith(self.path):
            handler.say(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"})
            return
        self.seen.append({"method": handler.command, "path": handler.path, "headers": {k.lower(): v for k, v in handler.headers.items()}, "body": body.decode(),
                          "user": self.user(handler)})
        self.serve_path(handler, path, urllib.parse.parse_qs(query), body)

    def serve_path(self, handler, path, query, body):
        last = path.rsplit("/", 1)[1]
        if query.get("watch"):
            self.watch(handler)
        elif last == "gauges" and handler.command == "GET":
            handler.say(200, {"kind": "GaugeList", "apiVersion": f"{self.group}/v1", "metadata": {"resourceVersion": "5"},
                              "items": [self.gauge()] if f"/namespaces/{self.ns}/" in path else []}, [("X-Mine", "yes"), ("Warning", '299 - "of the extension"')])
        elif last == "teapot":
            handler.say(418, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 418, "message": "short and stout"})
        elif last == "hang":
            self.release.wait(30)
            handler.say(200, self.gauge())
        elif last == "broken":
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b"{")
            handler.close_connection = True
        elif last == "large":
            handler.say(200, b"[" + b"1," * (4 << 20) + b"1]")
        elif handler.command in ("POST", "PUT", "PATCH"):
            handler.say(201 if handler.command == "POST" else 200, json.loads(body))
        else:
            handler.say(200, self.gauge(last))

    def watch(self, handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.piece(json.dumps({"type": "ADDED", "object": self.gauge()}).encode() + b"\n")
        self.release.wait(60)
        handler.piece(json.dumps({"type": "DELETED", "object": self.gauge()}).encode() + b"\n")
        handler.piece(b"")
