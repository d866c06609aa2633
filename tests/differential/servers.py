# SPDX-License-Identifier: Apache-2.0
"""The two servers, both without controllers: only the suite changes objects."""
import os

from testenv.host import HostCluster
from testenv.virtual import VirtualCluster
from testenv.wait import eventually

CONFIG = {"policy": {"podSecurity": "privileged", "verdict": "off"}, "controllers": "external"}


class ApiServer(HostCluster):
    """etcd and kube-apiserver, nothing else; with the one plugin that Sublet has on and upstream off."""

    def __init__(self, directory, api_args=()):
        super().__init__(directory, api_args=["--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
                                              "--etcd-compaction-interval=0",  # history is as long as ours
                                              *api_args])

    def start(self):
        try:
            for name in ("etcd", "kube-apiserver"):
                self.start_component(name)
            eventually(lambda: self.api.get("/api/v1/namespaces/default"), 60, "the namespace default")
        except BaseException:
            self.stop()
            raise
        return self


def start_pair(directory, config=None, api_args=()):
    """(Sublet without a host, kube-apiserver), both ready."""
    there = ApiServer(os.path.join(str(directory), "oracle"), api_args)
    there.start()
    try:
        here = VirtualCluster("differential", str(directory), config={**CONFIG, **(config or {})}).start()
    except BaseException:
        there.stop()
        raise
    return here, there


def prepare(api, namespace):
    """What controllers would have made, and what seeds need."""
    api.raw("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for ns in (namespace, "default"):
        api.raw("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "default"}})
    eventually(lambda: api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"), 30, "the service account")
