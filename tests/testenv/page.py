# SPDX-License-Identifier: Apache-2.0
"""`sublet fleet` with its page, and with no other rights on the host than its chart gives it."""
import http.client
import json
import os

from .fleet import Fleet, chart_objects


def gpu_pod(pool, name, gpus):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "nodeSelector": pool["nodeSelector"], "tolerations": pool["tolerations"], "containers": [
            {"name": "main", "image": "example.com/x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}


class Events:
    """The server-sent events of one connection: next() -> (event, data)."""

    def __init__(self, connection):
        self.connection, self.response = connection, connection.getresponse()

    def next(self):
        fields = {}
        for line in iter(lambda: self.response.readline().decode().rstrip("\n"), ""):
            key, _, value = line.partition(": ")
            fields[key] = value
        return fields.get("event"), fields.get("data")

    def until(self, good, what):
        """The first state for which good(state) is true."""
        for _ in range(200):
            event, data = self.next()
            assert event in ("state", "seen"), (event, data, what)
            if event == "state" and good(json.loads(data)):
                return json.loads(data)
        raise AssertionError(f"not among 200 events: {what}")


class Page:
    """A fleet with a page and no other rights than the chart gives it."""

    def __init__(self, host, directory, tag, pools):
        self.host, self.namespace, self.made = host, f"page-{tag}", []
        host.create_namespace(self.namespace)
        kubeconfig = host.service_account_kubeconfig(self.namespace, "fleet")
        self.fleet = Fleet(os.path.join(directory, "fleet"), host, self.namespace, pools["pools"],
                           kubeconfig=kubeconfig, args=("--page", "127.0.0.1:0"))

    def create(self, path, body):
        self.made.append(f"{path}/{body['metadata']['name']}")
        return self.host.api.post(path, body)

    def allow(self, directory, **values):
        for o in chart_objects(directory, self.namespace, page={"enabled": True}, **values):
            if o["apiVersion"].startswith("rbac."):
                scope = f"/namespaces/{self.namespace}" if "namespace" in o["metadata"] else ""
                self.create(f"/apis/{o['apiVersion']}{scope}/{o['kind'].lower()}s", o)

    def account(self, name, may_look):
        """A token; may_look: bound to the chart's ClusterRole."""
        token = self.host.api.create_service_account(self.namespace, name, audience="sublet-fleet")
        if may_look:
            self.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{self.namespace}-{name}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": f"{self.namespace}-fleet:viewer"},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}]})
        return token

    def connect(self, tls=None):
        port = self.fleet.port("page")
        if tls:
            return http.client.HTTPSConnection("127.0.0.1", port, timeout=180, context=tls)
        return http.client.HTTPConnection("127.0.0.1", port, timeout=180)

    def ask(self, path="/fleet/state", token=None, method="GET", tls=None):
        """(status, headers, content)"""
        connection = self.connect(tls)
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def events(self, token):
        connection = self.connect()
        connection.request("GET", "/fleet/events", headers={"Authorization": f"Bearer {token}"})
        return Events(connection)

    def close(self):
        self.fleet.close()
        for path in reversed(self.made):
            self.host.api.delete(path)
        self.host.delete_namespace(self.namespace)
