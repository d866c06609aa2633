# SPDX-License-Identifier: Apache-2.0
"""An aggregated metrics API of a host: kube-apiserver passes metrics.k8s.io on to it by an APIService.

metrics-server itself needs kubelets. This one measures what `usage` says of the host's running pods, and answers the
label selectors and namespaces of requests as metrics-server does.
"""
import json
import os
import threading
import time
import urllib.parse

from .https import JsonServer
from .pki import Pki
from .process import Port
from .wait import eventually

ROOT = "/apis/metrics.k8s.io/v1beta1"
SERVICE = "/api/v1/namespaces/kube-system/services"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class MetricsApi:
    """start(), stop(). usage(pod) -> {container: (cpu, memory)} of a host pod, None: not measured."""

    def __init__(self, host, directory):
        os.makedirs(directory, exist_ok=True)
        self.host, self.api = host, host.api.clone()
        self.cert = Pki(os.path.join(directory, "pki")).issue("metrics", "/CN=metrics", hosts=("localhost",))
        self.port = Port()
        self.usage = lambda pod: {c["name"]: ("100m", "64Mi") for c in pod["spec"]["containers"]}
        self.node_usage = {}  # name -> (cpu, memory)
        self.requests = []
        self._server = None
        self._lock = threading.Lock()

    def start(self):
        self._server = JsonServer(self.cert, self.port, self.answer)
        self.host.api.post(SERVICE, {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics"},
            "spec": {"type": "ExternalName", "externalName": "localhost"}})
        self.host.api.post(API_SERVICES, {
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
                     "versionPriority": 100, "insecureSkipTLSVerify": True,
                     "service": {"namespace": "kube-system", "name": "metrics", "port": self.port.number}}})
        eventually(lambda: "items" in self.host.api.get(f"{ROOT}/nodes"), 60, "the host's metrics API", also=(404, 503))
        return self

    def unregister(self):
        self.host.api.raw("DELETE", f"{API_SERVICES}/v1beta1.metrics.k8s.io")
        self.host.api.raw("DELETE", f"{SERVICE}/metrics")

    def stop(self):
        self.unregister()
        if self._server:
            self._server.stop()
        self.port.close()
        self.api.close()

    # --- answers --------------------------------------------------------------------------------

    def answer(self, target):
        path, _, query = target.partition("?")
        query = urllib.parse.parse_qs(query)
        self.requests.append(target)
        try:
            body = self._body(path, query)
        except Exception as e:  # noqa: BLE001 - the other side has to see it
            body = None
            print("metrics:", e)
        return 200 if body else 404, json.dumps(
            body or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                     "reason": "NotFound", "message": "not found"}).encode()

    def _body(self, path, query):
        if path == "/apis/metrics.k8s.io/v1beta1":
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [
                {"name": n, "singularName": "", "namespaced": n == "pods", "kind": k, "verbs": ["get", "list"]}
                for n, k in (("nodes", "NodeMetrics"), ("pods", "PodMetrics"))]}
        if path == f"{ROOT}/nodes":
            return self._list("NodeMetrics", [
                {"metadata": {"name": n}, **self._times(), "usage": {"cpu": c, "memory": m}}
                for n, (c, m) in sorted(self.node_usage.items())])
        if path.startswith(f"{ROOT}/namespaces/") and path.endswith("/pods"):
            return self._pods(path.split("/")[5], query.get("labelSelector", [""])[0])
        return None

    def _pods(self, namespace, selector):
        with self._lock:
            pods = self.api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)["items"]
        items = []
        for pod in pods:
            usage = self.usage(pod) if pod["status"].get("phase") == "Running" else None
            if usage is not None:
                items.append({"metadata": {"name": pod["metadata"]["name"], "namespace": namespace,
                                           "labels": pod["metadata"].get("labels", {})}, **self._times(),
                              "containers": [{"name": n, "usage": {"cpu": c, "memory": m}}
                                             for n, (c, m) in usage.items()]})
        return self._list("PodMetrics", items)

    @staticmethod
    def _times():
        return {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "window": "15s"}

    @staticmethod
    def _list(kind, items):
        return {"kind": f"{kind}List", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}
