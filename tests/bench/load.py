# SPDX-License-Identifier: Apache-2.0
"""Load for one API server: h2load for requests, raw sockets for watches. The same for everybody."""
import json
import os
import re
import selectors
import socket
import subprocess
import time

from measure import percentile

CMS = "/api/v1/namespaces/{}/configmaps"
# Each application changes the object, with a body that is always the same.
SWAP = [{"op": "move", "from": "/data/a", "path": "/data/c"},
        {"op": "move", "from": "/data/b", "path": "/data/a"},
        {"op": "move", "from": "/data/c", "path": "/data/b"}]


def config_map(name=None, size=1024):
    metadata = {"name": name} if name else {"generateName": "b-"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"a": "1", "b": "2", "payload": "x" * size}}


class Load:
    """An h2load run: .rate (requests per second), .latencies (ms)."""

    def __init__(self, url, paths, n, connections, streams, headers=(), body=None, method=None,
                 directory=None):
        log = os.path.join(directory, "h2load.log")
        if os.path.exists(log):
            os.unlink(log)
        command = ["h2load", "-n", str(n), "-c", str(connections), "-m", str(streams),
                   "--log-file", log]
        for h in headers:
            command += ["-H", h]
        if method:
            command += ["-H", f":method: {method}"]
        if body is not None:
            file = os.path.join(directory, "body.json")
            with open(file, "w", encoding="utf-8") as f:
                json.dump(body, f)
            command += ["-d", file]
        urls = os.path.join(directory, "urls")
        with open(urls, "w", encoding="utf-8") as f:
            f.writelines(url + p + "\n" for p in paths)
        out = subprocess.run(command + ["-i", urls], capture_output=True, text=True, check=True,
                             timeout=900).stdout
        done = re.search(r"(\d+) 2xx", out)
        assert done and int(done.group(1)) == n, f"{url}{paths[0]}: {out}"
        self.rate = float(re.search(r"finished in [^,]+, ([\d.]+) req/s", out).group(1))
        with open(log, encoding="ascii") as f:
            self.latencies = [int(line.split("\t")[2]) / 1000 for line in f]


class Target:
    """An API server under load, as a service account that may do all."""

    def __init__(self, name, api, url, directory):
        self.name = name
        self.api = api
        self.url = url
        self.dir = directory
        api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "bench"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "bench"}]})
        self.token = api.create_service_account("default", "bench")

    def load(self, paths, n, connections=4, streams=8, body=None, method=None,
             content_type="application/json"):
        headers = [f"authorization: Bearer {self.token}"]
        if body is not None:
            headers.append(f"content-type: {content_type}")
        return Load(self.url, [paths] if isinstance(paths, str) else paths, n, connections, streams,
                    headers, body, method, self.dir)

    def namespace(self, name):
        """Makes it if it is not there; returns the path of its ConfigMaps."""
        if self.api.raw("GET", f"/api/v1/namespaces/{name}")[0] == 404:
            self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                                 "metadata": {"name": name}})
        return CMS.format(name)


class Watchers:
    """So many watches on one path, each on a connection of its own; counts events and their times."""

    END = b'"kind":"ConfigMap"'  # once in each event's object

    def __init__(self, api, token, path, n):
        revision = api.get(path + "?limit=1")["metadata"]["resourceVersion"]
        self.selector = selectors.DefaultSelector()
        self.events = 0
        self.sockets = [self._open(api, token, f"{path}?watch=1&resourceVersion={revision}")
                        for _ in range(n)]

    def _open(self, api, token, path):
        plain = socket.create_connection((api.server.hostname, api.server.port), timeout=30)
        tls = api.tls.wrap_socket(plain, server_hostname=api.server.hostname)
        tls.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                    "Accept: application/json\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += tls.recv(1)
        assert b" 200 " in head.split(b"\r\n")[0], head
        tls.setblocking(False)
        self.selector.register(tls, selectors.EVENT_READ)
        return tls

    def _drain(self, tls):
        while True:
            try:
                data = tls.recv(65536)
            except (BlockingIOError, OSError):
                return
            if not data:
                raise AssertionError("a watch was closed")
            # One chunk holds whole events at both servers, but a read may cut the word in two:
            # then it is missed here, and wait_for() would not end. So the tail is kept.
            tail = self.tails.get(tls, b"") + data
            self.events += tail.count(self.END)
            self.tails[tls] = tail[-(len(self.END) - 1):]

    tails = None

    def wait_for(self, events, timeout=120):
        """Reads until so many events came in all."""
        self.tails = self.tails or {}
        deadline = time.monotonic() + timeout
        while self.events < events:
            for key, _ in self.selector.select(1):
                self._drain(key.fileobj)
            assert time.monotonic() < deadline, f"{self.events} of {events} events"

    def close(self):
        for s in self.sockets:
            s.close()
        self.selector.close()


def watch_rate(target, path, watchers, writes):
    """Events per second delivered to all watchers together while the writes go on."""
    w = Watchers(target.api, target.token, path, watchers)
    try:
        command = ["h2load", "-n", str(writes), "-c", "1", "-m", "16", "-H",
                   f"authorization: Bearer {target.token}", "-H", "content-type: application/json",
                   "-d", os.path.join(target.dir, "body.json"), target.url + path]
        with open(os.path.join(target.dir, "body.json"), "w", encoding="utf-8") as f:
            json.dump(config_map(), f)
        begin = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as writer:
            w.wait_for(watchers * writes)
            taken = time.monotonic() - begin
            assert writer.wait(60) == 0
        return watchers * writes / taken
    finally:
        w.close()


def watch_latencies(target, path, n):
    """Milliseconds from sending a write to its event at a watch, one after another."""
    w = Watchers(target.api, target.token, path, 1)
    try:
        result = []
        for _ in range(n):
            body = json.dumps(config_map())
            begin = time.monotonic()
            response = target.api.open("POST", path, body, {"Content-Type": "application/json"})
            w.wait_for(w.events + 1)
            result.append((time.monotonic() - begin) * 1000)
            response.read()
        return result
    finally:
        w.close()


def both(latencies):
    return percentile(latencies, 0.5), percentile(latencies, 0.99)
