# SPDX-License-Identifier: Apache-2.0
"""A child process with a log, which ends when its test session ends, however that ends."""
import contextlib
import os
import signal
import socket
import subprocess
import weakref
from concurrent.futures import ThreadPoolExecutor

from .wait import eventually

# The kernel sends the death signal when the *thread* that forked ends; a test may start a process
# from a thread of its own, so all are started by this one, which lives as long as the session.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

LINE = 240  # of a log line, what a failure report shows
GO = {"GOGC": "400"}  # for a program in Go beside the subject: its heap grows fivefold before it is collected, not twofold
REGISTRY = weakref.WeakSet()


class ProcessDied(AssertionError):
    """The process is gone although no test ended it; waiting longer is of no use."""
    may_pass = False


class Port:
    """A port of 127.0.0.1 that stays ours while the process that listens on it is restarted.

    The socket is bound and never listens: the kernel then gives it to no other socket that binds port 0
    port, while a server that sets SO_REUSEADDR, as Go's and libuv's do, may still bind it.
    """

    def __init__(self):
        self._holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind(("127.0.0.1", 0))
        self.number = self._holder.getsockname()[1]

    def close(self):
        self._holder.close()

    def __str__(self):
        return str(self.number)

    __format__ = object.__format__


class Process:
    """name, argv, log file. start() / stop() / kill() / pause() / resume() / restart()."""

    def __init__(self, name, argv, directory, env=None):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.log_path = os.path.join(directory, f"{name}.log")
        self.out_path = os.path.join(directory, f"{name}.out")
        self.env = dict(os.environ, HOME=str(directory), **(env or {}))
        self._popen = None
        self._paused = False
        self._ended = True  # by us, or never started
        REGISTRY.add(self)

    @property
    def pid(self):
        assert self._popen is not None, f"{self.name} was never started"
        return self._popen.pid

    @property
    def alive(self):
        return self._popen is not None and self._popen.poll() is None

    def start(self, stdout=None):
        """stdout: a descriptor in place of the file that output() reads."""
        assert not self.alive, f"{self.name} is already running"
        argv = ["setpriv", "--pdeathsig", "KILL", "--"] + self.argv
        with open(self.log_path, "ab") as log, open(self.out_path, "wb") as out:
            self._popen = _spawner.submit(
                subprocess.Popen, argv, stdin=subprocess.DEVNULL, stdout=out if stdout is None else stdout, stderr=log,
                env=self.env, start_new_session=True).result()
        self._paused = self._ended = False
        return self

    @property
    def died(self):
        """It ended although no test ended it."""
        return not self._ended and not self.alive

    def ends(self):
        """Waits for its end; did no test end it?"""
        self._popen.wait()
        return self.died

    def check(self):
        """Raises when the process has ended, with the end of its log."""
        if not self.alive:
            code = None if self._popen is None else self._popen.returncode
            raise ProcessDied(f"{self.name} ended with {code}:\n{self.tail()}")

    def stop(self, timeout=180):
        """SIGTERM, and SIGKILL after `timeout` seconds; returns the exit code, None if not running."""
        if not self.alive:
            return None
        self.resume()
        self._ended = True
        self._popen.terminate()
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end within {timeout} s of SIGTERM:\n"
                                 f"{self.tail()}") from None

    def kill(self):
        """SIGKILL, and waits until it is gone."""
        if self.alive:
            self._ended = True
            self._popen.kill()
            self._popen.wait()

    def pause(self):
        """SIGSTOP: connections stay open and nothing answers. The signal waits for one of the threads to have a
        processor before it stops them all, so this waits until they stand."""
        self.check()
        os.kill(self.pid, signal.SIGSTOP)
        self._paused = True
        eventually(self._stands, 30, f"{self.name} to stand", interval=0.001)

    def _stands(self):
        return all(state == "T" for state in self._thread_states())

    def _thread_states(self):
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
                with open(f"/proc/{self.pid}/task/{task}/stat", encoding="ascii", errors="replace") as f:
                    yield f.read().rsplit(")", 1)[1].split()[0]

    def resume(self):
        if self._paused and self.alive:
            os.kill(self.pid, signal.SIGCONT)
        self._paused = False

    def wait(self, timeout=180):
        """Waits for the process to end by itself; returns the exit code."""
        code = self._popen.wait(timeout)
        self._ended = True
        return code

    def output(self):
        """What it has written to stdout since the last start."""
        with open(self.out_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def tail(self, lines=40):
        """The last lines of its log (stderr), over all starts."""
        try:
            with open(self.log_path, "rb") as f:
                f.seek(0, os.SEEK_END)
                f.seek(max(0, f.tell() - lines * LINE))
                text = f.read().decode("utf-8", "replace").splitlines()[-lines:]
                return "\n".join(x[:LINE] for x in text)
        except OSError:
            return ""

    def memory(self):
        """Bytes of memory by /proc/PID/smaps_rollup: {"rss", "pss", "private"}."""
        kb = {}
        with open(f"/proc/{self.pid}/smaps_rollup", encoding="ascii") as f:
            for line in f:
                key, _, rest = line.partition(":")
                if rest.strip().endswith("kB"):
                    kb[key] = int(rest.split()[0]) * 1024
        return {"rss": kb["Rss"], "pss": kb["Pss"],
                "private": kb["Private_Clean"] + kb["Private_Dirty"]}


def stop_all(processes, timeout=20):
    """Ends them together; one that does not end in time is killed."""
    running = [p for p in processes if p.alive]
    for p in running:
        p.resume()
        p._ended = True
        p._popen.terminate()
    for p in running:
        try:
            p._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            p.kill()
