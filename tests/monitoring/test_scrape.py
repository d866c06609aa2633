# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a virtual cluster and the fleet, and evaluates what the charts give it."""
import base64
import os
import re

import pytest
import yaml

from testenv import eventually
from testenv.binaries import TREE
from testenv.exporter import Exporter, exporter_pod, series
from testenv.prometheus import Prometheus, dashboard, promtool

from test_telemetry import run_pod, start

NAME = re.compile(r"\b(?:sublet|apiserver|workqueue|process|kubernetes)_[a-z_]+\b")
COUNTED = re.compile(r"(?:increase|rate|irate)\((\w+)")


def credentials(kubeconfig, directory):
    """Its parts as files, for a tls_config."""
    with open(kubeconfig, encoding="utf-8") as f:
        config = yaml.safe_load(f)
    parts = config["clusters"][0]["cluster"] | config["users"][0]["user"]
    files = {}
    for name, key in (("ca_file", "certificate-authority-data"), ("cert_file", "client-certificate-data"), ("key_file", "client-key-data")):
        path = directory / f"{name}.pem"
        path.write_bytes(base64.b64decode(parts[key]))
        path.chmod(0o600)
        files[name] = str(path)
    return files


@pytest.fixture
def scraped(host, tenant, page, pools, rules, tmp_path):
    """Prometheus, after it has read a tenant with a pod, and a fleet that measures it."""
    vc, exporter = tenant("research"), Exporter()
    files = credentials(vc.kubeconfig, tmp_path)
    start(page, exporter)
    pod = run_pod(host, page, pools["pools"][0], "train", 2)
    exporter.say(series(pod, 0, 0.75, 40000), series(pod, 1, 0.5, 40000))
    host.api.post(f"/api/v1/namespaces/{page.namespace}/pods", exporter_pod(pod["spec"]["nodeName"]))
    made = Prometheus(tmp_path, [
        {"job_name": "research", "scheme": "https", "static_configs": [
            {"targets": [vc.api.server.netloc], "labels": {"namespace": "control"}}],
         "tls_config": {**files, "server_name": "kubernetes.default.svc"}},
        {"job_name": "fleet", "static_configs": [{"targets": [f"127.0.0.1:{page.fleet.port('metrics')}"]}]},
    ], [path for path, _ in rules.values()])
    try:
        made.start()
        eventually(lambda: made.targets() == {"research": ("up", ""), "fleet": ("up", "")}, 60, "both to be scraped")
        eventually(lambda: value(made, f'sublet_fleet_utilised_gpus{{tenant="{page.namespace}"}}') == 1.25, 60, "what is measured")
        made.fleet = page.fleet
        made.vc = vc
        yield made
    finally:
        made.close()
        exporter.close()


def value(prometheus, expression):
    found = prometheus.get("/api/v1/query", query=expression)["result"]
    return float(found[0]["value"][1]) if len(found) == 1 else None


def test_what_the_charts_give_is_evaluated(scraped, rules):
    with open(os.path.join(TREE, "include", "sublet", "tbl", "metrics.h"), encoding="utf-8") as f:
        table = {name: kind.lower() for kind, name in re.findall(r'METRIC\(\w+, (\w+), "(\w+)"', f.read())}
    types = scraped.types()
    ours = {name for name in types if name in table}
    assert len(ours) > 60 and all(types[name] == table[name] for name in ours)

    def known(expression):
        """A metric without samples, such as of bindings where there are none, is not scraped."""
        for name in set(NAME.findall(expression)):
            assert name in table, (name, expression)
        for name in COUNTED.findall(expression):
            assert table[name] == "counter", (name, expression)

    queries = [t["expr"] for p in dashboard()["panels"] for t in p["targets"]]
    assert len(queries) > 10
    for query in queries:
        known(query)
        scraped.get("/api/v1/query", query=query)  # an error is a status of 400

    def evaluated():
        groups = scraped.get("/api/v1/rules")["groups"]
        return [r for g in groups for r in g["rules"]] if all(r["health"] != "unknown" for g in groups for r in g["rules"]) else None
    found = eventually(evaluated, 60, "every rule to be evaluated")
    assert len(found) == sum(len(g["rules"]) for _, groups in rules.values() for g in groups)
    for rule in found:
        assert rule["health"] == "ok" and not rule.get("lastError"), rule
        known(rule["query"])
    # What it names of this virtual cluster is what was scraped: no alert that it is away.
    states = {r["name"]: r["state"] for r in found if r["type"] == "alerting"}
    assert states["SubletNotScraped"] == states["SubletFleetNotObserving"] == states["SubletFleetBehind"] == "inactive"
    assert value(scraped, 'sublet_fleet:held:ratio{pool="a100"}') == 2 / value(scraped, 'sublet_fleet_capacity_gpus{pool="a100"}')


def test_names_and_texts_are_as_prometheus_wants_them(scraped):
    """promtool's linter; what it says of names that are kube-apiserver's is upstream's."""
    for text in (scraped.fleet.scrape()[1], scraped.vc.api.raw("GET", "/metrics")[2].decode()):
        code, out = promtool("check", "metrics", stdin=text)
        found = [line for line in out.splitlines() if line.startswith("sublet_")]
        assert code in (0, 3) and not found, out
