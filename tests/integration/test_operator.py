# SPDX-License-Identifier: Apache-2.0
"""An operator on controller-runtime (operator/), on a virtual cluster and on the real host: one story, the same end.

Two replicas elect a leader; children are applied, created, updated and patched; strangers' changes are taken back; the
leader is killed; the API server is killed; one experiment goes, with its finalizer's work done. The account of the
operator may do what it does and nothing else. What it logs as an error here it has to log there too.
"""
import os

import pytest
import yaml

from testenv import UNSET, binaries, eventually
from testenv.operator import Operator

HERE = os.path.join(binaries.TREE, "tests", "integration", "operator", "experiments.yaml")
PATIENCE = 120


class Story:
    """The operator on one cluster: api and kubectl are its admin's, account(namespace, name) a kubeconfig."""

    def __init__(self, cluster, namespace, directory, watch_list):
        self.cluster = cluster
        self.ns = namespace
        os.makedirs(directory, exist_ok=True)
        self.admin = cluster.kubectl
        self.admin("create", "namespace", self.ns)
        self.k = cluster.kubectl.within(self.ns)
        self.admin("apply", "--server-side", "-f", HERE)
        self.admin("wait", "--for=condition=Established", "crd/experiments.training.example.com", "--timeout=180s")
        account = cluster.service_account_kubeconfig(self.ns, "operator")
        self.k("create", "rolebinding", "operator", "--clusterrole=experiment-operator",
               f"--serviceaccount={self.ns}:operator")
        # The first is killed, and what it held is waited for; the second has to keep it while the API server is away,
        # for as long as a busy machine needs to start that.
        self.replicas = [Operator(name, account, self.ns, directory, watch_list, lease)
                         for name, lease in (("one", 20), ("two", 240))]

    # --- what the team does ---

    def apply(self, name, replicas, /, **settings):
        self.k.apply({"apiVersion": "training.example.com/v1", "kind": "Experiment", "metadata": {"name": name},
                      "spec": {"replicas": replicas, "settings": settings}}, "--server-side")

    def available(self, name, configurations):
        """Waits until it is as last requested."""
        def done():
            for r in self.replicas:
                assert not r.died, r.tail()
            o = self.k.json("get", "experiment", name)
            status = o.get("status", {})
            condition = {c["type"]: c for c in status.get("conditions", [])}.get("Available", {})
            return (condition.get("status") == "True" and condition["observedGeneration"] == o["metadata"]["generation"]
                    and status["configurations"] == configurations and status["readyReplicas"] == o["spec"]["replicas"])
        eventually(done, PATIENCE, f"experiment {name}", also=UNSET)

    def lease(self):
        return self.k.json("get", "lease", "experiments")["spec"]

    # --- the story ---

    def play(self):
        first, second = self.replicas
        first.start()
        eventually(first.leads, PATIENCE, "a leader")
        second.start()
        for name, replicas in (("a", 2), ("b", 1), ("c", 0)):
            self.apply(name, replicas, rate="0.1", name=name)
        for name in "abc":
            self.available(name, 1)
        self.apply("a", 1, rate="0.2", name="a")
        self.available("a", 2)
        self.strangers()
        self.told({("Configured", name) for name in "abc"})
        self.quiet = first.errors() | second.errors()
        assert not second.leads()
        first.kill()
        self.apply("d", 1, rate="0.4")
        self.available("d", 1)
        assert second.leads()
        self.told({("Configured", "d")})
        self.restart()
        self.apply("b", 2, rate="0.3", name="b")
        self.available("b", 2)
        self.k("delete", "experiment", "c", "--timeout=180s")
        children = {"c", "c-key", "c-settings"}
        eventually(lambda: not children & set(self.k.names("configmaps,services,secrets,deployments")), PATIENCE,
                   "the children of c to be gone")
        self.told({("Archived", "c")})
        eventually(self.at_rest, PATIENCE, "the last pods of before to be gone")

    def at_rest(self):
        """A Deployment has what it wants before it has let go of what it wanted before."""
        def rests(o):
            status, wanted = o["status"], o["spec"]["replicas"]
            return (status.get("observedGeneration") == o["metadata"]["generation"] and not status.get("terminatingReplicas")
                    and all(status.get(k, 0) == wanted for k in ("replicas", "updatedReplicas", "readyReplicas",
                                                                 "availableReplicas")))
        return all(rests(o) for o in self.k.items("deployments"))

    def told(self, wanted):
        """Waits for events: they are sent beside the work, and those not sent yet go with a process that is killed."""
        eventually(lambda: wanted <= self.events(), PATIENCE, f"the events {sorted(wanted)}")

    def events(self):
        return {(e["reason"], e["regarding"]["name"]) for e in self.k.items("events.events.k8s.io")
                if e["regarding"]["kind"] == "Experiment"}

    def strangers(self):
        """What others change of a child is taken back; what they add stays."""
        self.k("patch", "configmap", "a-settings", "-p", '{"data":{"rate":"9","note":"stays"}}')
        self.k("scale", "deployment", "b", "--replicas=3")
        eventually(lambda: self.k.json("get", "configmap", "a-settings")["data"] ==
                   {"rate": "0.2", "name": "a", "note": "stays"}, PATIENCE, "the settings of a")
        eventually(lambda: self.k.json("get", "deployment", "b")["spec"]["replicas"] == 1, PATIENCE, "the size of b")
        self.k("delete", "secret", "b-key")
        eventually(lambda: self.k.json("get", "secret", "b-key").get("data"), PATIENCE, "the key of b")

    def restart(self):
        if hasattr(self.cluster, "restart_component"):
            self.cluster.restart_component("kube-apiserver", kill=True)
        else:
            self.cluster.restart(kill=True)
        self.k = self.cluster.kubectl.within(self.ns)

    def stop(self):
        """Ends the replicas as a kubelet would; the leader gives its lease back.

        client-go renews every second, and what it releases is the Lease as it last saw it: a renewal that the end of
        the process cuts off has reached the server or not, and the release is refused. So the end comes right after
        a renewal, and a release is only waived if the log shows that it was overtaken all the same."""
        before = self.lease()["renewTime"]
        eventually(lambda: self.lease()["renewTime"] != before, PATIENCE, "a renewal of the leader")
        codes = [r.stop() for r in self.replicas]
        assert set(codes) <= {None, 0}, codes
        assert self.lease()["holderIdentity"] == "" or self.replicas[1].overtaken(), self.lease()
        return self.replicas[0].errors() | self.replicas[1].errors()

    def outcome(self):
        """The end of it, less what no two clusters share."""
        kinds = "experiments,configmaps,services,secrets,deployments"
        return {"objects": {f"{o['kind']} {o['metadata']['name']}": shape(o) for o in self.k.items(kinds)
                            if o["metadata"]["name"] != "kube-root-ca.crt"}, "events": sorted(self.events())}


def shape(o):
    """An object as its controllers leave it: without identities, times and counts of how often it was written."""
    def walk(value, key):
        if isinstance(value, dict):
            drop = {"uid", "creationTimestamp", "resourceVersion", "time", "lastTransitionTime", "lastUpdateTime",
                    "generation", "observedGeneration", "namespace"}
            return {k: walk(v, k) for k, v in value.items() if k not in drop}
        if isinstance(value, list):
            return [walk(v, key) for v in value]
        return value
    o = walk(o, "")
    entries = o["metadata"].pop("managedFields", [])
    o["metadata"]["owners"] = sorted({(e["manager"], e["operation"], e.get("subresource", "")) for e in entries
                                      if e["manager"] in ("experiment-operator", "operator", "kubectl")})
    o["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    if o["kind"] == "Deployment":  # its conditions depend on its history
        o["status"] = {k: v for k, v in o["status"].items() if k.endswith("eplicas")}
    return o


def play(cluster, namespace, directory, watch_list):
    story = Story(cluster, namespace, directory, watch_list)
    story.play()
    end = story.outcome()
    return story, end, story.stop()


@pytest.fixture(scope="module")
def real(real_host, workdir):
    """The story on the real host, once."""
    namespace = "operator-story"
    try:
        yield play(real_host, namespace, os.path.join(workdir, "operator-real"), True)
    finally:
        real_host.kubectl("delete", "experiments", "--all", "-n", namespace, "--wait=false")
        for o in real_host.kubectl.names("experiments", "-n", namespace):
            real_host.kubectl("patch", "experiment", o, "-n", namespace, "--type=merge",
                              "-p", '{"metadata":{"finalizers":null}}')
        real_host.delete_namespace(namespace)
        real_host.kubectl("delete", "-f", HERE)


@pytest.mark.parametrize("watch_list", [True, False], ids=["watch-list", "list-and-watch"])
def test_an_operator_tells_no_difference(tenant, real, watch_list, workdir):
    vc = tenant("operated", config={"policy": {"verdict": "off"}})
    directory = os.path.join(workdir, f"operator-{watch_list}")
    story, ours, errors = play(vc, "operator-story", directory, watch_list)
    theirs = real[1]
    assert ours["events"] == theirs["events"]
    assert ours["objects"].keys() == theirs["objects"].keys()
    for name, o in theirs["objects"].items():
        assert ours["objects"][name] == o, yaml.safe_dump([o, ours["objects"][name]])
    assert story.quiet <= real[0].quiet, story.quiet
    assert errors <= real[2], errors
