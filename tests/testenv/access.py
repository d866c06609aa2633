# SPDX-License-Identifier: Apache-2.0
"""How a test reaches a virtual cluster, however it runs: by `api` and `kubectl`, over its kubeconfig."""
from . import binaries
from .api import Api
from .kubectl import Kubectl


class Access:
    """Of a class with `kubeconfig` and `dir`; the connection opens on first use."""

    kubeconfig = dir = None
    _api = None

    @property
    def api(self):
        if self._api is None:
            self._api = Api(self.kubeconfig)
        return self._api

    @property
    def kubectl(self):
        return self.kubectl_as(self.kubeconfig)

    def kubectl_as(self, kubeconfig):
        """kubectl for another user of this cluster."""
        return Kubectl(binaries.host_program("kubectl"), kubeconfig, self.dir)

    def close_api(self):
        if self._api:
            self._api.close()
        self._api = None
