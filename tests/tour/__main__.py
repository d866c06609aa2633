# SPDX-License-Identifier: Apache-2.0
"""`tests/demo teams [--step] [--directory D]`: the tour of examples/ten-teams; exit code 1 when a claim fails."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

from testenv import binaries

from .acts import ACTS
from .cluster import EXAMPLE, TenTeams, team_names
from .console import Console

GRACE = "15s"  # of the notice; the example's own is two minutes, which a tour need not wait for


def arguments(argv):
    p = argparse.ArgumentParser(prog="tests/demo teams", description="Ten teams on five machines with GPUs and five without: a tour, every claim checked.")
    p.add_argument("--step", action="store_true", help="wait for Enter after each act, to look around")
    p.add_argument("--directory", help="where its files are (default: a temporary directory, removed at the end)")
    return p.parse_args(argv)


def programs(directory):
    """A directory with kubectl and sublet, for the commands of the tour."""
    path = os.path.join(directory, "programs")
    os.makedirs(path, exist_ok=True)
    for name, target in (("kubectl", binaries.host_program("kubectl")), ("sublet", binaries.sublet())):
        link = os.path.join(path, name)
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(target, link)
    return path


def start(c, t):
    c.title("Ten teams on one GPU cluster, each with a Kubernetes of its own")
    c.step("host", "kube-apiserver, etcd, scheduler; 5 machines with GPUs, 5 without", t.start_host)
    c.kubeconfigs["host"] = t.host.kubeconfig
    c.step("fleet", "charts/sublet-fleet; four GPUPools, nine GPUBindings", t.start_fleet)
    c.step("teams", "charts/sublet, ten times, and their processes", t.start_teams)
    for name in team_names():
        c.kubeconfigs[name] = t.teams[name].kubeconfig
    c.step("work", "each team applies what it runs", t.start_work)
    if c.waits:
        for name, path in c.kubeconfigs.items():
            c.say(f"    export KUBECONFIG={path}  # {name}")


def tour(c, t):
    for name, act in ACTS:
        try:
            act(c, t)
        except Exception as e:  # pylint: disable=broad-exception-caught
            reason = f"{type(e).__name__}: {e}"
            c.claim(f"act {name} goes to its end", lambda r=reason: (_ for _ in ()).throw(ValueError(r)))
        c.pause(name)


def main(argv):
    options = arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.monotonic()
    directory = options.directory or tempfile.mkdtemp(prefix="sublet-teams-")
    os.makedirs(directory, exist_ok=True)
    c, t = Console(directory, programs(directory), EXAMPLE, options.step), TenTeams(directory, GRACE)
    try:
        start(c, t)
        tour(c, t)
    finally:
        t.stop()
        if not options.directory:
            shutil.rmtree(directory, ignore_errors=True)
    code = c.summary()
    c.say(f"everything that was started has ended, after {time.monotonic() - begin:.0f} s")
    return code


sys.exit(main(sys.argv[1:]))
