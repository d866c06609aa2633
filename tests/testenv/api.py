# SPDX-License-Identifier: Apache-2.0
"""A plain HTTPS client of one API server, for what kubectl does not say: headers, statuses, raw bodies."""
import base64
import http.client
import json
import os
import ssl
import time
import tempfile
from urllib.parse import urlencode, urlsplit

import yaml


IDLE = 15  # seconds after which a server may have closed a connection: another is opened


class ApiError(AssertionError):
    """An answer of 400 and above: .code and .status (the metav1.Status, or the body)."""

    def __init__(self, what, code, status):
        message = status.get("message") if isinstance(status, dict) else status
        super().__init__(f"{what}: {code} {message}")
        self.code = code
        self.status = status
        self.reason = status.get("reason") if isinstance(status, dict) else None

    @property
    def may_pass(self):
        """Whether a repetition may help: not there yet, changed meanwhile, not ready."""
        return self.code in (404, 409, 503)


def _current(config, kind):
    context = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
    plural = kind + "s"
    return next(x[kind] for x in config[plural] if x["name"] == context[kind])


class Api:
    """One kept connection per object; not shared between threads (use .clone())."""

    def __init__(self, kubeconfig, timeout=180):
        self.kubeconfig = kubeconfig
        self.timeout = timeout
        with open(kubeconfig, encoding="utf-8") as f:
            config = yaml.safe_load(f)
        cluster, user = _current(config, "cluster"), _current(config, "user")
        self.server = urlsplit(cluster["server"])
        self.headers = {}
        self.tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "token" in user:
            self.headers["Authorization"] = "Bearer " + user["token"]
        if "client-certificate-data" in user:
            self._load_certificate(user)
        self._conn = None
        self._used = 0.0

    def _load_certificate(self, user):
        fd, path = tempfile.mkstemp()
        try:
            with os.fdopen(fd, "wb") as f:
                f.write(base64.b64decode(user["client-certificate-data"]))
                f.write(b"\n")
                f.write(base64.b64decode(user["client-key-data"]))
            self.tls.load_cert_chain(path)
        finally:
            os.unlink(path)

    def clone(self):
        return type(self)(self.kubeconfig, self.timeout)

    def close(self):
        if self._conn:
            self._conn.close()
            self._conn = None

    def open(self, method, path, body=None, headers=None, query=None):
        """Sends one request; returns the http.client.HTTPResponse, unread (for watches)."""
        if query:
            path += ("&" if "?" in path else "?") + urlencode(query)
        if self._conn is not None and time.monotonic() - self._used > IDLE:
            self.close()
        self._used = time.monotonic()
        reused = self._conn is not None
        if not reused:
            self._conn = http.client.HTTPSConnection(
                self.server.hostname, self.server.port, context=self.tls, timeout=self.timeout)
        try:
            self._conn.request(method, path, body, {**self.headers, **(headers or {})})
            return self._conn.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
            self.close()
            if reused and method == "GET":  # an idle connection the server closed meanwhile
                return self.open(method, path, body, headers)
            raise
        except OSError:
            self.close()
            raise

    def raw(self, method, path, body=None, content_type=None, accept=None, query=None, headers=None):
        """One request; returns (code, headers, bytes) whatever the code is."""
        h = dict(headers or {})
        if accept:
            h["Accept"] = accept
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            content_type = content_type or "application/json"
        if content_type:
            h["Content-Type"] = content_type
        response = self.open(method, path, body, h, query)
        try:
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if response.will_close:
            self.close()
        return response.status, response.headers, data

    def request(self, method, path, body=None, **kw):
        """One request; returns the decoded JSON (or the body), raises ApiError from 400 on."""
        code, _, data = self.raw(method, path, body, **kw)
        try:
            value = json.loads(data)
        except ValueError:
            value = data.decode("utf-8", "replace")
        if code >= 400:
            raise ApiError(f"{method} {path}", code, value)
        return value

    def get(self, path, **query):
        return self.request("GET", path, query=query)

    def post(self, path, body, **query):
        return self.request("POST", path, body, query=query)

    def put(self, path, body, **query):
        return self.request("PUT", path, body, query=query)

    def patch(self, path, body, kind="merge", **query):
        """kind: merge, strategic-merge, json or apply (the latter in YAML or JSON)."""
        suffix = "yaml" if kind == "apply" else "json"
        return self.request("PATCH", path, body, query=query,
                            content_type=f"application/{kind}-patch+{suffix}")

    def delete(self, path, body=None, **query):
        return self.request("DELETE", path, body, query=query)

    def create_service_account(self, namespace, name, seconds=86400, audience=None):
        """Creates a service account and returns a token of it, for the API server or another audience."""
        base = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.post(base, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        answer = self.post(f"{base}/{name}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds, **({"audiences": [audience]} if audience else {})}})
        return answer["status"]["token"]

    def watch(self, path, timeout=180, **query):
        """Yields the events of a watch as dicts until the server ends it or nothing comes in `timeout`."""
        client = Api(self.kubeconfig, timeout)
        try:
            mark = "&" if "?" in path else "?"
            response = client.open("GET", f"{path}{mark}watch=1", query=query or None)
            if response.status >= 400:
                raise ApiError(f"WATCH {path}", response.status, response.read().decode())
            for line in response:
                if line.strip():
                    yield json.loads(line)
        finally:
            client.close()
