# SPDX-License-Identifier: Apache-2.0
"""Watches over WebSockets, as consoles in browsers open them, beside a real API server."""
import base64
import json
import socket
import ssl
import struct

import pytest
import yaml

from testenv.api import Api

NS = "/api/v1/namespaces/default"
WATCH = NS + "/configmaps?watch=1&fieldSelector=metadata.name%3Dsock&timeoutSeconds="
QUIET = NS + "/configmaps?watch=1&timeoutSeconds=300&fieldSelector=metadata.name%3Dnothing"
ASK = {"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
       "Sec-WebSocket-Version": "13", "Origin": "https://console.example"}
DONE = (8, b"\x03\xe8")


class Socket:
    """The handshake's answer (status, headers, body), then messages."""

    def __init__(self, api, path=QUIET, token=None, **headers):
        tls = Api(api.kubeconfig).tls
        if token:
            tls = ssl.create_default_context(cadata=_ca(api))
        plain = socket.create_connection((api.server.hostname, api.server.port), 180)
        self.socket = tls.wrap_socket(plain, server_hostname=api.server.hostname)
        asked = {k: v for k, v in {**ASK, **{k.replace("_", "-"): v for k, v in headers.items()}}.items() if v is not None}
        self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n" + "".join(f"{k}: {v}\r\n" for k, v in asked.items()) + "\r\n")
        self._bytes = b""
        while b"\r\n\r\n" not in self._bytes:
            self._more()
        head, _, self._bytes = self._bytes.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in rest)}
        length = int(self.headers.get("content-length", 0))
        while self.status != 101 and ("content-length" not in self.headers or len(self._bytes) < length):
            if not self._more(end=True):
                break
        self.text = self._bytes if self.status != 101 else b""

    def _more(self, end=False):
        part = self.socket.recv(65536)
        assert part or end, "the server closed"
        self._bytes += part
        return part

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)

    def _take(self, n):
        while len(self._bytes) < n:
            self._more()
        out, self._bytes = self._bytes[:n], self._bytes[n:]
        return out

    def message(self):
        """(operation, payload) of one unmasked frame."""
        first, n = self._take(2)
        assert first & 0x80 and not n & 0x80
        if n >= 126:
            n = struct.unpack(">H" if n == 126 else ">Q", self._take(2 if n == 126 else 8))[0]
        return first & 15, self._take(n)

    def ended(self):
        return not self._bytes and self.socket.recv(1) == b""


def _ca(api):
    with open(api.kubeconfig, encoding="utf-8") as f:
        config = yaml.safe_load(f)
    return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()


def frame(operation, payload=b"", masked=True, length=None):
    n = len(payload) if length is None else length
    size = bytes((n,)) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
    if not masked:
        return bytes((0x80 | operation,)) + size + payload
    mask = b"\x01\x80\xff\x7e"
    return bytes((0x80 | operation, 0x80 | size[0])) + size[1:] + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(payload))


@pytest.fixture
def vc(tenant):
    return tenant("sockets", on=False)


@pytest.fixture
def pair(vc, real_host):
    for api in (vc.api, real_host.api):
        api.raw("POST", NS + "/configmaps", {"metadata": {"name": "sock"}, "data": {"k": "x" * 70000}})
    return vc.api, real_host.api


HANDSHAKES = {
    "plain": {}, "one protocol": {"Sec_WebSocket_Protocol": "base64.binary.k8s.io"}, "unknown": {"Sec_WebSocket_Protocol": "x"},
    "two protocols": {"Sec_WebSocket_Protocol": "a, b"}, "version": {"Sec_WebSocket_Version": "8"},
    "no version": {"Sec_WebSocket_Version": None}, "no key": {"Sec_WebSocket_Key": None}, "no origin": {"Origin": None},
    "null": {"Origin": "null"}, "bad origin": {"Origin": "%zz"}, "file": {"Origin": "file://"}, "name": {"Origin": "localhost"},
    "upper case": {"Upgrade": "WebSocket", "Connection": "UPGRADE"}, "forbidden": {"Impersonate_User": "nobody"},
    "extension": {"Sec_WebSocket_Extensions": "permessage-deflate"},
}


def test_handshakes(pair):
    for name, headers in HANDSHAKES.items():
        got = []
        for api in pair:
            s = Socket(api, **headers)
            shown = [s.headers.get(h) for h in ("upgrade", "sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-version")]
            got.append((s.status, shown, s.text))
            s.socket.close()
        assert got[0] == got[1], name


def first_message(api, accept):
    """(socket, operation, payload) of a watch that ends soon, though not before its first event was sent."""
    for seconds in (2, 10, 60):
        s = Socket(api, WATCH + str(seconds), Accept=accept)
        operation, text = s.message()
        if operation != DONE[0]:
            break
    return s, operation, text


def test_events_are_messages(pair):
    for accept in ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/vnd.kubernetes.protobuf;stream=watch"):
        kinds = []
        for api in pair:
            s, operation, text = first_message(api, accept)
            if operation == 1:
                event = json.loads(text)
                assert text.endswith(b"}\n")
                kinds.append((operation, event["type"], event["object"]["kind"], event["object"].get("data")))
            else:
                assert text.startswith(b"\n\x05ADDED\x12") and b"k8s\0" in text
                kinds.append((operation,))
            assert s.message() == DONE and s.ended()
        assert kinds[0] == kinds[1], accept


def test_a_token_among_the_protocols(vc):
    token = vc.api.create_service_account("default", "console")
    vc.api.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
        "metadata": {"name": "console"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "console", "namespace": "default"}]})
    secret = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    protocols = f"base64url.bearer.authorization.k8s.io.{secret}, base64.binary.k8s.io"
    s = Socket(vc.api, token=True, Sec_WebSocket_Protocol=protocols)
    assert (s.status, s.headers["sec-websocket-protocol"]) == (101, "base64.binary.k8s.io")
    assert Socket(vc.api, token=True, Sec_WebSocket_Protocol=protocols.replace(secret, "YQ")).status == 401


def test_what_clients_send(pair):
    for api in pair:
        s = Socket(api)
        for byte in frame(9, b"ping") + frame(1, b"x" * 700) + frame(9, b"") + frame(10, b"pong") + frame(8, b"\x03\xe8bye"):
            s.send(bytes((byte,)))
        assert [s.message() for _ in range(3)] == [(10, b"ping"), (10, b""), DONE] and s.ended()
        s = Socket(api)
        s.send(frame(1, b"x", masked=False))
        assert s.message() == (8, b"\x03\xea") and s.message() == DONE and s.ended()


def test_a_peer_that_only_sends(vc):
    """Neither its frames nor our answers are kept: freed memory is what a sanitizer holds back."""
    s = Socket(vc.api)
    before = vc.rss()
    s.socket.settimeout(2)
    try:
        for _ in range(400):
            s.send(frame(9, b"x" * 125) * 50)
        s.send(frame(2, length=1 << 62))
        for _ in range(400):
            s.send(b"x" * 65536)
    except (TimeoutError, OSError):
        pass
    assert vc.rss() - before < 64 << 20
    assert vc.api.raw("GET", "/readyz")[0] == 200
    s.socket.close()
