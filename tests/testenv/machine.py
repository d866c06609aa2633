# SPDX-License-Identifier: Apache-2.0
"""A machine for a kubelet, made of namespaces: network, processes, mounts and a cgroup of its own.

It is one process, the first of its PID namespace. When that ends, and it ends with the test session however that ends,
the kernel ends everything in it: containers and their shims, mounts, interfaces. Empty cgroups are what may be left
behind; the next machine of the same number removes them.

It must never write what is outside of it: /var/lib is an overlay, /run and /var/log are its own, and the settings of the
kernel that a kubelet wants look as it wants them.
"""
import fcntl
import os
import shutil
import subprocess
import sys

from .process import Process
from .wait import eventually

CNI = "/usr/lib/cni"
LOCKS = "/run/lock"
CGROUPS = "/sys/fs/cgroup"
MOST = 16  # machines at a time

# Commands and files it stands on, and the Debian package each is from.
NEEDED = {"nsenter": "util-linux", "unshare": "util-linux", "ip": "iproute2", "iptables": "iptables",
          f"{CNI}/ptp": "containernetworking-plugins", f"{CNI}/portmap": "containernetworking-plugins",
          "/bin/busybox": "busybox-static"}
# What a kubelet sets where it differs.
KERNEL = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
          "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
NAMESPACES = ("--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--mount", "--net", "--uts", "--ipc",
              "--propagation", "private")

FIRST = """set -e
mount --make-rshared /
mount -t overlay overlay -o "lowerdir=/var/lib,upperdir=$1/upper,workdir=$1/work" /var/lib
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
mkdir /run/lock
for f in $(cd "$1/kernel" && find . -type f); do mount --bind "$1/kernel/$f" "/proc/sys/$f"; done
hostname "$2"
ip link set lo up
trap '' CHLD # so that the kernel reaps what loses its parent
echo ready
exec sleep infinity
"""
# In namespaces, as the machine needs them, everything a kubelet needs of the kernel.
TRIAL = """mount -t tmpfs tmpfs /mnt && mkdir /mnt/l /mnt/u /mnt/w /mnt/m &&
mount -t overlay overlay -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w /mnt/m &&
ip link add veth0 type veth peer name veth1 && iptables -t nat -A POSTROUTING -m comment --comment x -j MASQUERADE"""


def missing():
    """What this machine lacks to be host of another, in words; empty: nothing."""
    if os.geteuid() != 0:
        return ["the right to make namespaces (root)"]
    lack = [f"{what} (Debian: {package})" for what, package in NEEDED.items() if not shutil.which(what)]
    lack += [f"the cgroup controller {c}" for c in CONTROLLERS if c not in _controllers()]
    if not os.access(next(_hierarchies(), ""), os.W_OK):
        lack.append(f"a writable {CGROUPS}")
    return lack or _trial()


def _trial():
    r = subprocess.run(["unshare", *NAMESPACES, "--", "sh", "-c", TRIAL], capture_output=True, text=True, check=False)
    return [f"namespaces, overlay mounts, veth pairs or NAT: {(r.stderr or r.stdout).strip()}"] if r.returncode else []


class Machine:
    """start() ... stop(); process(name, argv) is a Process on it, run(...) a command."""

    def __init__(self, name, directory):
        self.name = name
        self.dir = str(directory)
        self.number, self._lock = _take_number()
        n = self.number
        self.link = f"sublet-{n}"
        self.cgroup = f"sublet-machine-{n}"
        self.outside = f"10.210.{n}.1"  # of the test session, as seen from here
        self.address = f"10.210.{n}.2"
        self.pods = f"10.211.{n}.0/24"
        self.services = f"10.212.{16 * n}.0/20"
        self.first = None

    def start(self):
        for name in ("upper", "work", "kernel"):
            os.makedirs(os.path.join(self.dir, name), exist_ok=True)
        for key, value in KERNEL.items():
            if os.path.exists(f"/proc/sys/{key}"):
                _write(os.path.join(self.dir, "kernel", key), f"{value}\n")
        _remove_cgroup(self.cgroup)
        for hierarchy in _hierarchies():
            os.mkdir(os.path.join(hierarchy, self.cgroup))
        self.first = Process("machine", ["unshare", *NAMESPACES, "--", "sh", "-c", FIRST, "sh", self.dir, self.name], self.dir)
        self.first.start()
        eventually(self._is_up, 30, "the machine's first process", interval=0.01)
        self._connect()
        return self

    def _is_up(self):
        self.first.check()
        return "ready" in self.first.output()

    def _connect(self):
        """A pair of interfaces: this end is the session's; the way to pods and Services is through the other."""
        pid = self.pid()
        eventually(lambda: _ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", pid), 10,
                   f"{self.link}, which the machine before had")
        _ip("addr", "add", f"{self.outside}/24", "dev", self.link)
        _ip("link", "set", self.link, "up")
        self.run("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "route", "add", "default", "via", self.outside)
        for net in (self.pods, self.services):
            _ip("route", "add", net, "via", self.address)

    def pid(self):
        """Of its first process, as seen from outside."""
        with open(f"/proc/{self.first.pid}/task/{self.first.pid}/children", encoding="ascii") as f:
            return f.read().split()[0]

    def stop(self):
        """Ends all that runs on it."""
        if self.first:
            self.first.kill()
        eventually(lambda: _remove_cgroup(self.cgroup), 60, f"the cgroup {self.cgroup} to be empty", also=(OSError,))
        eventually(lambda: not os.path.exists(f"/sys/class/net/{self.link}"), 60, f"{self.link} to be gone")
        for name in ("upper", "work"):
            shutil.rmtree(os.path.join(self.dir, name), ignore_errors=True)
        os.close(self._lock)

    def _enter(self):
        return ["nsenter", "--target", self.pid(), "--mount", "--net", "--pid", "--uts", "--ipc", "--"]

    def process(self, name, argv, env=None):
        """A Process on this machine, not started. It ends with the nsenter that is seen from outside."""
        return Process(name, [*self._enter(), "setpriv", "--pdeathsig", "KILL", "--", *argv], self.dir, env)

    def run(self, *argv, stdin=None):
        """Runs a command on it; returns its stdout."""
        r = subprocess.run([*self._enter(), *map(str, argv)], input=stdin, capture_output=True, text=True, timeout=300,
                           check=False)
        assert r.returncode == 0, f"{' '.join(map(str, argv))}: exit {r.returncode}\n{r.stderr}{r.stdout}"
        return r.stdout


def _take_number():
    os.makedirs(LOCKS, exist_ok=True)
    for n in range(MOST):
        lock = os.open(os.path.join(LOCKS, f"sublet-machine-{n}"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return n, lock
        except BlockingIOError:
            os.close(lock)
    raise AssertionError(f"{MOST} machines are up already")


def _ip(*args):
    r = subprocess.run(["ip", *args], capture_output=True, text=True, check=False)
    assert r.returncode == 0, f"ip {' '.join(args)}: {r.stderr}"
    return True


def _hierarchies():
    """Where cgroups can be made: one directory with cgroup v2, one per controller with v1."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            _, path, kind = line.split()[:3]
            if kind in ("cgroup", "cgroup2") and path.startswith(CGROUPS):
                yield path


def _controllers():
    """Those that are mounted (v1), and those of a v2 root that has none of its own processes in the way."""
    found = set()
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            _, path, kind, options = line.split()[:4]
            if kind == "cgroup":
                found.update(options.split(","))
            elif kind == "cgroup2" and os.path.exists(os.path.join(path, "cgroup.controllers")):
                with open(os.path.join(path, "cgroup.controllers"), encoding="ascii") as c:
                    found.update(c.read().split())
    return found


def _remove_cgroup(name):
    for hierarchy in _hierarchies():
        for directory, _, _ in os.walk(os.path.join(hierarchy, name), topdown=False):
            os.rmdir(directory)
    return True


def _write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":  # what is lacking, and an exit code
    lack_ = missing()
    print("; ".join(lack_))
    sys.exit(1 if lack_ else 0)
