# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus, and what the charts give it: rules, dashboards."""
import json
import os
import subprocess
import urllib.parse
import urllib.request

import yaml

from . import binaries
from .fleet import CHART as FLEET_CHART
from .helm import CHART, Helm
from .process import Port, Process
from .wait import eventually


def programs():
    """The directory of prometheus and promtool."""
    return subprocess.run([os.path.join(binaries.HERE, "prometheus.sh")], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def promtool(*args, stdin=None):
    """Exit code, and what it printed."""
    r = subprocess.run([os.path.join(programs(), "promtool"), *map(str, args)], input=stdin, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
    return r.returncode, r.stdout


def chart_rules(directory, **metrics):
    """The groups of rules of both charts, by file name; the tenant is release research in namespace control.
    metrics: further values of the fleet's."""
    helm = Helm(directory)
    fleet = {"config": {"pools": [{"name": "any"}]}, "metrics": {"enabled": True, "tokenSecret": "scrape", "rules": True, **metrics}}
    made = {"sublet": helm("template", "research", CHART, "-n", "control", values={
                "tenantNamespace": "team-research", "metrics": {"rules": True}}),
            "fleet": helm("template", "fleet", FLEET_CHART, "-n", "sublet-system", values=fleet)}
    return {name: next(o["spec"] for o in yaml.safe_load_all(text) if o and o["kind"] == "PrometheusRule")
            for name, text in made.items()}


def dashboard():
    """That of the fleet's chart."""
    with open(os.path.join(FLEET_CHART, "files", "dashboard.json"), encoding="utf-8") as f:
        return json.load(f)


class Prometheus:
    """Scrapes `jobs` (scrape_configs) each second, with these files of rules."""

    def __init__(self, directory, jobs, rules=()):
        self.port = Port()
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": jobs,
                  "rule_files": [str(path) for path in rules]}
        path = os.path.join(str(directory), "prometheus.yaml")
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(config, f)
        self.process = Process("prometheus", [
            os.path.join(programs(), "prometheus"), f"--config.file={path}", f"--web.listen-address=127.0.0.1:{self.port}",
            f"--storage.tsdb.path={os.path.join(str(directory), 'prometheus-data')}"], str(directory))

    def start(self):
        self.process.start()
        eventually(lambda: self.get("/api/v1/status/buildinfo"), 60, "Prometheus to answer", also=(OSError,))
        return self

    def get(self, path, **query):
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    def targets(self):
        """{job: (health, last error)}"""
        return {t["labels"]["job"]: (t["health"], t["lastError"]) for t in self.get("/api/v1/targets")["activeTargets"]}

    def types(self):
        """{metric: type} of all that was scraped, with and without samples."""
        return {m["metric"]: m["type"] for m in self.get("/api/v1/targets/metadata")}

    def close(self):
        self.process.stop()
        self.port.close()
