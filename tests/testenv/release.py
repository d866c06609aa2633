# SPDX-License-Identifier: Apache-2.0
"""A virtual cluster as the chart installs it on a NodeHost: a pod of the real image under the chart's own RBAC."""
import base64
import os

import yaml

from .access import Access
from .helm import CHART, Helm
from .node import DISKS, SUBLET
from .virtual import merge
from .wait import AWAY, UNSET, eventually

# A node of two processors has room for many pods if each reserves little.
SMALL = {"cpu": "5m", "memory": "16Mi", "ephemeral-storage": "16Mi"}
VALUES = {"image": {"repository": SUBLET.rpartition(":")[0], "tag": SUBLET.rpartition(":")[2], "pullPolicy": "Never"},
          "persistence": {"storageClass": DISKS},
          "resources": {"requests": SMALL, "limits": {"cpu": "2", "memory": "768Mi"}},
          "limitRange": {"defaultRequest": SMALL},
          "rbac": {"clusterRole": {"enabled": True}}}


class Release(Access):
    """install() ... remove(); kubectl, api and kubeconfig are the tenant's admin, by the Service's address."""

    def __init__(self, host, name, directory, values=None, namespace=None):
        self.host = host
        self.name = name
        self.namespace = namespace or f"team-{name}"
        self.dir = os.path.join(str(directory), name)
        os.makedirs(self.dir)
        self.values = merge(VALUES, values or {})
        self.tenant_namespace = self.values.get("tenantNamespace") or self.namespace
        self.helm = Helm(self.dir, host.kubeconfig)
        self.on_host = host.kubectl.within(self.namespace)
        self.kubeconfig = os.path.join(self.dir, "kubeconfig")
        self.has_namespace = False

    def create_namespace(self):
        standard = self.values.get("config", {}).get("policy", {}).get("podSecurity", "baseline")
        self.host.create_namespace(self.namespace, {"pod-security.kubernetes.io/enforce": standard})
        self.has_namespace = True

    def install(self):
        if not self.has_namespace:
            self.create_namespace()
        self.helm("install", self.name, CHART, "-n", self.namespace, values=self.values)
        self.wait_ready()
        return self

    def upgrade(self, values):
        self.values = merge(self.values, values)
        self.helm("upgrade", self.name, CHART, "-n", self.namespace, values=self.values)
        self.wait_ready()

    def remove(self):
        """The release, the namespace and all that is in it."""
        self.close_api()
        self.helm("uninstall", self.name, "-n", self.namespace)
        self.host.delete_namespace(self.namespace)

    def wait_ready(self):
        self.on_host("rollout", "status", f"statefulset/{self.name}", "--timeout=300s")
        self._write_kubeconfig()
        eventually(lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 60,
                   f"the API of {self.name} by its Service", also=AWAY)

    def address(self, suffix=""):
        """The cluster IP of the release's Service, or of another that has its name and a suffix."""
        return self.on_host.json("get", "service", self.name + suffix)["spec"]["clusterIP"]

    def _write_kubeconfig(self):
        """What the program publishes, with an address in place of a name that only pods resolve."""
        secrets = self.host.kubectl.within(self.tenant_namespace)
        secret = eventually(lambda: secrets.json("get", "secret", f"{self.name}-kubeconfig")["data"]["value"], 60,
                            "the published kubeconfig", also=UNSET)
        config = yaml.safe_load(base64.b64decode(secret))
        config["clusters"][0]["cluster"]["server"] = f"https://{self.address()}"
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            yaml.safe_dump(config, f)

    def in_control_plane(self, *argv):
        """The output of a command in the release's pod."""
        return self.on_host("exec", f"{self.name}-0", "--", *argv)
