# SPDX-License-Identifier: Apache-2.0
"""The names of the rungs, and one run of Kubernetes' e2e.test over some of them."""
import contextlib
import os
import re
import subprocess
import threading
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

from testenv import EmbeddedHost, binaries
from testenv.release import Release
from testenv.virtual import VirtualCluster
from testenv.wait import eventually

import e2e_images

HERE = os.path.dirname(os.path.abspath(__file__))
RUNGS = ("r0", "r1", "r2", "r3")
ON_NODE = "r3"  # from there on containers run
TIMEOUT = 90 * 60
SLOW = ("[Slow]",)
HOST = threading.Lock()  # it has one connection

# A quota is tried with a resource of the test's own, and here pools are what offers such.
DONGLES = {"name": "dongles", "kind": "shared", "mode": "exclusive",
           "nodeSelector": {"sublet.dev/pool": "dongles"},
           "resources": {"example.com/dongle": {"gpuEq": "1"}}}
CONFIG = {"sync": {"maxServices": 1000},  # a test of latency makes 200 Services at once
          "policy": {"verdict": "off", "podSecurity": "privileged"},
          "pools": [DONGLES], "bindings": [{"pool": "dongles", "guarantee": "8", "default": True}]}

# Who else there is beside the API server, and what the configuration says of it: the controllers in the
# process, or upstream's kube-controller-manager on its default flags, which speaks protobuf.
COMPANIES = {"native": {}, "kcm": {"controllers": "external"}}
HOST_COMPANY = "host"  # `sublet host` alone: with its own scheduler and kubelets, below r2 without the former
HOST_NODES = "nodes:\n- {name: node-%d, count: 3}\n"


def _lines(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def names(rung="r0", slow=False, later=False, company="native", alone=False):
    """The tests up to and with a rung, or of it alone, in the files' order."""
    waiting = set() if later else _later(company)
    rungs = (rung,) if alone else RUNGS[:RUNGS.index(rung) + 1]
    found = [n for r in rungs for n in _lines(f"{r}.txt")]
    assert waiting <= set(_all_names()), "later.txt names what no rung has"
    return [n for n in found if n not in waiting and (slow or not any(mark in n for mark in SLOW))]


def _later(company):
    """What later.txt names for a company: name | reason, or name | reason | company, company."""
    rows = [[part.strip() for part in line.split("|")] for line in _lines("later.txt")]
    return {row[0] for row in rows if len(row) < 3 or company in row[2].replace(",", " ").split()}


def _all_names():
    return [n for r in RUNGS for n in _lines(f"{r}.txt")]


def short(name):
    """A name that pytest's -k can be given."""
    return re.sub(r"\s*\[(Conformance|Privileged:ClusterAdmin|Serial|Slow)\]", "", name)


def portions(wanted, n):
    """The names dealt out to n runs; each of the slow ones first in its own."""
    ordered = sorted(wanted, key=lambda name: not any(mark in name for mark in SLOW))
    return [p for p in (ordered[i::n] for i in range(n)) if p]


@contextlib.contextmanager
def cluster(host, directory, name="conformance", company="native"):
    """A virtual cluster that shows at least one node, which e2e.test insists on."""
    namespace = f"team-{name}"
    with HOST:
        host.create_namespace(namespace)
        host.api.post(f"/api/v1/namespaces/{namespace}/services", _api_service(name))
    vc = VirtualCluster(name, directory, host, namespace,
                        {**CONFIG, **COMPANIES[company]})
    manager = None
    try:
        vc.start()
        if company == "kcm":
            manager = _manager(vc.kubeconfig, os.path.join(directory, f"{name}-kcm"))
        if not vc.api.get("/api/v1/nodes")["items"]:
            _create_node(vc)
        eventually(lambda: vc.api.get("/api/v1/namespaces/default/serviceaccounts/default"), 60,
                   "the default service account")
        yield vc
    finally:
        if manager:
            manager.close()
        vc.close()
        with HOST:
            host.delete_namespace(namespace)


@contextlib.contextmanager
def release(host, directory, name):
    """A virtual cluster as the chart installs it on a real node, where nothing of the host's bounds or fills in what a pod
    says."""
    slices = {"enabled": True, "allowedCIDRs": [host.machine.pods]}  # tests write the addresses of their pods there
    config = {**CONFIG, "sync": {**CONFIG["sync"], "toHost": {"endpointSlices": slices}}}
    values = {"config": config, "quota": {"enabled": False}, "limitRange": {"enabled": False}}
    with HOST:
        made = Release(host, name, directory, values).install()
    try:
        yield made
    finally:
        with HOST:
            made.remove()


@contextlib.contextmanager
def host_cluster(directory, name, rung):
    """`sublet host` itself; pods get machines where the rung has a scheduler."""
    cluster_ = EmbeddedHost(os.path.join(directory, name), HOST_NODES,
                            () if rung == "r2" else ("--scheduler", "external"))
    cluster_.start()
    try:
        yield cluster_
    finally:
        cluster_.stop()


def _manager(kubeconfig, directory):
    from testenv import upstream  # pylint: disable=import-outside-toplevel

    return upstream.manager(kubeconfig, directory, "--controllers=" + upstream.VIRTUAL).start()


def _api_service(name):
    """What the chart makes: pods reach the virtual cluster's API by its address."""
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 8443}]}}


def _create_node(vc):
    vc.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "shown"}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    vc.api.request("PATCH", "/api/v1/nodes/shown/status",
                   {"status": {"conditions": [ready], "capacity": amounts, "allocatable": amounts}},
                   content_type="application/merge-patch+json")


def run_all(host, directory, wanted, company="native", processes=2, rung="r0"):
    """Outcomes of all that is wanted: each of the processes has a virtual cluster of its own."""
    def one(i, names_):
        name = f"conformance-{i}"
        made = (host_cluster(directory, name, rung) if company == HOST_COMPANY else
                release(host, directory, name) if rung == ON_NODE else cluster(host, directory, name, company))
        with made as vc:
            return run(vc, names_, os.path.join(directory, f"report-{i}"), images)

    images = e2e_images.load(host, directory) if rung == ON_NODE else None
    outcomes = {}
    with ThreadPoolExecutor(max_workers=processes) as pool:
        for found in pool.map(one, range(processes), portions(wanted, processes)):
            outcomes.update(found)
    return outcomes


def run(vc, wanted, report, images=None):
    """{name: None or the reason of its failure}; a test that e2e.test did not report is not in it. `images`: the file
    that says where the tests find theirs."""
    os.makedirs(report, exist_ok=True)
    focus = "|".join(re.escape(n) + "$" for n in wanted)  # ginkgo puts the suite's name before it
    argv = ["setpriv", "--pdeathsig", "KILL", "--",
            binaries.host_program("e2e.test"), "--provider=skeleton", f"--kubeconfig={vc.kubeconfig}",
            f"--kubectl-path={binaries.host_program('kubectl')}", f"--report-dir={report}",
            "--allowed-not-ready-nodes=-1", f"--delete-namespace={str(bool(images)).lower()}", "--ginkgo.no-color",
            f"--ginkgo.timeout={TIMEOUT}s", f"--ginkgo.focus={focus}"]
    with open(os.path.join(report, "log"), "wb") as log:
        subprocess.run(argv, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=TIMEOUT + 300,
                       check=False, env={**os.environ, e2e_images.VARIABLE: images or ""})
    path = os.path.join(report, "junit_01.xml")
    assert os.path.exists(path), f"e2e.test left no report:\n{_tail(os.path.join(report, 'log'))}"
    return read_report(path)


def read_report(path):
    """The outcomes of a JUnit report; what was skipped did not run."""
    found = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = re.sub(r"^\[It\]\s*", "", case.get("name", ""))
        if case.find("skipped") is not None:
            continue
        bad = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
        found[name] = None if bad is None else (bad.get("message") or bad.text or "failed").strip()
    return found


def find(outcomes, name):
    """(ran, reason); ginkgo may add labels of its own behind a name."""
    if name in outcomes:
        return True, outcomes[name]
    return next(((True, reason) for n, reason in outcomes.items() if n.startswith(name)), (False, None))


def _tail(path, lines=40):
    with open(path, encoding="utf-8", errors="replace") as f:
        return "".join(f.readlines()[-lines:])
