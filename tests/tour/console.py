# SPDX-License-Identifier: Apache-2.0
"""What the tour says: commands with their outputs, and claims, each with what was seen of it.

A claim holds when its check returns, and fails with the reason when it raises; none is taken from what was printed.
"""
import os
import subprocess
import sys
import time

from testenv import UNSET, eventually

WIDTH = 150


class Refusal(AssertionError):
    """A command succeeded that had to fail, or the other way round: waiting longer changes nothing."""
    may_pass = False


class Console:
    """title(...), step(...), show(cluster, command), refused(cluster, command), claim(...), summary() -> exit code."""

    def __init__(self, directory, programs, folder, step=False):
        self.directory, self.programs, self.folder, self.waits = directory, programs, folder, step
        self.claims, self.kubeconfigs = [], {}
        self.bold, self.dim, self.plain = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "")

    def say(self, line=""):
        print(line, flush=True)

    def title(self, line):
        self.say(f"\n{self.bold}{line}{self.plain}")

    def step(self, name, what, do):
        begin = time.monotonic()
        value = do()
        self.say(f"  {name:<11} {what:<66} {time.monotonic() - begin:6.1f} s")
        return value

    def pause(self, name):
        """Between two acts, where somebody wants to look around."""
        if self.waits:
            self.say(f"\n-- {name}: Enter goes on")
            sys.stdin.readline()

    # --- commands -----------------------------------------------------------------------------------

    def run(self, cluster, command):
        """A command line of the shell there; (exit code, what it printed)."""
        env = {**os.environ, "HOME": self.directory, "KUBECONFIG": self.kubeconfigs[cluster], "NO_PROXY": "*",
               "PATH": os.pathsep.join([self.programs, os.environ["PATH"]])}
        r = subprocess.run(["/bin/bash", "-o", "pipefail", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, env=env, cwd=self.folder, timeout=600, check=False)
        return r.returncode, r.stdout

    def do(self, cluster, command):
        """What it printed; it must succeed."""
        code, out = self.run(cluster, command)
        if code:
            raise Refusal(f"{command}: exit {code}\n{out}")
        return out

    def show(self, cluster, command, most=None):
        """The same, said aloud; of more lines than `most` the first."""
        out = self.do(cluster, command)
        lines = out.splitlines()
        self._print(cluster, command, lines[:most] + ([f"... {len(lines) - most} more"] if most and len(lines) > most else []))
        return out

    def refused(self, cluster, command):
        """What has to fail, said aloud with its reason."""
        code, out = self.run(cluster, command)
        self._print(cluster, command, out.splitlines())
        if not code:
            raise Refusal(f"this ought to have been refused: {command}")
        return out

    def _print(self, cluster, command, lines):
        self.say(f"  {self.dim}{cluster} $ {command}{self.plain}")
        for line in lines:
            while len(line) > WIDTH:
                cut = line.rfind(" ", 0, WIDTH)
                cut = cut if cut > 0 else WIDTH
                self.say("    " + line[:cut])
                line = "  " + line[cut:].lstrip()
            self.say("    " + line.rstrip())

    # --- claims -------------------------------------------------------------------------------------

    def claim(self, what, check, timeout=45):
        """check() is called until it returns what was seen; the reason why it does not is the claim's failure."""
        try:
            seen, holds = str(eventually(check, timeout, what, also=UNSET)), True
        except Exception as e:  # pylint: disable=broad-exception-caught
            seen, holds = f"{type(e).__name__}: {e}", False
            self.say(f"  FAILED: {what}: {seen}")
        self.claims.append((what, holds, seen))
        return holds

    def summary(self):
        """A line for each claim; the exit code."""
        failed = sum(not holds for _, holds, _ in self.claims)
        self.title("What was claimed, and what was seen:")
        for what, holds, seen in self.claims:
            self.say(f"  {'ok  ' if holds else 'FAIL'} {what:<66} {seen.splitlines()[0][:WIDTH]}")
        self.say(f"\n{len(self.claims) - failed} of {len(self.claims)} claims hold")
        return 1 if failed or not self.claims else 0
