# SPDX-License-Identifier: Apache-2.0
"""What must be refused is, in the words of a real kube-apiserver, and everybody else is served meanwhile."""
import contextlib
import json
import random
import re
import socket
import ssl
import struct
import threading
import time

import pytest

import raw_http as h
from refusal_cases import CMS, ONE, cases
from testenv import eventually
from testenv.api import Api

SEED = 20261121
MIB = 1 << 20

# Answers that are not those of kube-apiserver, and why. A pattern is one alternative and stands for every case it matches;
# one that explains no difference any more fails.
DIFFERENT = {
    r"json/deep-300": "documents deeper than 256 are refused, not only those over 10,000",
    r"json/deep-in-data": "documents deeper than 256 are refused, not only those over 10,000",
    r"patch/.*/deep": "documents deeper than 256 are refused, not only those over 10,000",
    r"json/word": "a literal that is cut off is an early end",
    r"deployment/strategy": "the offending value is shown as JSON, not as a Go struct",
    r"patch/json/kind": "upstream has read it as the other kind before it notices",
    r"patch/merge/kind": "upstream has read it as the other kind before it notices",
    r"query/limit=1&continue=x": "revision and token together are named first",
    r"query/continue=": "tokens are ours",
    r"path/GET /openapi/v3/none": "404 has a body",
    r"path/GET /api/v1/namespaces/%2e%2e/": "a namespace that cannot be is empty, not an internal error",
    r"put/uid": "upstream shows its storage's error",
}


# --- the answers of upstream ---------------------------------------------------------------------------


def plain_text(text):
    """Without what differs between any two servers: identities, revisions, random names, order of lists."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"(record \(|current: )\d+", r"\1REVISION", text)
    text = re.sub(r"\bA_[a-z0-9]{5}\b", "A_RANDOM", text)
    text = re.sub(r"yaml: line \d+: |yaml: ", "yaml: ", text)
    text = re.sub(r'Invalid value: "(\{.*\}|map\[.*\])"', "Invalid value: OBJECT", text, flags=re.S)
    head, mark, errors = text.partition("strict decoding error: ")
    return head + mark + ", ".join(sorted(errors.split(", "))) if mark else text


def comparable(answer):
    code, headers, body = answer
    if not code:
        return ("no answer",)
    warnings = sorted(headers.get_all("Warning") or [])
    if code < 400:
        return code, warnings
    try:
        status = json.loads(body)
    except ValueError:
        return code, warnings, headers.get("Content-Type"), body.decode("utf-8", "replace")
    details = {k: v for k, v in status.get("details", {}).items() if v}
    causes = details.pop("causes", None)
    if causes:  # upstream validates the metadata of an update twice; the message only repeats the causes
        causes = sorted({(c.get("field"), c["reason"], plain_text(c["message"])) for c in causes})
    message = "" if causes else plain_text(status.get("message", ""))
    return (code, warnings, status.get("reason"), status.get("kind"), message,
            plain_text(json.dumps(details, sort_keys=True)), causes)


def ask(api, case):
    """(code, headers, body); the body of a success may have no end and is not read."""
    _, method, path, body, headers = case
    client = api.clone()
    try:
        response = client.open(method, path, body, headers)
        return response.status, response.headers, response.read() if response.status >= 400 else b""
    except TimeoutError:
        return 0, {}, b""
    finally:
        client.close()


def reviewed(name):
    """The patterns that explain a difference of this case."""
    return {pattern for pattern in DIFFERENT if re.match(pattern, name)}


def test_answers_are_those_of_upstream(tenant, host, capsys):
    vc = tenant("refuse")
    for api in (host.api, vc.api):
        api.post(CMS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refusal"}, "data": {"a": "1"}})
    try:
        wrong, same, total, used = [], 0, 0, set()
        for case in cases():
            total += 1
            theirs, ours = comparable(ask(host.api, case)), comparable(ask(vc.api, case))
            same += theirs == ours
            reasons = reviewed(case[0]) if theirs != ours else set()
            used |= reasons
            if theirs != ours and not reasons:
                wrong.append(f"{case[0]}: {case[1]} {case[2][:100]}\n  upstream {str(theirs)[:700]}\n  Sublet   {str(ours)[:700]}")
            assert ours[0] != 500 or theirs[0] == 500, case[0]
            assert len(ours) > 1, f"{case[0]}: no answer"
    finally:
        host.api.delete(ONE)
    with capsys.disabled():
        print(f"\n{total} refusals: {same} as upstream, {total - same} reviewed")
    assert not wrong, f"{len(wrong)} of {total}:\n" + "\n".join(wrong)
    assert used == set(DIFFERENT), f"explain nothing: {sorted(set(DIFFERENT) - used)}"


# --- everybody else ------------------------------------------------------------------------------------


class Bystander(threading.Thread):
    """A second client: writes, reads and watches all the time, over kept and over new connections."""

    def __init__(self, vc, patient=False):
        super().__init__(daemon=True)
        self.patient = patient
        self.vc, self.stopping, self.done, self.slowest, self.error = vc, False, 0, 0.0, None
        self.seen, self.watch = 0, Api(vc.kubeconfig, timeout=600)
        self.stream = self.watch.open("GET", "/api/v1/namespaces/kube-public/configmaps?watch=1")
        self.socket = self.watch._conn.sock  # pylint: disable=protected-access
        self.reader = threading.Thread(target=self._read, daemon=True)

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)  # wakes the reader, which holds the stream
        self.reader.join(600)
        self.watch.close()

    def _read(self):
        with contextlib.suppress(Exception):
            for line in self.stream:
                self.seen += b'"ADDED"' in line and b'"by-' in line

    def newcomer(self, kept):
        """A new connection; who is patient tries again where the handshake was cut off."""
        client = kept.clone()
        if self.patient:
            eventually(lambda: client.raw("GET", "/version")[0] == 200, 180, "a new connection to be served")
        return client

    def run(self):
        self.reader.start()
        kept = Api(self.vc.kubeconfig, timeout=180)
        try:
            while not self.stopping:
                begin = time.monotonic()
                client = kept if self.done % 5 else self.newcomer(kept)
                name = f"by-{self.done}"
                client.post("/api/v1/namespaces/kube-public/configmaps",
                            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
                client.get(f"/api/v1/namespaces/kube-public/configmaps/{name}")
                if client is not kept:
                    client.close()
                self.done += 1
                self.slowest = max(self.slowest, time.monotonic() - begin)
        except Exception as e:  # pylint: disable=broad-except
            self.error = e


@contextlib.contextmanager
def others_are_served(vc, grows=96, patient=False):
    """Around an attack: a bystander succeeds at all it does, and the process grows by `grows` MiB at most."""
    before = vc.rss()
    by = Bystander(vc, patient)
    by.start()
    eventually(lambda: by.done or by.error, 60, "the bystander to begin")
    peak = [before]

    def measure():
        while not by.stopping:
            peak[0] = max(peak[0], vc.rss())
            time.sleep(0.05)

    meter = threading.Thread(target=measure, daemon=True)
    meter.start()
    done = by.done
    try:
        yield by
        eventually(lambda: by.done >= done + 3 or by.error, 180, "the bystander to go on")
    finally:
        by.stopping = True
        by.join(180)
        meter.join(600)
    assert by.error is None, by.error
    eventually(lambda: by.seen == by.done, 30, f"the watch to have seen all {by.done}")
    by.end()
    bound = grows * (3 if h.sanitizers() else 1)  # their allocators and shadows come on top
    assert peak[0] - before < bound * MIB, f"grew by {(peak[0] - before) / MIB:.0f} MiB"


@pytest.fixture
def vc(tenant, monkeypatch):
    # Freed memory is to be seen as freed.
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=1:allocator_release_to_os_interval_ms=100")
    return tenant("attacked", on=False)


# --- HTTP/1.1 ------------------------------------------------------------------------------------------

HOST = b"Host: x\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
HTTP1 = {
    "length-and-chunked": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
                           b"\r\n0\r\n\r\n" + SMUGGLED, {400}),
    "two-lengths": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + SMUGGLED, {400}),
    "length-list": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length: 0, 40\r\n\r\n" + SMUGGLED, {400}),
    "length-plus": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length: +0\r\n\r\n" + SMUGGLED, {400}),
    "length-negative": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n" + SMUGGLED, {400}),
    "length-huge": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999\r\n\r\n", {400, 413}),
    "encoding-twice": (b"POST /version HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED, {400}),
    "encoding-inside": (b"POST /version HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, {501}),
    "expectation": (b"POST /version HTTP/1.1\r\n" + HOST + b"Expect: 200-ok\r\nContent-Length: 0\r\n\r\n" + SMUGGLED, {417}),
    "host-with-path": (b"GET /version HTTP/1.1\r\nHost: a/b\r\n\r\n", {400}),
    "encoding-unknown": (b"POST /version HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED, {501}),
    "chunk-size": (b"POST /version HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + SMUGGLED, {400}),
    "chunk-size-huge": (b"POST /version HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx", {400, 413}),
    "chunk-no-end": (b"POST /version HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n" + SMUGGLED, {400}),
    "chunk-extension": (b"POST /version HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 400000 + b"\r\nx\r\n", {400}),
    "folded": (b"GET /version HTTP/1.1\r\n" + HOST + b"X: a\r\n\tb\r\n\r\n", {400, 403, 200}),
    "blank-before-colon": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length : 40\r\n\r\n" + SMUGGLED, {400}),
    "no-colon": (b"GET /version HTTP/1.1\r\n" + HOST + b"X\r\n\r\n", {400}),
    "nul-in-name": (b"GET /version HTTP/1.1\r\n" + HOST + b"X\0: a\r\n\r\n", {400}),
    "nul-in-value": (b"GET /version HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n", {400}),
    "bare-cr": (b"GET /version HTTP/1.1\r\n" + HOST + b"X: a\rY: b\r\n\r\n", {400}),
    "no-host": (b"GET /version HTTP/1.1\r\n\r\n", {400}),
    "two-hosts": (b"GET /version HTTP/1.1\r\n" + HOST + HOST + b"\r\n", {400}),
    "version-3": (b"GET /version HTTP/3.0\r\n" + HOST + b"\r\n", {400}),
    "version-none": (b"GET /version\r\n\r\n", {400}),
    "lower-method": (b"get /version HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "no-path": (b"GET  HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "relative-path": (b"GET version HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "connect": (b"CONNECT example.com:443 HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "long-path": (b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {431}),
    "long-header": (b"GET /version HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 70000 + b"\r\n\r\n", {431}),
    "many-headers": (b"GET /version HTTP/1.1\r\n" + HOST + b"".join(b"X%d: y\r\n" % i for i in range(3000)) + b"\r\n", {431}),
    "endless-blank-lines": (b"\r\n" * 100000, {400, 431}),
    "large-body": (b"POST /version HTTP/1.1\r\n" + HOST + b"Content-Length: 4000000\r\n\r\n", {413}),
    "preface-of-http2": (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", {400}),
    "ssh": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", {400}),
    "garbage": (bytes(range(256)) * 8, {400}),
}


def test_http1_is_read_in_one_way(vc):
    """The code is right or the connection is closed; and never is anything behind a refusal answered."""
    wrong = []
    for name, (data, codes) in HTTP1.items():
        s = h.connect(vc, "http/1.1")
        h.send(s, data)
        with contextlib.suppress(OSError):
            s.unwrap()
        answer = h.read_all(s)
        s.close()
        statuses = [int(x) for x in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]
        if len(statuses) > 1 or (statuses and statuses[0] not in codes) or b"smuggled" in answer:
            wrong.append((name, statuses, answer[:200]))
        elif statuses and statuses[0] >= 400 and b"404 page not found" not in answer:
            body = json.loads(answer.partition(b"\r\n\r\n")[2])
            assert body["kind"] == "Status" and body["code"] == statuses[0], (name, body)
    assert not wrong, wrong
    assert vc.api.raw("GET", "/version")[0] == 200


def test_what_is_no_tls(vc):
    with others_are_served(vc):
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", h.PREFACE, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 512,
                     b"\x16\x03\x01\xff\xff" + b"x" * 65536, b"\x15\x03\x01\x00\x02\x02\x28", b"\0" * 100000, b"\x80\x2e\x01\x00\x02",
                     random.Random(SEED).randbytes(200000)):
            s = h.dial(vc)
            h.send(s, data)
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            assert b"HTTP/1" not in h.read_all(s)
            s.close()


# --- HTTP/2 --------------------------------------------------------------------------------------------


def streams():
    """(name, frames of stream 1, what may come of it)."""
    full = h.END_STREAM | h.END_HEADERS
    malformed = {("reset", 1), ("goaway", 1), ("closed", None), ("status", 400)}

    def headers(data, flags=full):
        return h.frame(h.HEADERS, flags, 1, data)

    yield "upper-case", headers(h.block(("X-Upper", "a"))), malformed
    yield "no-path", headers(h.block(path=None)), malformed
    yield "empty-path", headers(h.block(path="")), malformed
    yield "path-twice", headers(h.literal(":path", "/version") + h.block()), malformed
    yield "pseudo-late", headers(h.block(("x", "y"), (":path", "/version"))), malformed
    yield "pseudo-unknown", headers(h.block((":nothing", "x"))), malformed
    yield "connect", headers(h.literal(":method", "CONNECT") + h.literal(":authority", "x:1")), {("status", 404)}
    yield "connect-open", headers(h.literal(":method", "CONNECT") + h.literal(":authority", "x:1"), h.END_HEADERS), {("status", 404)}
    yield "connect-nowhere", headers(h.literal(":method", "CONNECT")), malformed
    yield "options-of-the-server", headers(h.block(method="OPTIONS", path="*")), {("status", 200)}
    yield "connection-header", headers(h.block(("connection", "close"))), malformed
    yield "te", headers(h.block(("te", "gzip"))), malformed
    yield "encoding", headers(h.block(("transfer-encoding", "chunked"))), malformed
    yield "newline", headers(h.block(("x", "a\r\nb: c"))), malformed
    yield "nul", headers(h.block(("x", "a\0b"))), malformed
    yield "name-with-blank", headers(h.block(("a b", "c"))), malformed
    yield "length", headers(h.block(("content-length", "5"), method="POST")), malformed
    yield "length-short", (headers(h.block(("content-length", "1"), method="POST"), h.END_HEADERS) +
                           h.frame(h.DATA, h.END_STREAM, 1, b"xx")), malformed
    yield "large-header", (headers(h.block(("x", "a" * 16000)), h.END_STREAM) +
                           b"".join(h.frame(h.CONTINUATION, h.END_HEADERS * (i == 5), 1, h.literal("y", "a" * 16000)) for i in range(6))), \
        {("status", 431)} | malformed
    yield "large-body", headers(h.block(("content-length", "4000000"), method="POST", path=CMS), h.END_HEADERS), {("status", 413)}
    yield "method", headers(h.block(method="BREW", path=CMS)), {("status", 405)}
    yield "upgrade", headers(h.block(("upgrade", "websocket"))), malformed
    yield "even", h.get(2), malformed
    yield "push", h.frame(h.PUSH_PROMISE, h.END_HEADERS, 1, struct.pack(">I", 2) + h.block()), malformed


def test_http2_requests_that_are_none(vc):
    wrong = []
    for name, data, allowed in streams():
        c = h.Http2(vc)
        c.send(data)
        outcome = c.outcome(1)
        c.close()
        if outcome not in allowed:
            wrong.append((name, outcome))
    assert not wrong, wrong


def bomb(streams):
    """Requests whose headers take 60 KiB each, and twenty bytes on the wire: a header known to HPACK, again and again."""
    start = h.block(method="POST")
    entry = b"\x40" + h.literal("x", "v" * 3900)[1:]
    return h.PREFACE + h.frame(h.SETTINGS) + b"".join(
        h.frame(h.HEADERS, h.END_HEADERS, 1 + 2 * i, start + (entry if i == 0 else b"\xbe") + b"\xbe" * 15) for i in range(streams))


def test_headers_of_all_requests_have_a_limit(vc):
    """It needs no credentials, and ordinary requests are served meanwhile."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.set_alpn_protocols(["h2"])
    sockets = []
    with others_are_served(vc, grows=56):  # of 250 MiB that were requested
        for _ in range(16):
            s = tls.wrap_socket(h.dial(vc))
            assert h.send(s, bomb(250))
            sockets.append(s)
        time.sleep(1)  # until it has read them
    for s in sockets:
        h.reset(s)
    c = h.Http2(vc)
    c.send(h.get(1))
    assert c.outcome(1) == ("status", 200)


def floods():
    """(name, bytes that are sent again and again; i counts) of an attacker that never reads."""
    yield "ping", lambda i: h.frame(h.PING, payload=b"12345678")
    yield "settings", lambda i: h.frame(h.SETTINGS)
    yield "settings-window", lambda i: h.frame(h.SETTINGS, payload=struct.pack(">HI", 4, i % 2 * 65535)) + \
        (h.get(1 + 2 * i, CMS) if i < 100 else b"")
    yield "settings-table", lambda i: h.frame(h.SETTINGS, payload=struct.pack(">HI", 1, i % 2 * 65536))
    yield "rapid-reset", lambda i: h.get(1 + 2 * i, CMS) + h.frame(h.RST_STREAM, stream=1 + 2 * i, payload=b"\0\0\0\x08")
    yield "made-you-reset", lambda i: h.get(1 + 2 * i, CMS) + \
        h.frame(h.WINDOW_UPDATE, stream=1 + 2 * i, payload=b"\x7f\xff\xff\xff")
    yield "continuation", lambda i: (b"" if i else h.frame(h.HEADERS, 0, 1, h.block())) + \
        h.frame(h.CONTINUATION, 0, 1, h.literal("a", "b" * 1000))
    yield "empty-continuation", lambda i: (b"" if i else h.frame(h.HEADERS, 0, 1, h.block())) + h.frame(h.CONTINUATION, 0, 1)
    yield "empty-data", lambda i: (b"" if i else h.get(1, CMS, 0, method="POST")) + h.frame(h.DATA, 0, 1)
    yield "padded-data", lambda i: (b"" if i else h.get(1, CMS, 0, method="POST")) + h.frame(h.DATA, 8, 1, b"\0")
    yield "priority", lambda i: h.frame(h.PRIORITY, stream=1 + 2 * (i % 1000), payload=b"\0\0\0\0\xff")
    yield "streams", lambda i: h.get(1 + 2 * i, f"{CMS}?watch=1")
    yield "half-open-streams", lambda i: h.get(1 + 2 * i, CMS, 0, method="POST")
    yield "bodies", lambda i: h.get(1 + 2 * i, CMS, 0, method="POST") + h.frame(h.DATA, 0, 1 + 2 * i, b"x" * 16384)
    yield "header-bomb", lambda i: h.frame(h.HEADERS, h.END_STREAM | h.END_HEADERS, 1 + 2 * i, h.block() +
                                           b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4000 + b"\xbe" * 4000)
    yield "unknown-frames", lambda i: h.frame(99, 255, i, b"x" * 1000)
    yield "window-zero", lambda i: (b"" if i else h.frame(h.SETTINGS, payload=struct.pack(">HI", 4, 0))) + \
        h.get(1 + 2 * i, CMS)


def flooded(c, make):
    """What became of a connection after so many rounds: "ended", "served" or "stalled"."""
    try:
        for i in range(0, 30000, 50):
            c.socket.sendall(b"".join(make(i + k) for k in range(50)))
    except TimeoutError:
        return "stalled"
    except OSError:
        return "ended"
    return c.fate()


COST_NOTHING = {"unknown-frames"}  # RFC 9113, 5.5: they are ignored


@pytest.mark.parametrize("name", [name for name, _ in floods()])
def test_http2_floods(vc, name):
    """The connection is ended, unless it costs nothing; 30,000 rounds are far beyond every bound."""
    make = dict(floods())[name]
    with others_are_served(vc):
        c = h.Http2(vc, timeout=20)
        fate = flooded(c, make)
        c.close()
    assert fate == ("served" if name in COST_NOTHING else "ended")
    assert vc.api.raw("GET", "/version")[0] == 200


def test_window_games(vc):
    """A large answer that is read byte by byte delays no other client."""
    for i in range(20):
        vc.api.post(CMS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"big{i}"}, "data": {"x": "y" * 100000}})
    with others_are_served(vc):
        connections = [h.Http2(vc, struct.pack(">HI", 4, 1)) for _ in range(4)]
        for c in connections:
            c.send(b"".join(h.get(1 + 2 * i, CMS) for i in range(50)))
        for _ in range(200):
            for c in connections:
                c.send(b"".join(h.frame(h.WINDOW_UPDATE, stream=1 + 2 * i, payload=b"\0\0\0\1") for i in range(50)))
        for c in connections:
            h.reset(c.socket)


# --- many and slow -------------------------------------------------------------------------------------


def test_half_open_connections(vc):
    """Neither those who say nothing nor those who begin to shake hands keep others out; they are closed in time."""
    silent, hello = [], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\1" * 100
    with others_are_served(vc):
        for i in range(600):
            s = h.dial(vc)
            if i % 3:
                h.send(s, hello[:1 + i % len(hello)])
            silent.append(s)
        for s in silent:
            assert b"HTTP" not in h.read_all(s)
            s.close()


def test_slow_clients(vc):
    """Heads that trickle are cut off; bodies, lists and watches that are abandoned cost little."""
    for i in range(30):
        vc.api.post(CMS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"big{i}"}, "data": {"x": "y" * 100000}})
    with others_are_served(vc, grows=160):
        heads = [h.connect(vc, "http/1.1") for _ in range(40)]
        bodies = [h.connect(vc, "http/1.1") for _ in range(40)]
        lists = [h.connect(vc, "http/1.1") for _ in range(20)]
        watches = [h.connect(vc, "http/1.1") for _ in range(20)]
        for s in bodies:
            h.send(s, b"POST " + CMS.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + b" " * 100000)
        for s in lists:
            h.send(s, b"GET " + CMS.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        for s in watches:
            h.send(s, b"GET " + CMS.encode() + b"?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        for i in range(40):  # for those who watch and do not read
            vc.api.post(CMS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"more{i}"}, "data": {"x": "y" * 200000}})
        text = b"GET /version HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200
        alive = set(heads)
        for i in range(len(text)):
            alive = {s for s in alive if h.send(s, text[i:i + 1])}
            if not alive:
                break
            time.sleep(0.2)
        assert not alive, "heads may trickle for ever"
        for s in heads + bodies + lists + watches:
            h.reset(s)


def test_large_documents_do_not_hold_up_others(vc):
    """Bodies that take most work for their size: depth, many keys, many values, aliases, long patches. A handshake
    has ten seconds; that is several of these bodies for a sanitizer on a busy machine."""
    keys = b'{"apiVersion":"v1","kind":"ConfigMap","data":{' + b",".join(b'"%x":""' % i for i in range(200000)) + b"}}"
    values = b'{"data":{"a":[' + b"0," * 1400000 + b"0]}}"
    aliases = b"a: &a [" + b"x," * 1000 + b"x]\nb: [" + b"*a," * 300000 + b"*a]\n"
    patch = json.dumps([{"op": "add", "path": f"/data/{i}", "value": "x"} for i in range(3000)]).encode()
    vc.api.post(CMS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refusal"}, "data": {"a": "1"}})
    vc.api.timeout = 180
    with others_are_served(vc, grows=256, patient=True):
        for _ in range(3):
            for method, path, body, kind in (
                    ("POST", CMS, keys, "json"), ("POST", CMS, values, "json"), ("POST", CMS, aliases, "yaml"),
                    ("POST", CMS, b'{"a":' * 600000, "json"), ("POST", CMS, b"[" * 3000000, "yaml"), ("POST", CMS, b"- " * 1500000, "yaml"),
                    ("PATCH", ONE + "?dryRun=All", patch, "json-patch+json"), ("PATCH", ONE, values, "merge-patch+json"),
                    ("PATCH", ONE, values, "strategic-merge-patch+json"), ("POST", CMS, b"x" * 3200000, "json"),
                    ("DELETE", ONE, values, "json")):
                code, _, answer = vc.api.raw(method, path, body, content_type="application/" + kind)
                assert code in (400, 413, 422) or path.endswith("All"), (code, method, kind, answer[:300])


# --- chaos ---------------------------------------------------------------------------------------------


def test_clients_die_at_any_byte(vc):
    """Seeded: any beginning of a conversation, then an end, orderly or not. A leak would fail the process's end."""
    rng = random.Random(SEED)
    post = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "die-"}, "data": {"a": "b" * 3000}}).encode()
    talks = {
        "http/1.1": [b"GET " + CMS.encode() + b"?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"POST " + CMS.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                     + str(len(post)).encode() + b"\r\n\r\n" + post + b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"POST " + CMS.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n     \r\n0\r\n\r\n",
                     b"DELETE " + CMS.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n" * 5],
        "h2": [h.PREFACE + h.frame(h.SETTINGS) + b"".join(h.get(1 + 2 * i, f"{CMS}?watch=1") for i in range(20)),
               h.PREFACE + h.frame(h.SETTINGS) + b"".join(
                   h.get(1 + 2 * i, CMS, 0, ("content-type", "application/json"), method="POST") + h.frame(h.DATA, 1, 1 + 2 * i, post)
                   for i in range(10)),
               h.PREFACE + h.frame(h.SETTINGS) + b"".join(h.get(1 + 2 * i, CMS) for i in range(50))],
    }
    with others_are_served(vc):
        for turn in range(300):
            alpn = rng.choice(list(talks))
            data = rng.choice(talks[alpn])
            s = h.connect(vc, alpn)
            h.send(s, data[:rng.randrange(len(data) + 1)])
            if rng.random() < 0.3:
                s.settimeout(0.01)
                with contextlib.suppress(OSError):
                    s.recv(rng.randrange(1, 5000))
            (h.reset if rng.random() < 0.5 else socket.socket.close)(s)
            assert not vc.process.died, f"seed {SEED}, turn {turn}"
    vc.restart()
    assert vc.api.raw("GET", "/version")[0] == 200
