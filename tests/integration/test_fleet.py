# SPDX-License-Identifier: Apache-2.0
"""`sublet fleet` and `sublet report`: usage and cost per team, from what a real host shows of two tenants' pods."""
import csv
import hashlib
import html.parser
import io
import json
import os
import re
import secrets
import subprocess
import time
from datetime import datetime, timezone
from fractions import Fraction

import pytest
import yaml

from testenv import eventually
from testenv.binaries import TREE
from testenv.fleet import LEASE_LOST, Fleet, sublet_report
from testenv.helm import Helm
from testenv.nodes import pool_config

from test_tenant import host_pod, pod, running

CHART = os.path.join(TREE, "charts", "sublet-fleet")
LOCAL = ("--listen", "127.0.0.1:0")
PRICES = {"a100": "2.50", "shared": "0.60"}


@pytest.fixture
def priced(pools):
    """The pools of the host with prices."""
    listed = [dict(p, metering={"price": PRICES[p["name"]], "currency": "USD"}) for p in pools["pools"]]
    return dict(pools, pools=listed)


@pytest.fixture
def make_fleet(workdir, host, priced):
    """make_fleet(**kw) -> a Fleet in a host namespace of its own; not started."""
    made, tag = [], secrets.token_hex(3)
    namespace = f"fleet-t{tag}"
    host.create_namespace(namespace)

    def make(**kw):
        fleet = Fleet(os.path.join(workdir, "fleet", f"{tag}-{len(made)}"), host, namespace,
                      kw.pop("pools", priced["pools"]), **kw)
        made.append(fleet)
        return fleet

    yield make
    for fleet in made:
        fleet.close()
    host.delete_namespace(namespace)


def gpu_pod(name, gpus, pool, **spec):
    body = pod(name, **spec)
    body["metadata"]["labels"] = {"sublet.dev/gpu-pool": pool}
    body["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return body


def check_sums(report):
    """All lines of a report are the capacity on record, exactly, pool by pool; returns {pool: capacity}."""
    for b in report["balances"]:
        held, idle, unhealthy, capacity, unmatched = (
            Fraction(b[k]) for k in ("held", "idle", "unhealthy", "capacity", "unmatched"))
        assert held + idle + unhealthy == capacity + unmatched, b
        lines = [x for x in report["lines"] if x["pool"] == b["pool"]]
        assert sum(Fraction(x["gpuHoursExact"]) for x in lines) == held + idle + unhealthy
    return {b["pool"]: Fraction(b["capacity"]) for b in report["balances"]}


def seconds(line):
    return Fraction(line["gpuHoursExact"]) * 3600


def held_seconds(fleet, by="tenant,pool", **want):
    return sum(seconds(line) for line in fleet.lines(by, kind="held", **want))


def host_seconds(obj):
    """From PodScheduled to the last container's end, as the host has it."""
    status = obj["status"]
    begin = next(c["lastTransitionTime"] for c in status["conditions"] if c["type"] == "PodScheduled")
    end = max(c["state"]["terminated"]["finishedAt"] for c in status["containerStatuses"])
    parse = datetime.fromisoformat
    return int((parse(end.replace("Z", "+00:00")) - parse(begin.replace("Z", "+00:00"))).total_seconds())


def finish(host, obj):
    """Its container ends now, as its kubelet would say, but in no second in which it was scheduled: that is no time at all."""
    begun = next(c["lastTransitionTime"] for c in obj["status"]["conditions"] if c["type"] == "PodScheduled")
    now = eventually(lambda: (lambda t: t > begun and t)(datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")), 30, "the next second")
    name = obj["spec"]["containers"][0]["name"]
    path = f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods/{obj['metadata']['name']}/status"
    host.api.patch(path, {"status": {"phase": "Succeeded", "containerStatuses": [
        {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0,
         "state": {"terminated": {"exitCode": 0, "startedAt": now, "finishedAt": now}}}]}})
    return host.api.get(path.removesuffix("/status"))


def test_usage_and_bill_per_team(host, tenant, priced, make_fleet):
    fleet = make_fleet().start()
    a, b = tenant("alpha", config=priced), tenant("beta", config=priced)
    a.kubectl.apply(gpu_pod("train", 4, "a100"))
    template = gpu_pod("unused", 1, "shared")
    template["metadata"] = {"labels": {"app": "infer", "sublet.dev/gpu-pool": "shared"}}
    b.kubectl.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "infer"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "infer"}},
        "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
    b.kubectl("rollout", "status", "deployment/infer", "--timeout=180s")
    running(a.kubectl, "train")

    # What runs accrues, under its tenant's own names.
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) > 0, 60, "alpha's usage")
    line, = fleet.lines("tenant,namespace,pod,pool,product", tenant=a.namespace)
    assert (line["namespace"], line["pod"], line["pool"], line["running"]) == ("default", "train", "a100", 1)
    assert line["product"] == "NVIDIA-A100-SXM4-80GB"

    eventually(lambda: [x["pods"] for x in fleet.lines("tenant,owner", tenant=b.namespace)] == [2], 60, "beta's usage")
    assert fleet.lines("tenant,owner", tenant=b.namespace)[0]["owner"] == "Deployment/infer"

    # A pod that ended is billed for the time that the host shows, and no more.
    ended = finish(host, host_pod(a, "train"))
    want = 4 * host_seconds(ended)
    eventually(lambda: fleet.lines(tenant=a.namespace)[0]["running"] == 0, 30, "the end on record")
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) == want, 30, "the whole of it to be seen")
    assert Fraction(fleet.lines(tenant=a.namespace)[0]["costExact"]) == Fraction(want, 3600) * Fraction("2.50")
    assert fleet.lines(tenant=a.namespace)[0]["estimated"] == 0

    report = fleet.report()
    check_sums(report)
    assert {x["pool"] for x in report["lines"]} >= {"a100", "shared"}
    table = fleet.print_report()
    assert "checked exactly" in table and a.namespace in table and "USD" in table
    focus = list(csv.DictReader(io.StringIO(fleet.print_report("--format", "focus"))))
    assert {r["BillingAccountId"] for r in focus} >= {a.namespace, b.namespace}
    assert all(r["BillingCurrency"] == "USD" for r in focus)
    assert {r["kind"] for r in csv.DictReader(io.StringIO(fleet.print_report("--format", "csv")))} >= {"held", "idle"}

    # One of the two A100 machines fails: its time is unhealthy, and is billed to no team.
    a.kubectl.apply(gpu_pod("again", 1, "a100"))
    running(a.kubectl, "again")
    node = host_pod(a, "again")["spec"]["nodeName"]
    before = host.api.get(f"/api/v1/nodes/{node}")
    host.remove_node(node)
    try:
        eventually(lambda: fleet.lines("node", kind="idle", node=node), 30, "its idle time on record")

        def stands_still():
            first = held_seconds(fleet, "node,tenant", node=node)
            until = fleet.report()["until"]
            eventually(lambda: fleet.report()["until"] > until, 30, "the host to be seen again")
            return held_seconds(fleet, "node,tenant", node=node) == first
        eventually(stands_still, 60, "nothing more to be billed on a lost node")
        check_sums(fleet.report())
    finally:
        for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
            before["metadata"].pop(key, None)
        before["spec"] = {k: v for k, v in before["spec"].items() if k == "taints"}
        before["spec"]["taints"] = [t for t in before["spec"].get("taints", [])
                                    if not t["key"].startswith("node.kubernetes.io/")]
        host.add_node(before)


def test_killed_and_restarted(host, tenant, priced, make_fleet):
    fleet = make_fleet().start()
    a = tenant("alpha", config=priced)
    for name in ("stays", "ends", "vanishes"):
        a.kubectl.apply(gpu_pod(name, 1, "a100"))
    for name in ("stays", "ends", "vanishes"):
        running(a.kubectl, name)
    eventually(lambda: len(fleet.lines("tenant,pod", tenant=a.namespace)) == 3, 30, "all three on record")

    # While no process observes, one ends, one is deleted without a trace, and one begins.
    fleet.kill()
    ended = finish(host, host_pod(a, "ends"))
    vanished = host_pod(a, "vanishes")["metadata"]["name"]
    host.api.delete(f"/api/v1/namespaces/{a.namespace}/pods/{vanished}", {"gracePeriodSeconds": 0})
    a.kubectl.apply(gpu_pod("begins", 1, "a100"))
    running(a.kubectl, "begins")
    begun = host_pod(a, "begins")
    fleet.start()

    def line(name):
        lines = fleet.lines("tenant,pod", tenant=a.namespace, pod=name)
        return lines[0] if lines else None
    eventually(lambda: line("begins"), 30, "the pod that began meanwhile")
    assert line("ends")["running"] == 0 and line("ends")["estimated"] == 0
    assert seconds(line("ends")) == host_seconds(ended)
    assert line("vanishes")["running"] == 0 and line("vanishes")["estimated"] == 1
    assert line("stays")["running"] == 1 and line("stays")["pods"] == 1
    assert Fraction(fleet.report()["unobservedSeconds"]) > 0

    # Killed again and again: what is on record does not change.
    for _ in range(3):
        fleet.kill()
        fleet.start()
    assert seconds(line("ends")) == host_seconds(ended)
    assert [line(n)["pods"] for n in ("stays", "ends", "vanishes", "begins")] == [1, 1, 1, 1]
    finished = finish(host, begun)
    eventually(lambda: line("begins")["running"] == 0, 30, "its end")
    eventually(lambda: seconds(line("begins")) == host_seconds(finished), 30, "its time")
    check_sums(fleet.report())


class Page(html.parser.HTMLParser):
    """Elements, attributes and content of a page; every element that opens closes."""

    VOID = {"meta", "rect"}

    def __init__(self, content):
        super().__init__()
        self.open, self.elements, self.attributes, self.content = [], [], [], []
        self.feed(content)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.content.append(data.strip())


def test_page_of_hostile_names(host, tenant, priced, make_fleet):
    fleet = make_fleet().start()
    a = tenant("alpha", config=priced)
    a.kubectl.apply(gpu_pod("train", 2, "a100"))
    running(a.kubectl, "train")

    # What a tenant's process could write on the host.
    namespace = fleet.config["host"]["namespace"]
    script, image = "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>"
    body = gpu_pod("hostile", 1, "a100", tolerations=[{"operator": "Exists"}],
                   nodeSelector={"sublet.dev/pool": "a100"}, terminationGracePeriodSeconds=0)
    body["metadata"]["labels"]["sublet.dev/cluster"] = "c"
    body["metadata"]["annotations"] = {"sublet.dev/name": script, "sublet.dev/namespace": image,
                                       "sublet.dev/owner": "Job/" + script}
    host.api.post(f"/api/v1/namespaces/{namespace}/pods", body)
    eventually(lambda: held_seconds(fleet, tenant=namespace) > 0 and held_seconds(fleet, tenant=a.namespace) > 0, 60,
               "usage of both")

    until = fleet.report()["until"]
    content = fleet.print_report("--by", "tenant,namespace,owner,pod,pool", "--format", "html", "--to", until)
    page = Page(content)
    assert set(page.elements) == {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "svg", "text", "rect",
                                  "table", "thead", "tbody", "tr", "th", "td"}
    assert not [k for k, _ in page.attributes if k in ("src", "href") or k.startswith("on")]
    assert "://" not in content
    assert {script, image, "Job/" + script, a.namespace, "train"} <= set(page.content)
    sums = next(x for x in fleet.print_report("--to", until).splitlines() if "checked exactly" in x)
    assert sums in page.content


class Statements:
    """A key, and the statements of a fleet's ledger as files."""

    def __init__(self, fleet, directory):
        self.fleet, self.dir = fleet, directory
        self.key, self.public = directory / "statements.key", directory / "statements.pub"
        self.public.write_text(self.run("key", "--key", self.key, "--new").stdout)

    def run(self, command, *args, fails=False):
        r = sublet_report(command, *map(str, args))
        assert r.returncode == int(fails), r.stdout + r.stderr
        return r

    def issue(self, begin, end, *args, fails=False):
        return self.run("statement", "--data-dir", self.fleet.store, "--from", begin, "--to", end, *args, fails=fails)

    def file(self, name, text):
        (self.dir / name).write_text(text)
        return self.dir / name

    def verify(self, *files, key=None, fails=False):
        r = self.run("verify", "--public-key", key or self.public, *files, fails=fails)
        return r.stderr if fails == 1 else r.stdout


def test_statements_of_closed_periods(tenant, priced, make_fleet, tmp_path):
    """Three periods of a running ledger: signed, chained, verified without the ledger, and by openssl."""
    fleet = make_fleet().start()
    a, b = tenant("alpha", config=priced), tenant("beta", config=priced)
    for vc, gpus in ((a, 2), (b, 1)):
        vc.kubectl.apply(gpu_pod("train", gpus, "a100"))
        running(vc.kubectl, "train")
        eventually(lambda vc=vc: held_seconds(fleet, tenant=vc.namespace) > 0, 60, "usage of both")
    statements = Statements(fleet, tmp_path)
    assert os.stat(statements.key).st_mode & 0o777 == 0o600
    assert "cannot create" in statements.run("key", "--key", statements.key, "--new", fails=True).stderr

    # A period that is not over, or was not observed to its end, has no statement.
    report = fleet.report()
    edges = [report["from"], report["until"]]
    signed = ("--key", statements.key)
    assert "is not over" in statements.issue(edges[0], "2999-01", *signed, fails=True).stderr
    assert "is not over" in statements.run(
        "statement", "--data-dir", fleet.store, "--month", "2998-12", *signed, fails=True).stderr
    assert "no key to sign one" in statements.issue(*edges, fails=True).stderr

    # The process that keeps the ledger goes on meanwhile.
    texts = [statements.issue(*edges, *signed).stdout]
    for _ in range(2):
        eventually(lambda: fleet.report()["until"] > edges[-1], 30, "more time on record")
        edges.append(fleet.report()["until"])
        texts.append(statements.issue(*edges[-2:], *signed).stdout)
    files = [statements.file(f"{i}.json", text) for i, text in enumerate(texts)]
    assert statements.issue(*edges[:2]).stdout == texts[0]
    assert "statement 3 ends at" in statements.issue(edges[0], edges[2], *signed, fails=True).stderr
    fleet.process.check()

    # What they say is what the report says.
    for text, begin, end in zip(texts, edges, edges[1:]):
        statement = json.loads(text)
        check_sums(statement)
        lines = fleet.report("tenant", "--from", begin, "--to", end)["lines"]
        hours = {x["tenant"]: x["gpuHoursExact"] for x in lines if x["kind"] == "held"}
        assert hours == {x["tenant"]: x["gpuHoursExact"] for x in statement["totals"]}
        assert hours.keys() >= {a.namespace, b.namespace}

    # Offline, the ledger is away.
    store, fleet.store = fleet.store, "/nonexistent"
    assert "statement 3, " in statements.verify(*files) and "adds up" in statements.verify(files[0])
    assert "numbers 1 to 2" in statements.verify(files[2], fails=2)
    assert "number 2 is missing" in statements.verify(files[0], files[2], fails=True)
    assert "out of order" in statements.verify(files[1], files[0], files[2], fails=True)
    changed = statements.file("changed.json", texts[1].replace(a.namespace, b.namespace))
    assert "changed.json: a byte was changed" in statements.verify(files[0], changed, files[2], fails=True)
    (tmp_path / "other").mkdir()
    other = Statements(fleet, tmp_path / "other")
    assert "is signed with key" in statements.verify(files[0], key=other.public, fails=True)
    fleet.store = store

    # A tenant's own has no other tenant in it, and a chain of its own.
    own = statements.issue(*edges[:2], "--tenant", a.namespace, *signed).stdout
    assert b.namespace not in own and json.loads(own)["number"] == 1
    assert "statement 1, " in statements.verify(statements.file("own.json", own))
    assert "another ledger or tenant" in statements.verify(tmp_path / "own.json", files[1], fails=True)

    # Without this program, as docs/usage.md says.
    with open(os.path.join(TREE, "docs", "usage.md"), encoding="utf-8") as f:
        commands = next(x for x in f.read().split("```") if "openssl pkeyutl" in x).split("\n", 1)[1]
    (tmp_path / "2026-10.json").write_text(texts[2])
    subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "2026-10.json").write_text(texts[2].replace("held", "idle"))
    assert subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, check=False,
                          capture_output=True).returncode != 0
    assert hashlib.sha256(texts[1].encode()).hexdigest() == json.loads(texts[2])["previous"]


def test_prices_have_a_history(tenant, priced, make_fleet):
    fleet = make_fleet().start()
    a = tenant("alpha", config=priced)
    a.kubectl.apply(gpu_pod("train", 1, "a100"))
    running(a.kubectl, "train")
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) > 0, 60, "alpha's usage")
    fleet.stop()
    paid = fleet.lines(tenant=a.namespace)[0]
    end = fleet.report()["until"]
    assert Fraction(paid["costExact"]) == Fraction(paid["gpuHoursExact"]) * Fraction("2.50")

    dear = [dict(p, metering={"price": "5", "currency": "USD"}) for p in priced["pools"]]
    fleet.write_config(pools=dear)
    fleet.start()
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) > seconds(paid), 60, "more usage")
    then = [x for x in fleet.report("tenant,pool", "--to", end)["lines"] if x.get("tenant") == a.namespace][0]
    now = fleet.lines(tenant=a.namespace)[0]
    assert then["costExact"] == paid["costExact"]
    hours = Fraction(now["gpuHoursExact"]) - Fraction(paid["gpuHoursExact"])
    cost = Fraction(now["costExact"]) - Fraction(paid["costExact"])
    assert hours * Fraction("2.50") < cost <= hours * 5


def by_pool(metrics, name):
    """{pool: the sum of a family's samples}."""
    out = {}
    for labels, value in metrics[name].items():
        pool = dict(labels)["pool"]
        out[pool] = out.get(pool, 0) + value
    return out


def test_metrics_of_now(tenant, priced, make_fleet):
    fleet = make_fleet(args=LOCAL).start()
    a, b = tenant("alpha", config=priced), tenant("beta", config=priced)
    for vc, gpus in ((a, 4), (b, 2)):
        vc.kubectl.apply(gpu_pod("train", gpus, "a100"))
        running(vc.kubectl, "train")

    def held(vc, name="sublet_fleet_held_gpus"):
        return fleet.metrics()[name].get(frozenset({("pool", "a100"), ("tenant", vc.namespace)}))
    eventually(lambda: held(a) == 4 and held(b) == 2, 30, "what both hold")
    assert held(a, "sublet_fleet_pods") == 1
    metrics = fleet.metrics()
    assert metrics["sublet_fleet_leader"] == {frozenset(): 1}
    assert 0 <= metrics["sublet_fleet_unseen_seconds"][frozenset()]
    assert metrics["sublet_fleet_unobserved_seconds_total"] == {frozenset(): 0}
    assert metrics["sublet_fleet_series_not_shown"] == {frozenset(): 0}
    prices = metrics["sublet_fleet_pool_price_micros_per_gpu_hour"]
    assert {v for labels, v in prices.items() if ("pool", "a100") in labels} == {2500000}
    assert {dict(labels)["pool"] for labels in prices} == set(PRICES)
    capacity, beyond = (by_pool(metrics, f"sublet_fleet_{x}_gpus") for x in ("capacity", "unmatched"))
    parts = [by_pool(metrics, f"sublet_fleet_{x}_gpus") for x in ("held", "idle", "unhealthy")]
    assert capacity["a100"] >= 6 and capacity.keys() == set(PRICES)
    for pool, gpus in capacity.items():
        assert sum(x.get(pool, 0) for x in parts) == gpus + beyond[pool]

    def counted(vc):
        """GPU seconds within and beyond the guarantee, and millionths of USD, of one scrape."""
        metrics = fleet.metrics()

        def of(name, **labels):
            return metrics.get(name, {}).get(frozenset({"pool": "a100", "tenant": vc.namespace, **labels}.items()), 0)
        return [*(of("sublet_fleet_gpu_seconds_total", borrowed=x) for x in ("false", "true")),
                of("sublet_fleet_gpu_cost_micros_total", currency="USD")]
    eventually(lambda: counted(a)[0] > 0, 90, "GPU seconds of alpha")
    a.kubectl("delete", "pod", "train", "--wait=false")
    eventually(lambda: held(a) is None, 60, "nothing held by alpha")
    before = counted(b)
    fleet.kill()
    fleet.start()
    eventually(lambda: counted(b)[0] > before[0], 60, "GPU seconds after a restart")
    after = counted(b)
    assert before[0] < after[0] and before[2] < after[2] and after[1] == 0
    assert after[2] == pytest.approx(after[0] / 3600 * 2.5 * 1e6, abs=1)
    assert held(b) == 2 and fleet.metrics()["sublet_fleet_unobserved_seconds_total"][frozenset()] > 0

    assert fleet.scrape("/")[0] == 404
    assert fleet.scrape(method="POST")[0] == 405


def test_metrics_need_a_token(make_fleet, tmp_path):
    (tmp_path / "token").write_text("right\n")
    fleet = make_fleet(args=(*LOCAL, "--token-file", str(tmp_path / "token"))).start()
    assert [fleet.scrape(**h)[0] for h in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer righ"},
                                           {"Authorization": "Basic right"})] == [401] * 4
    status, content = fleet.scrape(Authorization="Bearer right")
    assert status == 200 and "sublet_fleet_leader 1\n" in content
    fleet.stop()
    other = make_fleet(args=("--listen", "0.0.0.0:0")).start(wait=False)
    assert other.process.wait(60) == 1
    assert "a token is needed" in other.process.tail()


def test_one_acts_at_a_time(host, make_fleet):
    first = make_fleet(args=LOCAL).start()
    second = make_fleet(args=LOCAL).start(wait=False)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{first.config['host']['namespace']}/leases/sublet-fleet"
    holder = host.api.get(lease)["spec"]["holderIdentity"]
    eventually(lambda: "has the Lease" in second.process.tail(), 30, "the second to stand by")
    assert "ready" not in second.process.output()
    assert [f.metrics()["sublet_fleet_leader"][frozenset()] for f in (first, second)] == [1, 0]
    assert "sublet_fleet_capacity_gpus" not in second.metrics()
    first.stop()
    second.wait_ready()
    assert second.metrics()["sublet_fleet_leader"] == {frozenset(): 1}
    assert host.api.get(lease)["spec"]["holderIdentity"] not in ("", holder)


def test_one_that_stood_still_ends_and_is_started_again(host, make_fleet):
    """It may not act on a Lease that expired meanwhile, though no other process took it."""
    fleet = make_fleet(args=LOCAL, lease="10s").start()
    fleet.keep()
    first, began = fleet.process.pid, time.monotonic()
    fleet.process.pause()
    eventually(lambda: time.monotonic() > began + 10, 30, "the Lease to expire")
    fleet.process.resume()
    eventually(lambda: fleet.process.alive and fleet.process.pid != first, 60, "another process")
    fleet.wait_ready()
    assert fleet.metrics()["sublet_fleet_leader"] == {frozenset(): 1}
    assert LEASE_LOST in fleet.process.tail()


@pytest.fixture
def helm(tmp_path):
    return Helm(tmp_path)


def render(helm, namespace, values):
    text = helm("template", "fleet", CHART, "-n", namespace, values=values)
    return [o for o in yaml.safe_load_all(text) if o]


def test_the_charts_rights_are_enough(host, helm, make_fleet, priced):
    """Its ClusterRole reads nodes and pods, its Role writes one Lease; without them it ends with the reason."""
    fleet = make_fleet()
    namespace = fleet.config["host"]["namespace"]
    rules = [o for o in render(helm, namespace, {"config": {"pools": priced["pools"]}})
             if o["apiVersion"].startswith("rbac.")]
    assert sorted(o["kind"] for o in rules) == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    granted = {v for o in rules if o["kind"] == "ClusterRole" for r in o["rules"] for v in r["verbs"]}
    assert granted == {"get", "list", "watch"}
    kubeconfig = host.service_account_kubeconfig(namespace, "fleet")
    fleet.write_config(host={"namespace": namespace, "kubeconfig": kubeconfig})
    fleet.start(wait=False)
    assert fleet.process.wait(60) == 1
    assert "forbidden" in fleet.process.tail().lower()
    paths = []
    try:
        for o in rules:
            scope = f"/namespaces/{namespace}" if "namespace" in o["metadata"] else ""
            path = f"/apis/{o['apiVersion']}{scope}/{o['kind'].lower()}s"
            host.api.post(path, o)
            paths.append(f"{path}/{o['metadata']['name']}")
        fleet.start()
    finally:
        for path in paths:
            host.api.delete(path)


def test_the_chart(helm, priced):
    helm("lint", "--strict", CHART, values={"config": {"pools": priced["pools"]}})
    objects = {o["kind"]: o for o in render(helm, "sublet-system", {"config": {"pools": priced["pools"]}})}
    config = yaml.safe_load(objects["ConfigMap"]["data"]["fleet.yaml"])
    assert config["host"] == {"namespace": "sublet-system"} and config["pools"] == priced["pools"]
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert objects["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    assert pod["securityContext"]["runAsNonRoot"] and pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert {m["mountPath"] for m in pod["containers"][0]["volumeMounts"]} == {"/etc/sublet", config["store"]["path"]}
    assert objects["PersistentVolumeClaim"]["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert "Service" not in objects and not any("--listen" in a for a in pod["containers"][0]["args"])
    assert "pools" in helm.fails("template", "fleet", CHART, values={})

    scraped = {"enabled": True, "tokenSecret": "scrape", "serviceMonitor": True, "rules": True}
    values = {"config": {"pools": priced["pools"]}, "metrics": scraped}
    helm("lint", "--strict", CHART, values=values)
    objects = {o["kind"]: o for o in render(helm, "sublet-system", values)}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    args = pod["containers"][0]["args"]
    assert "--listen=0.0.0.0:9090" in args
    assert "preferredDuringSchedulingIgnoredDuringExecution" in pod["affinity"]["nodeAffinity"]
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    assert f"--token-file={mounts['token']}/token" in args
    assert [v["secret"]["secretName"] for v in pod["volumes"] if v["name"] == "token"] == ["scrape"]
    assert objects["Service"]["spec"]["selector"] == objects["Deployment"]["spec"]["selector"]["matchLabels"]
    assert objects["ServiceMonitor"]["spec"]["endpoints"][0]["authorization"]["credentials"]["name"] == "scrape"
    assert not any("--listen-cert" in a for a in args) and "scheme" not in objects["ServiceMonitor"]["spec"]["endpoints"][0]
    rules = json.dumps(objects["PrometheusRule"]["spec"])
    shown = next(o for o in render(helm, "sublet-system", {"config": {"pools": priced["pools"]}, "metrics": {"dashboard": True}})
                 if o["metadata"]["name"] == "fleet-dashboard")
    dashboard = json.loads(shown["data"]["sublet-fleet.json"])
    assert len({p["id"] for p in dashboard["panels"]}) == len(dashboard["panels"]) and shown["metadata"]["labels"]["grafana_dashboard"]
    queries = " ".join(t["expr"] for p in dashboard["panels"] for t in p["targets"])
    with open(os.path.join(TREE, "include", "sublet", "tbl", "metrics.h"), encoding="utf-8") as f:
        known = set(re.findall(r"sublet_fleet_\w+", f.read()))
    assert set(re.findall(r"sublet_fleet_\w+", rules)) - {"sublet_fleet_"} <= known
    overdue, = [r for r in objects["PrometheusRule"]["spec"]["groups"][0]["rules"]
                if r.get("alert") == "SubletFleetMaintenanceOverdue"]
    assert 'sublet_fleet_pool_unavailable{state="overdue"}' in overdue["expr"]
    assert all(f"sublet_fleet_pool_{x}" in queries + rules for x in ("condition", "price_micros_per_gpu_hour"))
    assert "sublet_fleet_idle_held_gpus" in queries and set(re.findall(r"sublet_fleet_\w+", queries)) <= known
    measured = {"telemetry": {"dcgm": {"enabled": True, "idleBelow": "0.1"}}, "pools": priced["pools"]}
    objects = {o["kind"]: o for o in render(helm, "sublet-system", {"config": measured})}
    config = yaml.safe_load(objects["ConfigMap"]["data"]["fleet.yaml"])["telemetry"]["dcgm"]
    assert config["enabled"] and config["idleBelow"] == "0.1" and config["selector"] == "app=nvidia-dcgm-exporter"
    assert "idleBelow" in helm.fails("template", "fleet", CHART, values={"config": {
        "pools": priced["pools"], "telemetry": {"dcgm": {"idleBelow": "5"}}}})
    assert "tokenSecret is needed" in helm.fails("template", "fleet", CHART, values={
        **values, "metrics": {"enabled": True}})
    assert "pool" in helm.fails("template", "fleet", CHART, values={"pool": []})

    values["ledger"] = {"postgres": {"secret": "billing"}}
    helm("lint", "--strict", CHART, values=values)
    objects = {o["kind"]: o for o in render(helm, "sublet-system", values)}
    assert "PersistentVolumeClaim" not in objects
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    mounted = {m["name"]: m for m in pod["containers"][0]["volumeMounts"]}["postgres"]
    config = yaml.safe_load(objects["ConfigMap"]["data"]["fleet.yaml"])
    assert config["ledger"]["postgres"]["file"] == f"{mounted['mountPath']}/connection" and mounted["readOnly"]
    volumes = {v["name"]: v for v in pod["volumes"]}
    assert volumes["postgres"]["secret"] == {"secretName": "billing", "defaultMode": 0o440} and "emptyDir" in volumes["ledger"]
    assert "secret" in helm.fails("template", "fleet", CHART, values={**values, "ledger": {"postgres": {"secret": "a b"}}})
    del values["ledger"]

    values["metrics"]["tlsSecret"] = "serving"
    helm("lint", "--strict", CHART, values=values)
    objects = {o["kind"]: o for o in render(helm, "sublet-system", values)}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    assert {f"--listen-cert={mounts['metrics']}/tls.crt", f"--listen-key={mounts['metrics']}/tls.key"} <= set(pod["containers"][0]["args"])
    assert [v["secret"]["secretName"] for v in pod["volumes"] if v["name"] == "metrics"] == ["serving"]
    endpoint = objects["ServiceMonitor"]["spec"]["endpoints"][0]
    assert endpoint["scheme"] == "https" and endpoint["tlsConfig"]["ca"]["secret"] == {"name": "serving", "key": "ca.crt"}
    service = objects["Service"]["metadata"]
    assert endpoint["tlsConfig"]["serverName"] == f"{service['name']}.{service['namespace']}.svc"


def test_a_shared_device_is_a_fraction(host, tenant, make_fleet):
    """Time-slicing: ten replicas of a device are one GPU; one second of one is a tenth of a second."""
    tag = secrets.token_hex(3)
    sliced = pool_config(f"sliced-{tag}", "l4", kind="shared", mode="time-slicing",
                         rename={"nvidia.com/gpu": "nvidia.com/gpu.shared"},
                         resources={"nvidia.com/gpu": {"gpuEq": "1/10"}},
                         metering={"price": "1", "currency": "EUR"})
    host.add_gpu_node(f"sliced-{tag}", pool=f"sliced-{tag}", model="l4", gpus=2, replicas=10,
                      resource="nvidia.com/gpu.shared")
    try:
        fleet = make_fleet(pools=[sliced]).start()
        a = tenant("alpha", config={"pools": [sliced], "bindings": [
            {"pool": f"sliced-{tag}", "guarantee": "1", "default": True}]})
        a.kubectl.apply(gpu_pod("slice", 1, f"sliced-{tag}"))
        running(a.kubectl, "slice")
        eventually(lambda: fleet.lines(tenant=a.namespace), 30, "its usage")
        ended = finish(host, host_pod(a, "slice"))
        want = Fraction(host_seconds(ended), 10)
        eventually(lambda: held_seconds(fleet, tenant=a.namespace) == want, 30, "a tenth of its time")
        check_sums(fleet.report())
    finally:
        host.remove_node(f"sliced-{tag}")
