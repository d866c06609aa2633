# SPDX-License-Identifier: Apache-2.0
"""A server of admission webhooks, at the cluster IP of a Service: no kube-proxy runs here, so the address is given to the
loopback interface for the time of a test."""
import base64
import contextlib
import http.server
import json
import subprocess
import threading

import pytest

from .https import TlsServer

PLUGIN = "/apis/admissionregistration.k8s.io/v1"


@contextlib.contextmanager
def address(ip):
    subprocess.run(["ip", "addr", "add", f"{ip}/32", "dev", "lo"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "addr", "del", f"{ip}/32", "dev", "lo"], check=True)


@pytest.fixture(scope="module")
def release():
    """Ends the wait of servers that hang, at the end of the module at the latest."""
    e = threading.Event()
    yield e
    e.set()


class WebhookServer:
    """answer(handler, path, review) -> the response of the review, without uid; None when it wrote an answer itself.

    `seen` has (path, request) of each review. Listens until stop()."""

    def __init__(self, cert, ip, port, answer):
        self.seen = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.split("?")[0]
                self.headers_seen = dict(self.headers)
                outer.seen.append((path, body["request"], self.headers_seen))
                response = answer(self, path, body)
                if response is not None:
                    self.say({**body, "request": None, "response": {"uid": body["request"]["uid"], **response}})

            def say(self, tree, status=200, headers=()):
                data = json.dumps(tree).encode() if not isinstance(tree, bytes) else tree
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self._server = TlsServer(cert, (ip, port), Handler)

    def of(self, path):
        return [request for p, request, _ in self.seen if p == path]

    def stop(self):
        self._server.stop()


def patch(*operations):
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def ca_bundle(pki):
    with open(pki.path("ca.crt"), "rb") as f:
        return base64.b64encode(f.read()).decode()


def rule(resources, operations=("CREATE", "UPDATE"), groups=("",), versions=("v1",), **over):
    return {"apiGroups": list(groups), "apiVersions": list(versions), "operations": list(operations),
            "resources": resources.split(), **over}
