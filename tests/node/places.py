# SPDX-License-Identifier: Apache-2.0
"""A namespace with pods that run."""
from testenv.api import ApiError
from testenv.node import AGNHOST, TOOLS
from testenv.wait import eventually

PATIENCE = 120
SOON = {"terminationGracePeriodSeconds": 0}


class Place:
    """place.start("a") is a running pod; place.sh("a", "echo x") what a command in it writes. Removed at the end."""

    def __init__(self, cluster, namespace):
        self.cluster = cluster
        self.namespace = namespace
        self.kubectl = cluster.kubectl.within(namespace)

    def __enter__(self):
        self.cluster.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                                     "metadata": {"name": self.namespace}})
        eventually(lambda: self.get("serviceaccounts", "default"), 60, f"the account of {self.namespace}")
        return self

    def __exit__(self, *_):
        try:
            self.cluster.api.delete(f"/api/v1/namespaces/{self.namespace}")
        except ApiError as e:
            if e.code not in (404, 409):
                raise

    def get(self, resource, name, group="/api/v1"):
        return self.cluster.api.get(f"{group}/namespaces/{self.namespace}/{resource}/{name}")

    def create(self, resource, body, group="/api/v1"):
        return self.cluster.api.post(f"{group}/namespaces/{self.namespace}/{resource}", body)

    def apply(self, kind, name, body=None, api="v1", **fields):
        """Applies an object; `fields` are beside its metadata."""
        self.kubectl.apply({"apiVersion": api, "kind": kind, "metadata": {"name": name, **(body or {})}, **fields})

    def start(self, name, container=None, labels=None, annotations=None, wait=True, **spec):
        """A pod of one container that stays, with a shell and a resolver; waits until it is ready."""
        self.create("pods", pod(name, container, labels, annotations, **spec))
        if wait:
            self.ready(name)
        return name

    def serve(self, name, *args, labels=None, **spec):
        """A pod of agnhost, which answers over HTTP on port 8080 unless the arguments are others."""
        return self.start(name, {"image": AGNHOST, "command": None, "args": list(args) or ["netexec", "--http-port=8080"]},
                          labels or {"app": name}, **spec)

    def ready(self, name):
        def is_ready():
            found = self.get("pods", name)
            conditions = {c["type"]: c["status"] for c in found["status"].get("conditions", [])}
            assert conditions.get("Ready") == "True", found["status"]
            return found

        return eventually(is_ready, PATIENCE, f"pod {self.namespace}/{name} to be ready")

    def ip(self, name):
        return self.get("pods", name)["status"]["podIP"]

    def sh(self, name, script, container=None):
        """The output of a command, without its last line end; it must succeed."""
        options = ["-c", container] if container else []
        return self.kubectl("exec", name, *options, "--", "sh", "-c", script).rstrip("\n")

    def soon(self, name, script, wanted, what, patience=30):
        """Waits until a command succeeds and its output is as wanted: `wanted` is a string or a predicate."""
        def as_wanted():
            code, out, err = self.kubectl.run("exec", name, "--", "sh", "-c", script)
            assert code == 0, f"{script}: exit {code}\n{err}{out}"
            out = out.rstrip("\n")
            assert wanted(out) if callable(wanted) else out == wanted, out
            return True

        eventually(as_wanted, patience, what)

    def service(self, name, **spec):
        """A Service of the pods with the label app=NAME, unless `spec` says else; returns it."""
        spec = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
        spec = {k: v for k, v in spec.items() if v is not None}
        return self.create("services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})


def pod(name, container=None, labels=None, annotations=None, **spec):
    main = {"name": "main", "image": TOOLS, "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"],
            **(container or {})}
    main = {k: v for k, v in main.items() if v is not None}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {"app": name}, "annotations": annotations or {}},
            "spec": {"containers": [main], **SOON, **spec}}
