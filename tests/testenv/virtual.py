# SPDX-License-Identifier: Apache-2.0
"""One `sublet serve` process: a virtual cluster under test."""
import os
import re
import shutil

import yaml

from . import binaries
from .access import Access
from .pki import derive_kubeconfig
from .process import Port, Process
from .wait import AWAY, eventually

START_TIMEOUT = 60

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=98:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=97",
}


class VirtualCluster(Access):
    """vc.start() ... vc.stop(); vc.kubectl, vc.api, vc.kubeconfig are the tenant's admin.

    `host` may be None: then there is no `host:` in the configuration unless `config` has one.
    `config` is merged over the defaults, maps key by key, everything else replaced.
    """

    def __init__(self, name, directory, host=None, namespace=None, config=None, host_kubeconfig=None):
        self.name = name
        self.dir = os.path.join(str(directory), name)
        self.namespace = namespace
        self.host = host
        os.makedirs(self.dir, exist_ok=True)
        self.port = Port()
        self.store = os.path.join(self.dir, "data")
        self.config_path = os.path.join(self.dir, "config.yaml")
        self.kubeconfig = os.path.join(self.store, "kubeconfig")
        self.config = merge(self._defaults(host_kubeconfig), config or {})
        self.write_config()
        self.process = Process(f"sublet-{name}", [binaries.sublet(), "serve", "--config", self.config_path],
                               self.dir, env=sanitizer_env())
        self.ready_line = ""

    def _defaults(self, host_kubeconfig):
        config = {"name": self.name, "listen": {"address": f"127.0.0.1:{self.port}"},
                  "store": {"path": self.store}}
        if self.host:
            config["host"] = {"namespace": self.namespace,
                              "kubeconfig": host_kubeconfig or self.host.kubeconfig}
        return config

    def write_config(self, overrides=None):
        """Writes the configuration file; takes effect at the next start."""
        self.config = merge(self.config, overrides or {})
        with open(self.config_path, "w", encoding="utf-8") as f:
            yaml.safe_dump(self.config, f, sort_keys=False)

    # --- life -----------------------------------------------------------------------------------

    def start(self, wait=True):
        self.process.start()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, timeout=START_TIMEOUT):
        """Waits for the ready line, then for /readyz; raises at once when the process has ended."""
        eventually(self._read_ready_line, timeout, f"the ready line of {self.name}", interval=0.01)
        self.close_api()

        def ready():
            self.process.check()
            return self.api.raw("GET", "/readyz")[0] == 200

        eventually(ready, timeout, f"/readyz of {self.name}", interval=0.01, also=AWAY)

    def stop(self):
        """SIGTERM; the exit code must be 0 (a leak or a sanitizer finding makes it another)."""
        self.close_api()
        code = self.process.stop()
        assert code in (0, None), f"{self.name} ended with {code}:\n{self.process.tail()}"

    def kill(self):
        """kill -9."""
        self.close_api()
        self.process.kill()

    def restart(self, kill=False, wait=True):
        """Stops (or kills) and starts it on the same port and store."""
        (self.kill if kill else self.stop)()
        return self.start(wait)

    def close(self):
        """The end of a test: stops it if it runs, frees the port, removes its data."""
        try:
            if self.process.died:
                self.process.check()
            self.stop()
        finally:
            self.kill()
            self.port.close()
            shutil.rmtree(self.store, ignore_errors=True)

    def _read_ready_line(self):
        self.process.check()
        lines = [x for x in self.process.output().splitlines(keepends=True)
                 if x.endswith("\n") and re.search(r"\bready\b", x)]
        self.ready_line = lines[0].strip() if lines else ""
        return self.ready_line

    # --- access ---------------------------------------------------------------------------------

    def user_kubeconfig(self, name, **credentials):
        """A kubeconfig of another user: token=..., or cert= and key= (paths); returns its path."""
        path = os.path.join(self.dir, f"{name}.kubeconfig")
        return derive_kubeconfig(path, self.kubeconfig, **credentials)

    def service_account_kubeconfig(self, namespace, name):
        """Creates a service account in this cluster and returns a kubeconfig with a token of it."""
        return self.user_kubeconfig(f"{namespace}-{name}",
                                    token=self.api.create_service_account(namespace, name))

    @property
    def pid(self):
        return self.process.pid

    def memory(self):
        """{"rss", "pss", "private"} in bytes."""
        return self.process.memory()

    def rss(self):
        return self.memory()["rss"]

    # --- what the host holds of it ----------------------------------------------------------------

    def host_pods(self):
        """The host's pods of this cluster, in a list: two of one name would both be in it."""
        return self.host_objects("/api/v1", "pods")

    def host_objects(self, group_path, resource):
        """What this cluster made on the host of a resource."""
        items = self.host.api.get(f"{group_path}/namespaces/{self.namespace}/{resource}")["items"]
        return [o for o in items if "sublet.dev/name" in o["metadata"].get("annotations", {})]


def merge(base, over):
    """`over` over `base`: maps key by key, everything else replaced; a None removes the key."""
    out = dict(base)
    for key, value in over.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merge(out[key], value)
        else:
            out[key] = value
    return out


def sanitizer_env():
    return {k: ":".join(filter(None, [v, os.environ.get(k)])) for k, v in SANITIZERS.items()}
