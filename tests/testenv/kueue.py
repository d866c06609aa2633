# SPDX-License-Identifier: Apache-2.0
"""The real Kueue on a host cluster: its definitions and webhooks from its module, its controller as a process.

kube-apiserver reaches the webhooks by a Service of type ExternalName; certificates are Kueue's own, which a cluster would
mount from the Secret that it fills.
"""
import base64
import os
import subprocess

import yaml

from . import binaries
from .api import ApiError
from .process import Port, Process
from .wait import AWAY, eventually

NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"
KEPT = ("CustomResourceDefinition", "Secret", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
PATHS = {"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         "Secret": f"/api/v1/namespaces/{NAMESPACE}/secrets",
         "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
         "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"}
API = "/apis/kueue.x-k8s.io/v1beta2"
OURS = ("pod", "clusterqueue", "cohort", "resourceflavor", "workload")  # whose webhooks are kept


def made(kind, name, spec=None):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec or {}}


class Kueue:
    """start(), stop(). queue(namespace, name, gpus) makes a flavor, a ClusterQueue and a LocalQueue of it."""

    def __init__(self, host, directory):
        self.host, self.dir = host, str(directory)
        os.makedirs(os.path.join(self.dir, "certs"), exist_ok=True)
        self.port, self.health = Port(), Port()
        self.objects = [self._at_our_port(o) for o in self._rendered() if o["kind"] in KEPT]
        self.process = Process("kueue", [binaries.queue_program("kueue")[0], "--config=" + self._config(), "--zap-log-level=2",
                                         "--feature-gates=VisibilityOnDemand=false"], self.dir,
                               env={"KUBECONFIG": host.kubeconfig, "NO_PROXY": "*", "no_proxy": "*"})

    def _no_namespace(self):
        try:
            self.host.api.get(f"/api/v1/namespaces/{NAMESPACE}")
        except ApiError as e:
            return e.code == 404
        return False

    def start(self):
        api = self.host.api
        eventually(self._no_namespace, 120, "the end of another module's Kueue")
        self.host.create_namespace(NAMESPACE)
        api.post(f"/api/v1/namespaces/{NAMESPACE}/services", {
            "metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
        for o in self.objects:
            api.post(PATHS[o["kind"]], o)
        self.process.start()
        try:
            data = eventually(lambda: api.get(f"{PATHS['Secret']}/{SECRET}").get("data"), 60, "Kueue's certificate")
            for name, value in data.items():
                with open(os.path.join(self.dir, "certs", name), "wb") as f:
                    f.write(base64.b64decode(value))
            eventually(self._answers, 180, "Kueue's webhooks", also=(404, 429, 500, *AWAY))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """Its webhooks first: without a server behind them nothing could be written."""
        api = self.host.api
        for o in reversed(self.objects):
            if o["kind"].endswith("WebhookConfiguration"):
                api.raw("DELETE", f"{PATHS[o['kind']]}/{o['metadata']['name']}")
        for kind in ("workloads", "localqueues", "clusterqueues", "resourceflavors"):
            self._drop(kind)
        self.process.kill()  # before its certificates are everywhere it does not end by itself
        for o in self.objects:
            api.raw("DELETE", f"{PATHS[o['kind']]}/{o['metadata']['name']}")
        self.host.delete_namespace(NAMESPACE)
        self.port.close()
        self.health.close()

    def queue(self, namespace, name, gpus, **flavor):
        api = self.host.api
        api.post(f"{API}/resourceflavors", made("ResourceFlavor", name, flavor))
        api.post(f"{API}/clusterqueues", made("ClusterQueue", f"all-{name}", {
            "namespaceSelector": {}, "resourceGroups": [{
                "coveredResources": ["cpu", "memory", "nvidia.com/gpu"],
                "flavors": [{"name": name, "resources": [
                    {"name": "cpu", "nominalQuota": "100"}, {"name": "memory", "nominalQuota": "100Gi"},
                    {"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}]}]}]}))
        api.post(f"{API}/namespaces/{namespace}/localqueues", made("LocalQueue", name, {"clusterQueue": f"all-{name}"}))

    def drop_queue(self, namespace, name):
        """What queue() made; once nothing uses it."""
        paths = [f"{API}/namespaces/{namespace}/localqueues/{name}", f"{API}/clusterqueues/all-{name}",
                 f"{API}/resourceflavors/{name}"]
        for path in paths:
            self.host.api.delete(path)
        eventually(lambda: all(self.host.api.raw("GET", p)[0] == 404 for p in paths), 60, "the queue to be gone")

    # --- parts ----------------------------------------------------------------------------------

    def _rendered(self):
        module = binaries.module_source("sigs.k8s.io/kueue@v" + binaries.queue_program("kueue")[1])
        text = subprocess.run([binaries.host_program("kubectl"), "kustomize", os.path.join(module, "config", "default")],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        return [o for o in yaml.load_all(text, yaml.CSafeLoader) if o]

    def _at_our_port(self, o):
        if o["kind"].endswith("WebhookConfiguration"):
            o["webhooks"] = [w for w in o["webhooks"] if w["name"][1:].split(".")[0] in OURS]
            for w in o["webhooks"]:
                w["clientConfig"]["service"]["port"] = self.port.number
        elif o["kind"] == "CustomResourceDefinition" and "conversion" in o["spec"]:
            o["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] = self.port.number
        return o

    def _config(self):
        path = os.path.join(self.dir, "kueue.yaml")
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump({
                "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": NAMESPACE,
                "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health}"}, "metrics": {"bindAddress": "0"},
                "webhook": {"port": self.port.number, "host": "127.0.0.1", "certDir": os.path.join(self.dir, "certs")},
                "leaderElection": {"leaderElect": False}, "integrations": {"frameworks": ["pod"]},
                "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET}}, f)
        return path

    def _answers(self):
        self.process.check()
        return self.host.api.post(f"{API}/resourceflavors", made("ResourceFlavor", "probe"), dryRun="All")

    def _drop(self, kind):
        """Kueue's finalizers go with Kueue's own consent, as long as it runs."""
        api = self.host.api
        try:
            items = api.get(f"{API}/{kind}")["items"]
        except ApiError:
            return
        for o in items:
            ns = o["metadata"].get("namespace")
            path = f"{API}/namespaces/{ns}/{kind}" if ns else f"{API}/{kind}"
            api.raw("DELETE", f"{path}/{o['metadata']['name']}")
            api.raw("PATCH", f"{path}/{o['metadata']['name']}", {"metadata": {"finalizers": None}},
                    content_type="application/merge-patch+json")
