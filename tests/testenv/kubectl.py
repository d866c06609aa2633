# SPDX-License-Identifier: Apache-2.0
"""kubectl bound to one kubeconfig."""
import contextlib
import json
import os
import re
import shlex
import socket
import subprocess
import threading

import yaml

from .process import GO

MAY_PASS = re.compile(r"\(NotFound\)|\(Conflict\)|\(AlreadyExists\)|\(ServiceUnavailable\)|connection to the server .* was refused|"
                      r"connection refused|the server doesn't have a resource type|no matches for kind|"
                      r"the server is currently unable to handle the request")


class KubectlError(AssertionError):
    """kubectl ended with an error: .code, .out, .err."""

    def __init__(self, args, code, out, err):
        super().__init__(f"kubectl {shlex.join(args)}: exit {code}\n{err}{out}")
        self.code = code
        self.out = out
        self.err = err

    @property
    def may_pass(self):
        """As of an ApiError: kubectl says in words what the server said in a code."""
        return bool(MAY_PASS.search(self.err))


class Kubectl:
    """k("get", "pods") -> stdout; k.json(...) -> dict; k.apply(manifest); k.fails(...) -> stderr."""

    def __init__(self, binary, kubeconfig, directory, namespace=None):
        self.binary = binary
        self.kubeconfig = kubeconfig
        self.directory = str(directory)
        self.namespace = namespace
        home = os.path.join(self.directory, "home")
        os.makedirs(home, exist_ok=True)
        self.env = {"HOME": home, "PATH": os.environ.get("PATH", ""), "KUBECONFIG": kubeconfig,
                    "EDITOR": "true", "NO_PROXY": "*", **GO}

    def __call__(self, *args, stdin=None, timeout=900):
        """Runs kubectl; returns its stdout, raises KubectlError with its stderr on failure."""
        code, out, err = self.run(*args, stdin=stdin, timeout=timeout)
        if code != 0:
            raise KubectlError(args, code, out, err)
        return out

    def run(self, *args, stdin=None, timeout=900, env=None):
        """Runs kubectl; returns (exit code, stdout, stderr)."""
        scope = ["-n", self.namespace] if self.namespace else []
        r = subprocess.run([self.binary, *scope, *map(str, args)], input=stdin, text=True,
                           capture_output=True, timeout=timeout, check=False,
                           env={**self.env, **(env or {})})
        return r.returncode, r.stdout, r.stderr

    def fails(self, *args, stdin=None, timeout=900):
        """Runs kubectl, which must fail; returns its stderr."""
        code, out, err = self.run(*args, stdin=stdin, timeout=timeout)
        assert code != 0, f"kubectl {shlex.join(map(str, args))} succeeded:\n{out}"
        return err

    def json(self, *args, **kw):
        return json.loads(self(*args, "-o", "json", **kw))

    def items(self, *args, **kw):
        return self.json("get", *args, **kw)["items"]

    def names(self, *args, **kw):
        return [o["metadata"]["name"] for o in self.items(*args, **kw)]

    def apply(self, manifest, *args, **kw):
        """Applies YAML, one object or a list of objects."""
        return self("apply", *args, "-f", "-", stdin=_text(manifest), **kw)

    def create(self, manifest, *args, **kw):
        return self("create", *args, "-f", "-", stdin=_text(manifest), **kw)

    def start(self, *args, **env):
        """kubectl, left running; its stdout is a pipe."""
        scope = ["-n", self.namespace] if self.namespace else []
        return subprocess.Popen([self.binary, *scope, *args], stdout=subprocess.PIPE, env={**self.env, **env})

    @contextlib.contextmanager
    def forwarded(self, target, port, **env):
        """The local port that port-forward leads to a port of the target."""
        p = self.start("port-forward", "--address=127.0.0.1", target, f":{port}", **env)
        try:
            yield int(p.stdout.readline().decode().split("127.0.0.1:")[1].split()[0])
        finally:
            end(p)

    def within(self, namespace):
        """The same kubectl with a namespace."""
        return Kubectl(self.binary, self.kubeconfig, self.directory, namespace)


def end(process):
    """Of a kubectl left running."""
    process.kill()
    process.wait()
    process.stdout.close()


def echoed(port, data):
    """What comes back of the bytes from a local port."""
    with socket.create_connection(("127.0.0.1", port), timeout=180) as s:
        sender = threading.Thread(target=s.sendall, args=(data,))
        sender.start()
        got = b""
        while len(got) < len(data) and (part := s.recv(65536)):
            got += part
        sender.join()
    return got


def _text(manifest):
    if isinstance(manifest, str):
        return manifest
    return yaml.safe_dump_all(manifest if isinstance(manifest, list) else [manifest])
