# SPDX-License-Identifier: Apache-2.0
"""What a busy team does to a cluster, again and again: every workload kind made, scaled, rolled and deleted,
each way of deleting, pods evicted, a machine drained, namespaces removed with everything in them."""
import time

from testenv import eventually
from testenv.api import ApiError

PATIENCE = 120
IMAGE = "example.invalid/app:%d"


def template(app, image=1, claims=False, **spec):
    container = {"name": "main", "image": IMAGE % image, "resources": {"requests": {"cpu": "10m"}}}
    if claims:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return {"metadata": {"labels": {"app": app}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}}


def workload(kind, name, replicas=None, **spec):
    body = {"selector": {"matchLabels": {"app": name}}, "template": template(name, claims="volumeClaimTemplates" in spec)}
    if replicas is not None:
        body["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {**body, **spec}}


def job(name, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": template(name, restartPolicy="Never"), **spec}}


CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                "resources": {"requests": {"storage": "1Mi"}}}}


class Churn:
    """Churn(api).run(seconds): rounds until the time is over, at least one. `nodes`: machines may be drained."""

    def __init__(self, api, nodes=True):
        self.api = api
        self.nodes = nodes
        self.rounds = 0
        self.ns = None

    def run(self, seconds):
        end = time.monotonic() + seconds
        while not self.rounds or time.monotonic() < end:
            self.round()
            self.rounds += 1
        return self

    def round(self):
        self.ns = f"churn-{self.rounds}"
        self.api.post("/api/v1/namespaces", {"metadata": {"name": self.ns}})
        eventually(lambda: self.get("serviceaccounts", "default"), PATIENCE, "the service account")
        self.create()
        self.settle(web=3, db=2)
        self.change()
        self.settle(web=5, db=3)
        self.disturb()
        self.settle(web=5, db=3)
        self.delete()

    # --- steps ----------------------------------------------------------------------------------

    def create(self):
        self.make("", "services", {"metadata": {"name": "db"}, "spec": {
            "clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 80}]}})
        self.make("", "services", {"metadata": {"name": "web"}, "spec": {
            "selector": {"app": "web"}, "ports": [{"port": 80}]}})
        self.make("", "resourcequotas", {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "100"}}})
        self.make("policy", "poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": {
            "minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
        self.make("apps", "deployments", workload("Deployment", "web", 3))
        self.make("apps", "statefulsets", workload(
            "StatefulSet", "db", 2, serviceName="db", volumeClaimTemplates=[CLAIM]))
        if self.nodes:
            self.make("apps", "daemonsets", workload("DaemonSet", "agent"))
        self.make("batch", "jobs", job("work", completions=4, parallelism=2, ttlSecondsAfterFinished=5))
        self.make("batch", "jobs", job("indexed", completions=2, completionMode="Indexed"))
        self.make("batch", "jobs", job("later", suspend=True))
        self.make("batch", "cronjobs", {"metadata": {"name": "often"}, "spec": {
            "schedule": "* * * * *", "jobTemplate": {"spec": job("often")["spec"]}}})

    def change(self):
        self.patch("apps", "deployments", "web", {"spec": {"replicas": 5, "template": template("web", 2)}})
        self.patch("apps", "statefulsets", "db", {"spec": {"replicas": 3}})
        if self.nodes:
            self.patch("apps", "daemonsets", "agent", {"spec": {"template": template("agent", 2)}})
        self.patch("batch", "jobs", "later", {"spec": {"suspend": False}})
        self.finished("indexed")
        self.finished("later")

    def disturb(self):
        # Earlier ones may still be terminating, and end before anything disturbs them.
        pods = [p["metadata"]["name"] for p in self.pods("web") if "deletionTimestamp" not in p["metadata"]]
        for name in pods[:2]:
            self.evict(name)
        self.remove("", "pods", pods[2], gracePeriodSeconds=0)
        self.remove("", "pods", "db-1")
        if self.nodes:
            self.drain()
        self.patch("apps", "deployments", "web", {"spec": {"template": template("web", 3)}})
        self.patch("apps", "statefulsets", "db", {"spec": {"template": template("db", 2, claims=True)}})

    def delete(self):
        self.remove("batch", "jobs", "indexed", propagationPolicy="Foreground")
        self.remove("apps", "deployments", "web", propagationPolicy="Orphan")
        self.gone("deployments", "web", "apps")
        for rs in self.items("apps", "replicasets"):
            self.remove("apps", "replicasets", rs["metadata"]["name"], propagationPolicy="Background")
        self.remove("apps", "statefulsets", "db", propagationPolicy="Foreground")
        self.gone("statefulsets", "db", "apps")
        self.gone("jobs", "work", "batch")
        self.api.delete(f"/api/v1/namespaces/{self.ns}")
        eventually(self._namespace_gone, PATIENCE, f"{self.ns} to go")

    def drain(self):
        """A machine of our own: cordoned, emptied by a taint, back again."""
        name = min(n["metadata"]["name"] for n in self.api.get("/api/v1/nodes")["items"])
        self._node(name, {"unschedulable": True})
        self._node(name, {"taints": [{"key": "churn", "effect": "NoExecute"}]})
        eventually(lambda: not [p for p in self.pods("web") if p["spec"].get("nodeName") == name], PATIENCE,
                   f"{name} to be empty")
        self._node(name, {"unschedulable": None, "taints": None})

    # --- conditions -----------------------------------------------------------------------------

    def settle(self, web, db):
        eventually(lambda: self._rolled("deployments", "web", web), PATIENCE, f"{self.ns}: {web} of web")
        eventually(lambda: self._rolled("statefulsets", "db", db), PATIENCE, f"{self.ns}: {db} of db")
        if self.nodes:
            eventually(self._everywhere, PATIENCE, f"{self.ns}: the DaemonSet on all machines")

    def finished(self, name):
        def complete():
            status = self.get("jobs", name, "batch").get("status", {})
            return any(c["type"] == "Complete" and c["status"] == "True" for c in status.get("conditions", []))
        eventually(complete, PATIENCE, f"{self.ns}: job {name}")

    def gone(self, resource, name, group=""):
        def absent():
            try:
                self.get(resource, name, group)
            except ApiError as e:
                return e.code == 404
            return False
        eventually(absent, PATIENCE, f"{self.ns}: {resource}/{name} to go")

    def _rolled(self, resource, name, replicas):
        o = self.get(resource, name, "apps")
        s = o["status"]
        return (s.get("observedGeneration") == o["metadata"]["generation"] and s.get("replicas") == replicas
                and s.get("updatedReplicas") == replicas and s.get("availableReplicas") == replicas)

    def _everywhere(self):
        o = self.get("daemonsets", "agent", "apps")
        s = o["status"]
        return (s.get("observedGeneration") == o["metadata"]["generation"] and s["desiredNumberScheduled"] > 0
                and s.get("updatedNumberScheduled") == s["desiredNumberScheduled"] == s.get("numberAvailable"))

    def _namespace_gone(self):
        return self.api.raw("GET", f"/api/v1/namespaces/{self.ns}")[0] == 404

    # --- requests -------------------------------------------------------------------------------

    def path(self, group, resource, name=None):
        base = f"/apis/{group}/v1" if group else "/api/v1"
        return f"{base}/namespaces/{self.ns}/{resource}" + (f"/{name}" if name else "")

    def get(self, resource, name, group=""):
        return self.api.get(self.path(group, resource, name))

    def items(self, group, resource):
        return self.api.get(self.path(group, resource))["items"]

    def pods(self, app):
        return self.api.get(self.path("", "pods"), labelSelector=f"app={app}")["items"]

    def make(self, group, resource, body):
        self.api.post(self.path(group, resource), body)

    def patch(self, group, resource, name, body):
        self.api.patch(self.path(group, resource, name), body)

    def remove(self, group, resource, name, **options):
        self.api.delete(self.path(group, resource, name), {"kind": "DeleteOptions", "apiVersion": "v1", **options})

    def evict(self, name):
        """429 while the budget is used up."""
        def accepted():
            self.api.post(self.path("", "pods", name) + "/eviction", {
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.ns}})
            return True
        eventually(accepted, PATIENCE, f"{self.ns}: the eviction of {name}", also=(429,))

    def _node(self, name, spec):
        self.api.patch(f"/api/v1/nodes/{name}", {"spec": spec})
