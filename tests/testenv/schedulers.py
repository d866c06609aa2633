# SPDX-License-Identifier: Apache-2.0
"""The real KAI, Volcano and HAMi on a host cluster: their definitions from their modules, their programs as processes.

None has its webhooks here. KAI's also sets a RuntimeClass in pods without one: tests/integration/test_host_fence.py.
"""
import os

import yaml

from . import binaries
from .process import Port, Process
from .wait import AWAY, eventually

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class _Scheduler:
    """start(), stop(). queue(name, gpus) makes a queue, drop_queue(name) removes it."""
    module = api = None
    crds = ()       # paths of their files in the module
    programs = ()
    groups = None   # path of its PodGroups below a namespace

    def __init__(self, host, directory):
        self.host, self.dir = host, str(directory)
        if self.module:
            self.source = binaries.module_source(f"{self.module}@v{binaries.queue_program(self.programs[0])[1]}")
        self.definitions = [self._read(f) for f in self.crds]
        self.ports, self.queues = [], []
        env = {"KUBECONFIG": host.kubeconfig, "NO_PROXY": "*", "no_proxy": "*"}
        self.processes = [Process(p, [self.program(p), *self.options(p)], self.dir, env=env) for p in self.programs]

    def program(self, name):
        return binaries.queue_program(name)[0]

    def options(self, program):
        raise NotImplementedError

    def start(self):
        api = self.host.api
        for o in self.definitions:
            api.post(DEFINITIONS, o)
        for o in self.definitions:
            eventually(lambda p=f"{DEFINITIONS}/{o['metadata']['name']}": any(
                c["type"] == "Established" and c["status"] == "True" for c in api.get(p).get("status", {}).get("conditions") or []),
                60, "the definitions of " + self.module)
        try:
            self.prepare()
            for p in self.processes:
                p.start()
        except BaseException:
            self.stop()
            raise
        return self

    def prepare(self):
        """What the programs need beside their definitions."""

    def stop(self):
        for name in list(self.queues):
            self.drop_queue(name)
        for p in self.processes:
            p.kill()
        for o in self.definitions:
            self.host.api.raw("DELETE", f"{DEFINITIONS}/{o['metadata']['name']}")
        for p in self.ports:
            p.close()
        names = {o["metadata"]["name"] for o in self.definitions}
        eventually(lambda: not names & {o["metadata"]["name"] for o in self.host.api.get(DEFINITIONS)["items"]},
                   60, "the definitions gone, for those who make them again")

    def port(self):
        self.ports.append(Port())
        return self.ports[-1].number

    def queue(self, name, gpus):
        self.make_queue(name, self.spec(gpus))

    def make_queue(self, name, spec):
        """Repeated while the API does not serve its kind yet."""
        made = {"apiVersion": self.api[len("/apis/"):], "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        eventually(lambda: self.host.api.post(f"{self.api}/queues", made), 60, "queue " + name, also=(404, *AWAY))
        self.queues.append(name)

    def spec(self, gpus):
        raise NotImplementedError

    def drop_queue(self, name):
        self.queues.remove(name)
        self.host.api.raw("DELETE", f"{self.api}/queues/{name}")
        self.host.api.raw("PATCH", f"{self.api}/queues/{name}", {"metadata": {"finalizers": None}},
                          content_type="application/merge-patch+json")

    def pod_groups(self, namespace):
        return self.host.api.get(self.groups.format(namespace))["items"]

    def _read(self, path):
        with open(os.path.join(self.source, path), encoding="utf-8") as f:
            return yaml.safe_load(f)

    def _write(self, name, content):
        os.makedirs(self.dir, exist_ok=True)
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(content, f)
        return path


class Kai(_Scheduler):
    module = "github.com/NVIDIA/KAI-scheduler"
    api = "/apis/scheduling.run.ai/v2"
    groups = "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups"
    crds = tuple(f"deployments/kai-scheduler/crds/{n}.yaml" for n in (
        "scheduling.run.ai_queues", "scheduling.run.ai_podgroups", "scheduling.run.ai_bindrequests", "kai.scheduler_topologies"))
    programs = ("kai-scheduler", "kai-podgrouper", "kai-binder")
    PARENT = "all"
    CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}

    def options(self, program):
        if program == "kai-scheduler":
            return [f"--listen-address=127.0.0.1:{self.port()}", f"--plugin-server-port={self.port()}", "--schedule-period=500ms",
                    "--update-pod-eviction-condition=true"]
        return ["--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{self.port()}"]

    def prepare(self):
        for name, value in self.CLASSES.items():
            self.host.api.post(PRIORITIES, {"metadata": {"name": name}, "value": value})
        self.host.create_namespace("kai-resource-reservation")
        self.host.api.post("/api/v1/namespaces/kai-resource-reservation/serviceaccounts", {
            "metadata": {"name": "kai-resource-reservation"}})

    def stop(self):
        super().stop()
        for name in self.CLASSES:
            self.host.api.raw("DELETE", f"{PRIORITIES}/{name}")
        self.host.delete_namespace("kai-resource-reservation")
        eventually(lambda: "kai-resource-reservation" not in {o["metadata"]["name"] for o in self.host.api.get("/api/v1/namespaces")["items"]},
                   60, "its namespace gone")

    def queue(self, name, gpus):
        """Pods run in queues that have a parent alone."""
        if self.PARENT not in self.queues:
            self.make_queue(self.PARENT, self.spec(-1))
        self.make_queue(name, {**self.spec(gpus), "parentQueue": self.PARENT})

    def spec(self, gpus):
        free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        return {"resources": {"cpu": free, "memory": free, "gpu": {"quota": gpus, "limit": gpus, "overQuotaWeight": 1}}}


class Volcano(_Scheduler):
    module = "volcano.sh/volcano"
    api = "/apis/scheduling.volcano.sh/v1beta1"
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
    crds = tuple(f"config/crd/volcano/bases/{n}.yaml" for n in (
        "scheduling.volcano.sh_queues", "scheduling.volcano.sh_podgroups", "nodeinfo.volcano.sh_numatopologies",
        "batch.volcano.sh_jobs", "bus.volcano.sh_commands"))
    programs = ("volcano-scheduler", "volcano-controller-manager")

    def __init__(self, host, directory, shares=False):
        """shares: it gives shares of GPUs, too."""
        self.shares = shares
        super().__init__(host, directory)

    def conf(self):
        path = "installer/helm/chart/volcano/config/volcano-scheduler.conf"
        if not self.shares:
            return os.path.join(self.source, path)
        conf = self._read(path)
        conf["tiers"][-1]["plugins"].append({"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}})
        return self._write("scheduler.conf", conf)

    def options(self, program):
        common = [f"--kubeconfig={self.host.kubeconfig}", "--leader-elect=false"]
        if program == "volcano-scheduler":
            return common + [f"--scheduler-conf={self.conf()}",
                             "--schedule-period=500ms", "--cache-dumper=false", f"--listen-address=127.0.0.1:{self.port()}"]
        return common + ["--controllers=pg-controller,queue-controller"]

    def spec(self, gpus):
        return {"weight": 1, "reclaimable": True, "capability": {"nvidia.com/gpu": str(gpus), "cpu": "100", "memory": "100Gi"}}


class Hami(_Scheduler):
    """The host's own scheduler as `hami-scheduler`, whose extender, HAMi's, chooses the GPU. It has no queues."""
    programs = ("hami-scheduler", "kube-scheduler")
    WORDS = {"resourceCountName": "nvidia.com/gpu", "resourceMemoryName": "nvidia.com/gpumem", "resourceCoreName": "nvidia.com/gpucores",
             "resourceMemoryPercentageName": "nvidia.com/gpumem-percentage", "resourcePriorityName": "nvidia.com/priority"}

    def program(self, name):
        return binaries.host_component(name) if name.startswith("kube-") else super().program(name)

    def options(self, program):
        if program == "hami-scheduler":
            self.extender = self.port()
            devices = {"nvidia": {**self.WORDS, "defaultMemory": 0, "defaultCores": 0, "defaultGPUNum": 1, "memoryFactor": 1}}
            return [f"--http_bind=127.0.0.1:{self.extender}", "--scheduler-name=hami-scheduler",
                    f"--metrics-bind-address=127.0.0.1:{self.port()}", "--device-config-file=" + self._write("devices.yaml", devices)]
        conf = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False}, "clientConnection": {"kubeconfig": self.host.kubeconfig},
                "profiles": [{"schedulerName": "hami-scheduler"}],
                "extenders": [{"urlPrefix": f"http://127.0.0.1:{self.extender}", "filterVerb": "filter", "bindVerb": "bind",
                               "nodeCacheCapable": True, "weight": 1, "httpTimeout": "30s",
                               "managedResources": [{"name": n, "ignoredByScheduler": True} for n in self.WORDS.values()]}]}
        return ["--config=" + self._write("kube-scheduler.yaml", conf), f"--secure-port={self.port()}", "--bind-address=127.0.0.1",
                "--cert-dir=" + os.path.join(self.dir, "certificates")]
