# SPDX-License-Identifier: Apache-2.0
"""HTTP as bytes: TLS sockets that send the bytes they are given, and frames of HTTP/2, wrong ones too."""
import re
import socket
import ssl
import struct
import subprocess

from testenv import binaries
from testenv.api import Api

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def sanitizers():
    """The runtime libraries of sanitizers that the program under test needs before any other."""
    linked = subprocess.run(["ldd", binaries.sublet()], capture_output=True, text=True, check=True).stdout
    return re.findall(r"=> (\S*/lib[at]san\.so\S*)", linked)


def connect(vc, alpn=None, timeout=30):
    """A TLS connection of the cluster's admin."""
    tls = Api(vc.kubeconfig).tls
    if alpn:
        tls.set_alpn_protocols([alpn])
    return tls.wrap_socket(dial(vc, timeout), server_hostname="127.0.0.1")


def dial(vc, timeout=30):
    s = socket.create_connection(("127.0.0.1", vc.port.number), timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def send(s, data):
    """False when the peer has closed."""
    try:
        s.sendall(data)
        return True
    except (OSError, ssl.SSLError):
        return False


def read_all(s, limit=1 << 24):
    """Everything until the peer closes; an abrupt end is an end."""
    out = b""
    try:
        while len(out) < limit:
            part = s.recv(65536)
            if not part:
                break
            out += part
    except socket.timeout:
        raise AssertionError(f"neither an answer nor an end: {out[:200]!r}") from None
    except (OSError, ssl.SSLError):
        pass
    return out


def reset(s):
    """Closes with a RST instead of a FIN."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header that enters no table."""
    out = b"\0"
    for text in (name.encode(), value.encode("latin-1")):
        n = len(text)
        if n < 127:
            out += bytes((n,)) + text
            continue
        out, n = out + b"\x7f", n - 127
        while n >= 128:
            out, n = out + bytes((n % 128 | 128,)), n // 128
        out += bytes((n,)) + text
    return out


def block(*headers, method="GET", path="/version", **more):
    pseudo = [(":method", method), (":scheme", "https"), (":path", path), (":authority", "x")]
    return b"".join(literal(k, v) for k, v in pseudo + list(headers) + list(more.items()) if v is not None)


def get(stream, path="/version", end=END_STREAM, *headers, method="GET"):
    return frame(HEADERS, end | END_HEADERS, stream, block(*headers, method=method, path=path))


class NoAnswer(AssertionError):
    """Nothing came for as long as the socket waits."""


class Http2:
    """One connection; frames() yields (type, flags, stream, payload) until the server closes."""

    def __init__(self, vc, settings=b"", timeout=30):
        self.socket = connect(vc, "h2", timeout)
        assert self.socket.selected_alpn_protocol() == "h2"
        self.socket.sendall(PREFACE + frame(SETTINGS, payload=settings))
        self._buffer = b""

    def send(self, data):
        return send(self.socket, data)

    def _fill(self, n):
        while len(self._buffer) < n:
            try:
                part = self.socket.recv(65536)
            except socket.timeout:
                raise NoAnswer("the server neither answers nor closes") from None
            except (OSError, ssl.SSLError):
                return False
            if not part:
                return False
            self._buffer += part
        return True

    def frames(self):
        while self._fill(9):
            n = int.from_bytes(self._buffer[:3], "big")
            kind, flags, stream = self._buffer[3], self._buffer[4], int.from_bytes(self._buffer[5:9], "big")
            if not self._fill(9 + n):
                return
            payload, self._buffer = self._buffer[9:9 + n], self._buffer[9 + n:]
            yield kind, flags, stream, payload

    def outcome(self, stream):
        """("status", n) | ("reset", code) | ("goaway", code) | ("closed", None), what comes first."""
        for kind, _, where, payload in self.frames():
            if kind == HEADERS and where == stream:
                return "status", _status(payload)
            if kind == RST_STREAM and where == stream:
                return "reset", int.from_bytes(payload, "big")
            if kind == GOAWAY and int.from_bytes(payload[4:8], "big"):
                return "goaway", int.from_bytes(payload[4:8], "big")
        return "closed", None

    def fate(self):
        """"ended": the server says GOAWAY or closes; "served": it answers a PING that is sent now; "stalled": neither."""
        mark = b"are you?"
        if not self.send(frame(PING, payload=mark)):
            return "ended"
        try:
            for kind, _, _, payload in self.frames():
                if kind == GOAWAY:
                    return "ended"
                if kind == PING and payload == mark:
                    return "served"
        except NoAnswer:
            return "stalled"
        return "ended"

    def close(self):
        self.socket.close()


def _status(payload):
    """nghttp2 begins with :status: one of the static table, or a literal with Huffman coding or without."""
    known = {0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500}
    if payload[0] in known:
        return known[payload[0]]
    assert payload[0] & 0x3f in (8, 9, 10, 11, 12, 13, 14) or payload[0] & 0x0f in (8, 14), payload[:6].hex()
    n = payload[1] & 0x7f
    text = payload[2:2 + n]
    return int(_huffman_digits(text) if payload[1] & 0x80 else text)


def _huffman_digits(text):
    """RFC 7541 appendix B, the ten digits: 0, 1, 2 have five bits, the others six."""
    bits, out = "".join(f"{b:08b}" for b in text), ""
    short = {"00000": "0", "00001": "1", "00010": "2"}
    long = {f"{0x19 + i:06b}": str(3 + i) for i in range(7)}
    while len(out) < 3:
        size = 5 if bits[:5] in short else 6
        out += (short if size == 5 else long)[bits[:size]]
        bits = bits[size:]
    return out
