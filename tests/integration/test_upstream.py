# SPDX-License-Identifier: Apache-2.0
"""Upstream's kube-controller-manager and kube-scheduler on Sublet, under churn: they log no error that they
would not log on a real kube-apiserver under the same churn. SUBLET_UPSTREAM_SECONDS: how long (default 60).

Where two act on one object, one of them logs an error on any API server. Which of them does is chance, and so is which
request a busy machine keeps waiting for too long: such lines are compared in number only, each kind of them by itself.
A stale read (a controller's cache is older than its last write) is judged by how often one write is waited for: a
controller retries after 5 ms, then 10 and so on. Their number depends on how fast writes are answered, not on watches.
All other lines are compared by their shape. The server is there all the time: a connection that it refuses, resets or
cuts is an error wherever it is logged.
"""
import collections
import concurrent.futures
import os
import re

import pytest

from testenv import EmbeddedHost, upstream
from testenv.api import Api

from churn import Churn

SECONDS = float(os.environ.get("SUBLET_UPSTREAM_SECONDS", "60"))
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "upstream_errors.txt")
NODES = "nodes:\n- {name: node-%d, count: 3}\n"
RACES = {
    "conflict": "the object has been modified|The object might have been modified",
    "gone": r'\\"(web|db|agent|work|indexed|later|often|all|data|pvc)[-\w]*\\" not found',
    "terminating": "because it is being terminated",
    "remaining": "unexpected items still remain in namespace",
    "slow": "context deadline exceeded|timed out|[Tt]imeout",
}
CUT = "connection re(fused|set)|client connection lost|unexpected EOF|broken pipe"
MORE_RACES = 10  # times as many of a kind in a round as on the real server: a faster server meets more of them
STALE = r"read version: \d+ (is not as new as written version: \d+ for group resource [\w.]+)"
LONGEST_WAIT = 12  # retries for one write, 20 s: its watch event was lost
MEAN_WAIT = 4      # retries for a write, 75 ms: watch events come late
QUOTED = r'"((?:[^"\\]|\\.)*)"'


def shape(place, words):
    """What a line says without the names, numbers and quantities in it; of a race its kind, of a cut connection all."""
    if re.search(CUT, words):
        return f"cut: {place} {words}"
    if stale := re.search(STALE, words):
        return f"stale: {stale[1]}"
    for kind, pattern in RACES.items():
        if re.search(pattern, words):
            return f"race: {kind}"
    head = re.match(QUOTED, words)
    detail = re.search(rf"\b(?:err|status)={QUOTED}", words)
    text = " ".join(m[1] for m in (head, detail) if m) or words
    text = re.sub(r'\\"(?:[^"\\])*\\"', "_", text)
    kept = [w if re.fullmatch(r"[A-Za-z']+[.,:;]*", w) else "_" for w in text.split()]
    return f"{place} {' '.join(kept)}"


class Company:
    """kube-controller-manager and, unless left out, kube-scheduler beside one API server."""

    def __init__(self, kubeconfig, directory, *flags, scheduler=True):
        make = [lambda: upstream.manager(kubeconfig, directory, "--enable-hostpath-provisioner", *flags)]
        if scheduler:
            make.append(lambda: upstream.scheduler(kubeconfig, directory))
        self.programs = []
        for one in make:
            self.programs.append(one())

    def __enter__(self):
        for p in self.programs:
            p.start()
        return self

    def __exit__(self, *_):
        for p in self.programs:
            p.close()

    def errors(self):
        """How often each shape of an error was logged; they must still be at work."""
        for p in self.programs:
            p.check()
            assert p.healthy(), f"{p.name} is not healthy:\n{p.tail()}"
        return collections.Counter(shape(*line) for p in self.programs for line in p.lines("EF"))


class Outcome:
    """What was logged in so many rounds."""

    def __init__(self, rounds, errors):
        self.rounds = rounds
        self.errors = errors

    def races(self, kind):
        return self.errors[f"race: {kind}"] / self.rounds

    def stale_reads(self):
        """How often each write was waited for; versions are of one server, so that each names one write."""
        return [n for what, n in self.errors.items() if what.startswith("stale:")]

    def late_events(self):
        """What says that watch events are lost or late."""
        waits = self.stale_reads()
        mean = sum(waits) / max(len(waits), 10)
        return [f"{n} retries for one write" for n in waits if n > LONGEST_WAIT] + \
            [f"{mean:.1f} retries for a write"] * (mean > MEAN_WAIT)

    def more_races(self, reference):
        """Kinds of races that are far more here than there."""
        return [f"{self.races(kind):.1f} x {kind} in a round, {reference.races(kind):.1f} on a real server" for kind in RACES
                if self.races(kind) > MORE_RACES * max(reference.races(kind), 1)]

    def only_here(self, reference):
        """Shapes that neither the reference has nor a longer run on a real server had."""
        with open(KNOWN, encoding="utf-8") as f:
            seen = {line.rstrip("\n") for line in f if not line.startswith("#")} | set(reference.errors)
        seen = {what for what in seen if not what.startswith("cut:")}
        return [f"{n} x {what}" for what, n in sorted(self.errors.items())
                if what not in seen and not what.startswith("stale:")]


def churn_on(kubeconfig, directory, *flags, nodes=True, scheduler=True):
    with Company(kubeconfig, directory, *flags, scheduler=scheduler) as company:
        api = Api(kubeconfig)
        churn = Churn(api, nodes).run(SECONDS)
        api.close()
        errors = company.errors()
        print(f"{directory}: {churn.rounds} rounds, {sum(errors.values())} errors of {len(errors)} shapes")
        outcome = Outcome(churn.rounds, errors)
        print("".join(f"{n} x {what}\n" for what, n in errors.most_common() if not what.startswith("stale:")), end="")
        waits = outcome.stale_reads()
        print(f"{sum(waits)} stale reads of {len(waits)} writes, at most {max(waits, default=0)} of one")
        return outcome


def assert_as_quiet(outcome, reference):
    assert not outcome.only_here(reference)
    assert not outcome.more_races(reference)
    assert not outcome.late_events()


@pytest.fixture(scope="module")
def reference(real_host, workdir):
    """What they log on the session's kube-apiserver; its own manager and scheduler rest meanwhile."""
    names = ("kube-controller-manager", "kube-scheduler")
    for name in names:
        real_host.stop_component(name)
    executor = concurrent.futures.ThreadPoolExecutor(1)
    run = executor.submit(churn_on, real_host.kubeconfig, os.path.join(workdir, "upstream-real"))

    def stop():
        run.exception()
        for name in names:
            if not real_host.components[name].alive:
                real_host.start_component(name)

    def result():
        stop()
        return run.result()

    yield result
    stop()
    executor.shutdown()


def test_manager_and_scheduler_on_sublet_host(reference, workdir):
    directory = os.path.join(workdir, "upstream-host")
    host = EmbeddedHost(directory, NODES, ("--controllers", "external", "--scheduler", "external"))
    host.start_component("kube-apiserver")
    try:
        outcome = churn_on(host.kubeconfig, directory)
    finally:
        host.stop()
    assert_as_quiet(outcome, reference())


def test_manager_on_a_virtual_cluster(reference, tenant, workdir):
    reference()  # the host is whole again
    vc = tenant("upstream", config={"controllers": "external", "policy": {"verdict": "off"}})
    outcome = churn_on(vc.kubeconfig, os.path.join(workdir, "upstream-tenant"), "--controllers=" + upstream.VIRTUAL,
                       nodes=False, scheduler=False)
    assert_as_quiet(outcome, reference())
