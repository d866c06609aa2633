# SPDX-License-Identifier: Apache-2.0
"""`sublet host` as the host of a test: the face of HostCluster, one process behind it."""
import os
import re
import shutil

from . import binaries
from .api import Api
from .host import HostCluster
from .kubectl import Kubectl
from .process import Port, Process
from .virtual import sanitizer_env
from .wait import AWAY, eventually

NO_NODES = "nodes: []\n"  # a test adds its own


class EmbeddedHost(HostCluster):
    """host.start() ... host.stop(). Its only component, the process, goes by the name kube-apiserver.

    `options` are further arguments of the program.
    """

    ORDER = ("kube-apiserver",)

    def __init__(self, directory, nodes=NO_NODES, options=()):  # pylint: disable=super-init-not-called
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.bin = binaries.host_directory(("kubectl",))
        self.ports = {"kube-apiserver": Port()}
        self.url = f"https://127.0.0.1:{self.ports['kube-apiserver']}"
        self.store = os.path.join(self.dir, "data")
        self.kubeconfig = os.path.join(self.store, "kubeconfig")
        self.nodes_file = os.path.join(self.dir, "nodes.yaml")
        with open(self.nodes_file, "w", encoding="utf-8") as f:
            f.write(nodes)
        self.components = {"kube-apiserver": Process("sublet-host", [
            binaries.sublet(), "host", "--data-dir", self.store, "--nodes", self.nodes_file,
            "--listen", f"127.0.0.1:{self.ports['kube-apiserver']}", *options], self.dir, env=sanitizer_env())}
        self.kubectl = Kubectl(os.path.join(self.bin, "kubectl"), self.kubeconfig, self.dir)
        self.api = None

    @property
    def process(self):
        return self.components["kube-apiserver"]

    def start(self):
        try:
            self.start_component("kube-apiserver")
            eventually(lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 60,
                       "the default service account of the host")
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """SIGTERM; the exit code must be 0. Removes its data; the log stays."""
        if self.api:
            self.api.close()
        code = self.process.stop()
        for port in self.ports.values():
            port.close()
        shutil.rmtree(self.store, ignore_errors=True)
        assert code in (0, None), f"the embedded host ended with {code}:\n{self.process.tail()}"

    def wait_ready(self, name="kube-apiserver", timeout=60):
        """Waits for the ready line, then for /readyz; raises at once when the process has ended."""
        def ready_line():
            self.process.check()
            return re.search(r"\bready\b.*\n", self.process.output())

        def ready():
            self.process.check()
            return self.api.raw("GET", "/readyz")[0] == 200

        eventually(ready_line, timeout, "the ready line of the embedded host", interval=0.01)
        if self.api is None:
            self.api = Api(self.kubeconfig)
        eventually(ready, timeout, "/readyz of the embedded host", interval=0.01, also=AWAY)
