# SPDX-License-Identifier: Apache-2.0
"""The cluster of examples/ten-teams: a real control plane with simulated machines, the fleet and ten virtual clusters.

Everything is installed as its administrator would, by kubectl and helm, from the example's files. No image can run on a
simulated machine: the processes of the releases run here instead, with the configuration that each release rendered and with
the token of its ServiceAccount, and so with the rights that the chart gives and no others. Must end what it started.
"""
import os
from concurrent.futures import ThreadPoolExecutor

import yaml

from testenv import binaries, eventually
from testenv.fleet import CHART as FLEET_CHART
from testenv.fleet import Fleet
from testenv.helm import CHART, Helm
from testenv.host import HostCluster
from testenv.nodes import gpu_node
from testenv.pki import derive_kubeconfig
from testenv.virtual import VirtualCluster, merge

EXAMPLE = os.path.join(binaries.TREE, "examples", "ten-teams")
SYSTEM = "sublet-system"
GROUP = "/apis/sublet.dev/v1alpha1"
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}


def example(*names):
    return os.path.join(EXAMPLE, *names)


def objects(name):
    """What one of the example's files has."""
    with open(example(name), encoding="utf-8") as f:
        return [o for o in yaml.safe_load_all(f) if o]


def team_names():
    return [o["metadata"]["name"].removeprefix("team-") for o in objects("namespaces.yaml")]


class TenTeams:
    """host, fleet, teams[name]; start_host() ... start_teams(), stop()."""

    def __init__(self, directory, grace):
        self.dir, self.grace = str(directory), grace
        self.host, self.fleet, self.teams = None, None, {}

    # --- the host -----------------------------------------------------------------------------------

    def start_host(self):
        self.host = HostCluster(os.path.join(self.dir, "host"))
        # On a crowded machine a request that the quota admitted may end in a timeout: until a resync it is charged for nothing.
        self.host.components["kube-controller-manager"].argv.append("--resource-quota-sync-period=20s")
        self.host.start()
        self.host.kubectl("apply", "-f", example("nodes.yaml"))
        for node in objects("nodes.yaml"):
            eventually(lambda n=node["metadata"]["name"]: self.host.node_if_ready(n), 60, "a machine to be Ready")
        self.host.kubectl("apply", "-f", example("namespaces.yaml"))

    def add_machines(self, pool, model, count):
        """Further machines of a pool, all alike."""
        for i in range(count):
            self.host.api.post("/api/v1/nodes", gpu_node(f"gpu-{pool}-{i + 1}", pool, model=model))
        eventually(lambda: all(self.host.node_if_ready(f"gpu-{pool}-{i + 1}") for i in range(count)), 120, "the machines to be Ready")

    # --- releases -----------------------------------------------------------------------------------

    def _install(self, release, chart, namespace, file, *more):
        """helm install; returns the configuration of the release, and a kubeconfig of its account."""
        helm = Helm(os.path.join(self.dir, f"helm-{release}"), self.host.kubeconfig)
        os.makedirs(helm.directory, exist_ok=True)
        helm("install", release, chart, "-n", namespace, "--create-namespace", "-f", example(file), *more)
        api = self.host.api.clone()
        data, = api.get(f"/api/v1/namespaces/{namespace}/configmaps/{release}")["data"].values()
        token = api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{release}/token", TOKEN)["status"]["token"]
        api.close()
        return yaml.safe_load(data), derive_kubeconfig(os.path.join(self.dir, f"{release}.kubeconfig"), self.host.kubeconfig,
                                                       token=token)

    def start_fleet(self):
        config, kubeconfig = self._install("fleet", FLEET_CHART, SYSTEM, "fleet.values.yaml", "--set", f"config.grants.grace={self.grace}")
        for kind in ("gpupools", "gpubindings"):
            eventually(lambda k=kind: self.host.api.get(f"{GROUP}/{k}"), 60, f"{kind} to be served", also=[429])
        self.host.kubectl("apply", "-f", example("pools.yaml"), "-f", example("bindings.yaml"))
        self.fleet = Fleet(os.path.join(self.dir, "fleet"), self.host, SYSTEM, config["pools"], kubeconfig=kubeconfig,
                           args=("--listen", "127.0.0.1:0"))
        self.fleet.write_config(grants=config["grants"])
        self.fleet.start()
        self.fleet.keep()

    def start_teams(self):
        names = team_names()
        with ThreadPoolExecutor(max_workers=3) as pool:
            list(pool.map(self._start_team, names))

    def _start_team(self, name):
        namespace = f"team-{name}"
        config, kubeconfig = self._install(name, CHART, namespace, "team.values.yaml")
        config.pop("kubeconfig")  # the Service's address, and the DNS of pods, are the host's network
        config.pop("network", None)
        vc = VirtualCluster(name, os.path.join(self.dir, "teams"), self.host, namespace, host_kubeconfig=kubeconfig)
        vc.write_config(merge(config, {"host": {"kubeconfig": kubeconfig}, "store": {"path": vc.store}}))
        self.teams[name] = vc
        vc.start()
        vc.close_api()

    def start_work(self):
        for name in team_names():
            self.teams[name].kubectl("apply", "-f", example("teams", f"{name}.yaml"))

    def stop(self):
        """Everything ends, the host last; what a process said while it ended is an error."""
        errors = []
        for part in [*self.teams.values(), *([self.fleet] if self.fleet else [])]:
            try:
                part.close()
            except AssertionError as e:
                errors.append(str(e))
        if self.host:
            self.host.stop()
        assert not errors, "\n".join(errors)

    # --- what the host shows ------------------------------------------------------------------------

    def pods(self, team):
        """{the team's name of a pod: the host's pod}"""
        found = self.host.api.get(f"/api/v1/namespaces/team-{team}/pods", labelSelector="sublet.dev/cluster")["items"]
        return {p["metadata"]["annotations"]["sublet.dev/name"]: p for p in found}

    def running(self, team, prefix):
        """Its host pods of a workload that run."""
        return [p for name, p in self.pods(team).items() if name.startswith(prefix + "-")
                and p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]]

    def binding(self, team, name):
        return self.host.api.get(f"{GROUP}/namespaces/team-{team}/gpubindings/{name}")

    def condition(self, team, name, kind="Ready"):
        return next(c for c in self.binding(team, name)["status"]["conditions"] if c["type"] == kind)
