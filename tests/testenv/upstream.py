# SPDX-License-Identifier: Apache-2.0
"""Upstream's kube-controller-manager and kube-scheduler beside any API server, on their default flags.

They speak protobuf, elect a leader and act under their own names: the kubeconfig impersonates them, so
that the bootstrap roles of the server under test decide what they may.
"""
import http.client
import os
import re
import ssl

import yaml

from . import binaries
from .process import Port, Process
from .wait import eventually

MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"

# As kubeadm does: each controller acts under an account of its own.
OWN_FLAGS = {MANAGER: ("--use-service-account-credentials",), SCHEDULER: ()}

# What has no meaning where nodes and volumes are a host's.
VIRTUAL = ("*,-node-ipam-controller,-node-lifecycle-controller,-taint-eviction-controller,"
           "-persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,"
           "-persistentvolume-expander-controller")

# One line of klog: severity, date, time, thread, place, words.
KLOG = re.compile(r"^([IWEF])\d{4} [\d:.]+ +\d+ ([\w.-]+:\d+)\] (.*)$")


class Upstream(Process):
    """A program of upstream's: start(), stop(), lines("E")."""

    def __init__(self, program, kubeconfig, directory, extra=()):
        os.makedirs(directory, exist_ok=True)
        self.port = Port()
        config = _acting_as(f"system:{program}", kubeconfig, os.path.join(directory, f"{program}.kubeconfig"))
        argv = [binaries.host_program(program), "--kubeconfig=" + config,
                "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
                "--bind-address=127.0.0.1", f"--secure-port={self.port}",
                "--cert-dir=" + os.path.join(directory, program), *OWN_FLAGS[program], *extra]
        super().__init__(program, argv, directory)

    def start(self):
        super().start()
        try:
            eventually(self._is_leader, 120, f"{self.name} to lead")
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        """Ends it; its log stays."""
        self.kill()
        self.port.close()

    def _is_leader(self):
        self.check()
        return self.healthy() and any("successfully acquired lease" in words.lower() for _, words in self.lines("I"))

    def healthy(self):
        conn = http.client.HTTPSConnection("127.0.0.1", self.port.number, timeout=30,
                                           context=ssl._create_unverified_context())
        try:
            conn.request("GET", "/healthz")
            return conn.getresponse().status == 200
        except OSError:
            return False
        finally:
            conn.close()

    def lines(self, severities="EF"):
        """[(place in the source, words)] of its log."""
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            found = [KLOG.match(line.rstrip("\n")) for line in f]
        return [(m[2], m[3]) for m in found if m and m[1] in severities]


def manager(kubeconfig, directory, *extra):
    return Upstream(MANAGER, kubeconfig, directory, extra)


def scheduler(kubeconfig, directory, *extra):
    return Upstream(SCHEDULER, kubeconfig, directory, extra)


def _acting_as(user, admin, path):
    with open(admin, encoding="utf-8") as f:
        config = yaml.safe_load(f)
    for entry in config["users"]:
        entry["user"]["as"] = user
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump(config, f)
    os.chmod(path, 0o600)
    return path
