# SPDX-License-Identifier: Apache-2.0
"""Real processes for the integration tests: one small class per process, nothing simulated but nodes.

It must never reach beyond this machine's loopback, never leave a process behind, and never sleep
where it can wait for what it needs (`eventually`).
"""
from .api import Api, ApiError
from .embedded import EmbeddedHost
from .host import HostCluster
from .kubectl import Kubectl, KubectlError
from .virtual import VirtualCluster
from .wait import AWAY, UNSET, eventually, never

__all__ = ["AWAY", "Api", "ApiError", "EmbeddedHost", "HostCluster", "Kubectl", "KubectlError", "UNSET",
           "VirtualCluster", "eventually", "never"]
