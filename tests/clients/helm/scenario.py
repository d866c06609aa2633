# SPDX-License-Identifier: Apache-2.0
"""Helm, 3 or 4 (its program is the argument), with a chart that has hooks and a kind of its own.

What it prints, and what it left on the server.
"""
import json
import os
import re
import subprocess
import sys

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "python"), os.path.dirname(os.path.dirname(HERE))]

from script import NAMESPACE, WAIT, Script, eventually  # noqa: E402
from testenv.api import Api  # noqa: E402

script = Script()
step = script.step
CHART = os.path.join(HERE, "chart")


class World:
    def __init__(self):
        self.api = Api(os.environ["KUBECONFIG"])

    def helm(self, *args):
        """[exit code, stdout, stderr], in words that two runs share."""
        r = subprocess.run([sys.argv[1], "-n", NAMESPACE, *args], capture_output=True, text=True, check=False, timeout=WAIT * 5)
        return [r.returncode, known(r.stdout), known(r.stderr)]

    def change(self, verb, *args):
        return self.helm(verb, "web", *args, "--wait", f"--timeout={WAIT:.0f}s")

    def objects(self, group, resource):
        path = f"{group}/namespaces/{NAMESPACE}/{resource}"
        return {o["metadata"]["name"]: o for o in self.api.get(path)["items"]}

    def shown(self):
        """What the release has on the server, with who manages it."""
        d = self.objects("/apis/apps/v1", "deployments")["web"]
        maps = self.objects("/api/v1", "configmaps")
        service = self.objects("/api/v1", "services")["web"]
        return [d["spec"]["replicas"], d["status"].get("availableReplicas"), d["spec"]["template"]["metadata"]["annotations"],
                {name: o["data"] for name, o in maps.items() if name != "kube-root-ca.crt"},
                [[p["name"], p["port"]] for p in service["spec"]["ports"]], self.objects("/apis/clients.example.com/v1", "widgets")["widget"]["spec"],
                sorted(self.objects("/apis/batch/v1", "jobs")), sorted(self.objects("/apis/rbac.authorization.k8s.io/v1", "roles")),
                {name: [[m["manager"], m["operation"], m["fieldsV1"]] for m in o["metadata"]["managedFields"]]
                 for name, o in (("service", service), ("settings", maps["settings"]))},
                service["metadata"]["annotations"], service["metadata"]["labels"]]


def known(text):
    """Less the lines of time, and of the program's own log."""
    return [x for x in text.splitlines() if x.strip() and not re.match(r"LAST DEPLOYED|Last (Started|Completed)|\w\d{4} |time=|level=", x)]


@step
def version(w):
    return w.helm("version", "--template={{.Version}}")


@step
def install(w):
    return w.change("install", CHART, "--create-namespace")


@step
def installed(w):
    return [w.shown(), sorted(s["type"] for s in w.objects("/api/v1", "secrets").values())]


@step
def install_again(w):
    return w.change("install", CHART)


@step
def listed(w):
    code, out, err = w.helm("list", "-o", "json")
    return [code, [{k: v for k, v in r.items() if k != "updated"} for r in json.loads("".join(out))], err]


@step
def upgrade(w):
    return [w.change("upgrade", CHART, "--set", "color=blue,replicas=2,second=true"), w.shown()]


@step
def upgrade_that_fails(w):
    return [w.change("upgrade", CHART, "--set", "broken=true"), w.shown()]


@step
def rollback(w):
    return [w.change("rollback", "1"), w.shown()]


@step
def dry_runs(w):
    return [w.helm("upgrade", "web", CHART, "--dry-run=server", "--set", "color=green"), w.shown()[3]]


@step
def tests(w):
    return w.helm("test", "web", f"--timeout={WAIT:.0f}s")


@step
def history(w):
    code, out, err = w.helm("history", "web", "-o", "json")
    return [code, [{k: v for k, v in r.items() if k != "updated"} for r in json.loads("".join(out))], err]


@step
def manifest(w):
    code, out, err = w.helm("get", "manifest", "web")
    return [code, [o for o in yaml.safe_load_all("\n".join(out)) if o], err, w.helm("get", "values", "web", "--revision", "2")]


@step
def status(w):
    """Helm prints kinds in the order of a Go map; their rows have ages and generated names."""
    code, out, err = w.helm("status", "web")
    return [code, [x for x in out if re.match("[A-Z ]+: ", x)], sorted(x for x in out if x.startswith("==>")), err]


@step
def uninstall(w):
    """What the chart's crds/ made stays; hooks stay as their policy says."""
    answer = w.change("uninstall")
    eventually(lambda: not w.objects("/apis/apps/v1", "deployments"), "the deployment to be gone")
    return [answer, sorted(w.objects("/api/v1", "configmaps")), [s for s in w.objects("/api/v1", "secrets").values() if s["type"].startswith("helm")],
            w.helm("list", "-q"), w.api.get("/apis/clients.example.com/v1/widgets")["items"]]


@step
def end_of_the_namespace(w):
    w.api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.clients.example.com")
    w.api.delete(f"/api/v1/namespaces/{NAMESPACE}")
    eventually(lambda: w.api.raw("GET", f"/api/v1/namespaces/{NAMESPACE}")[0] == 404, "the namespace to be gone")


script.run(World())
