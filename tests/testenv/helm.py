# SPDX-License-Identifier: Apache-2.0
"""helm bound to one kubeconfig, and the chart of this tree."""
import os
import subprocess

import yaml

from . import binaries
from .process import GO

CHART = os.path.join(binaries.TREE, "charts", "sublet")


class Helm:
    """h("list") -> stdout; h.template(...) -> objects; h.fails(...) -> stderr. Values are dictionaries."""

    def __init__(self, directory, kubeconfig=None):
        self.binary = binaries.host_program("helm")
        self.directory = str(directory)
        self.env = {"PATH": os.environ.get("PATH", ""), "NO_PROXY": "*", "HOME": self.directory, **GO}
        for kind in ("CACHE", "CONFIG", "DATA"):
            self.env[f"HELM_{kind}_HOME"] = os.path.join(self.directory, f"helm-{kind.lower()}")
        if kubeconfig:
            self.env["KUBECONFIG"] = kubeconfig
        self._files = 0

    def __call__(self, *args, values=None, timeout=900):
        code, out, err = self.run(*args, values=values, timeout=timeout)
        assert code == 0, f"helm {' '.join(args)}: exit {code}\n{err}{out}"
        return out

    def run(self, *args, values=None, timeout=900):
        """Runs helm; returns (exit code, stdout, stderr)."""
        files = ["-f", self._write(values)] if values is not None else []
        r = subprocess.run([self.binary, *map(str, args), *files], capture_output=True, text=True,
                           timeout=timeout, check=False, env=self.env)
        return r.returncode, r.stdout, r.stderr

    def fails(self, *args, values=None):
        """Runs helm, which must fail; returns its stderr (of lint: its stdout, too)."""
        code, out, err = self.run(*args, values=values)
        assert code != 0, f"helm {' '.join(args)} succeeded:\n{out}"
        return err + out if args[0] == "lint" else err

    def template(self, release, namespace, values=None, *args):
        """The objects of the chart, as dictionaries."""
        text = self("template", release, CHART, "-n", namespace, *args, values=values or {})
        return [o for o in yaml.safe_load_all(text) if o]

    def _write(self, values):
        self._files += 1
        path = os.path.join(self.directory, f"values-{self._files}.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(values if isinstance(values, str) else yaml.safe_dump(values))
        return path
