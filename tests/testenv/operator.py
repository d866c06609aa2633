# SPDX-License-Identifier: Apache-2.0
"""A replica of the operator in integration/operator, and what it says."""
import json
import re

from . import binaries
from .process import Process

# What depends on the moment, not on the server: a client's words while its server is away, while another writer is
# ahead of it, and while the client itself is ended (its leader election may see that before its manager does).
MOMENT = re.compile(r"connection refused|connection reset|connection lost|broken pipe|\bEOF\b|GOAWAY|timed? ?out|"
                    r"deadline exceeded|server is currently unable|apiserver not ready|not yet ready|too old resource|"
                    r"the object has been modified|error received after stop sequence was engaged: leader election lost|"
                    r"Error retrieving lease lock: context canceled")
NAMES = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|127\.0\.0\.1:\d+|\b[0-9a-f]{16}\b|\b\d+\b")


class Operator(Process):
    """operator.start() ... operator.stop(); .errors() are its error lines, less those of a moment. lease: in seconds."""

    def __init__(self, identity, kubeconfig, namespace, directory, watch_list, lease):
        argv = [binaries.operator(), "-namespace", namespace, "-identity", identity, f"-lease={lease}s"]
        super().__init__(f"operator-{identity}", argv, directory, env={
            "KUBECONFIG": kubeconfig, "NO_PROXY": "*", "no_proxy": "*",
            "KUBE_FEATURE_WatchListClient": "true" if watch_list else "false"})

    def lines(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            for line in f:
                try:
                    yield json.loads(line)
                except ValueError:  # a panic, or the last line of a killed process
                    if line.endswith("\n"):
                        yield {"level": "ERROR", "msg": line.strip()}

    def errors(self):
        """Messages without names, numbers and addresses; a set."""
        said = (f"{x.get('msg')}: {x.get('err', '')}" for x in self.lines() if x.get("level") != "INFO")
        return {NAMES.sub("N", s) for s in said if not MOMENT.search(s)}

    def leads(self):
        return any(x.get("msg") == "Starting workers" for x in self.lines())

    def overtaken(self):
        """Whether its end cut off a renewal of its lease, so that the release met a Lease it had not seen."""
        said = {x.get("msg"): str(x.get("err", "")) for x in self.lines() if x.get("level") != "INFO"}
        return ("context canceled" in said.get("Error retrieving lease lock", "") and
                "the object has been modified" in said.get("Failed to release lease", ""))
