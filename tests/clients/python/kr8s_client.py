# SPDX-License-Identifier: Apache-2.0
"""The scenario in the idiom of kr8s: objects that know their cluster, waited for by their conditions."""
import json
import os
import socket
import threading

import kr8s
import yaml
from kr8s._async_utils import as_sync_func
from kr8s.objects import APIObject, ConfigMap, CustomResourceDefinition, Deployment, Event, Namespace, Pod, Role, RoleBinding, Service, ServiceAccount, new_class

from objects import CRD_GROUP, crd, deployment, pod
from script import NAMESPACE, WAIT, Script, eventually

script = Script()
step = script.step
Gadget = new_class("Gadget", f"{CRD_GROUP}/v1", namespaced=True, scalable=True, scalable_spec="replicas", asyncio=False)


class World:
    def __init__(self):
        self.api = kr8s.api(kubeconfig=os.environ["KUBECONFIG"], namespace=NAMESPACE)

    def config_map(self, name, data=None, **meta):
        return ConfigMap({"metadata": {"name": name, "namespace": NAMESPACE, **meta}, "data": data or {}}, api=self.api)


def refused(fn, *args, **kw):
    """What the client raises, with the Status where it keeps it."""
    try:
        fn(*args, **kw)
    except kr8s.NotFoundError as e:
        return ["NotFoundError", str(e)]
    except kr8s.ServerError as e:
        return ["ServerError", str(e), e.response.json()]
    return "succeeded"


@step
def version(w):
    v = w.api.version()
    return [v["major"], v["minor"], v["platform"]]


@step
def resources(w):
    return sorted([r["version"], r["name"], r["kind"], r["namespaced"], sorted(r["verbs"])] for r in w.api.api_resources())


@step
def versions(w):
    return sorted(w.api.api_versions())


@step
def kinds(w):
    return [w.api.lookup_kind(k) for k in ("po", "deploy", "cronjobs.batch", "Lease")]


@step
def namespace(w):
    Namespace({"metadata": {"name": NAMESPACE}}, api=w.api).create()
    ServiceAccount({"metadata": {"name": "default", "namespace": NAMESPACE}}, api=w.api)
    eventually(lambda: list(w.api.get("serviceaccounts", namespace=NAMESPACE)), "the default service account")
    return Namespace.get(NAMESPACE, api=w.api).status.phase


@step
def create(w):
    made = w.config_map("one", {"a": "1"}, labels={"n": "1"})
    made.create()
    return [made.to_dict(), refused(made.create)]


@step
def get(w):
    return [ConfigMap.get("one", namespace=NAMESPACE, api=w.api).to_dict(), refused(ConfigMap.get, "none", namespace=NAMESPACE, api=w.api, timeout=1),
            w.config_map("one").exists(), w.config_map("none").exists(), refused(w.config_map("none").refresh)]


@step
def lists(w):
    for i in range(7):
        w.config_map(f"page-{i}", labels={"page": str(i % 2)}).create()
    def names(**kw):
        return [o.name for o in w.api.get("configmaps", namespace=NAMESPACE, **kw)]
    return [names(label_selector={"page": "1"}), names(label_selector="page in (0), !x"), names(field_selector={"metadata.name": "page-3"}),
            refused(names, label_selector="=x")]


@step
def watch(w):
    """What is there, then what happens; and one object."""
    w.config_map("seen", {"a": "1"}, labels={"watched": "1"}).create()
    got = []
    for kind, o in w.api.watch("configmaps", namespace=NAMESPACE, label_selector="watched=1"):
        got.append([kind, o.name, o.data.to_dict()])
        if len(got) == 1:
            o.patch({"data": {"a": "2"}})
        elif len(got) == 2:
            o.delete()
        else:
            break
    return got


@step
def changes(w):
    one = ConfigMap.get("one", namespace=NAMESPACE, api=w.api)
    one.patch({"data": {"b": "x"}})
    one.patch([{"op": "test", "path": "/data/b", "value": "x"}, {"op": "remove", "path": "/data/a"}], type="json")
    one.label({"colour": "red"})
    one.annotate({"example.com/a": "1"})
    one.remove_label("n")
    return [one.to_dict(), refused(one.patch, [{"op": "test", "path": "/data/b", "value": "y"}], type="json"),
            refused(one.patch, {"data": {"b": 1}}), refused(one.patch, {"metadata": {"resourceVersion": "1"}})]


@step
def owners(w):
    """Garbage follows its owner."""
    owner, owned = w.config_map("owner"), w.config_map("owned")
    owner.create()
    owned.create()
    owner.adopt(owned)
    owner.delete(propagation_policy="Background")
    eventually(lambda: not owned.exists(), "what was owned to be gone")
    return refused(owner.delete)


@step
def scale(w):
    d = Deployment({**deployment("web", 1), "metadata": {"name": "web", "namespace": NAMESPACE}}, api=w.api)
    d.create()
    d.wait("condition=Available", timeout=WAIT)
    d.scale(2)
    eventually(lambda: d.refresh() or d.status.get("availableReplicas") == 2, "the second replica")
    d.wait("jsonpath='{.status.readyReplicas}'=2", timeout=WAIT)
    pods = d.pods()
    Service({"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}, api=w.api).create()
    service = Service.get("web", namespace=NAMESPACE, api=w.api)
    ready = eventually(service.ready_pods, "pods behind the service")
    seen = [d.ready(), len(pods), sorted({type(p).__name__ for p in ready}), d.metadata.generation]
    d.delete(propagation_policy="Foreground")
    d.wait("delete", timeout=WAIT)
    return seen


@step
def custom_objects(w):
    made = CustomResourceDefinition(crd("Gadget"), api=w.api)
    made.create()
    eventually(lambda: made.refresh() or made.status.get("conditions"), "the first conditions")
    made.wait("condition=Established", timeout=WAIT)
    g = Gadget({"metadata": {"name": "g", "namespace": NAMESPACE}, "spec": {"size": 3, "unknown": 1}}, api=w.api)
    def served():
        try:
            g.create()
        except kr8s.ServerError as e:
            if e.response.status_code != 404:
                raise
        return g.exists()
    eventually(served, "the kind to be served")
    g.patch({"status": {"phase": "Ready"}, "spec": {"size": 8}}, subresource="status")
    shown = g.to_dict()
    g.scale(3)
    bad = Gadget({"metadata": {"name": "bad", "namespace": NAMESPACE}, "spec": {"size": 0}}, api=w.api)
    return [shown, g.replicas, refused(bad.create), [o.name for o in w.api.get(Gadget, namespace=NAMESPACE)],
            w.api.lookup_kind("gadgets.clients.example.com/v1")]


@step
def service_account(w):
    """A kubeconfig with a token, and what its user may."""
    ServiceAccount({"metadata": {"name": "reader", "namespace": NAMESPACE}}, api=w.api).create()
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as f:
        loaded = yaml.safe_load(f)
    path = os.path.join(os.environ["HOME"], "reader.kubeconfig")
    loaded["users"][0]["user"] = {"token": token(w)}
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump(loaded, f)
    reader = kr8s.api(kubeconfig=path, namespace=NAMESPACE)
    def read():
        return list(reader.get("configmaps", namespace=NAMESPACE))
    before = refused(read)
    Role({"metadata": {"name": "reader", "namespace": NAMESPACE}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]}, api=w.api).create()
    RoleBinding({"metadata": {"name": "reader", "namespace": NAMESPACE}, "subjects": [
        {"kind": "ServiceAccount", "name": "reader", "namespace": NAMESPACE}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}}, api=w.api).create()
    eventually(lambda: refused(read) == "succeeded", "the role")
    mine = ConfigMap({"metadata": {"name": "one", "namespace": NAMESPACE}}, api=reader)
    return [before, refused(mine.delete), refused(lambda: list(reader.get("secrets", namespace=NAMESPACE))), refused(reader.whoami)]


def token(w):
    """Of the service account, by a request of its own: kr8s has no call for it."""
    async def request():
        async with w.api.call_api("POST", version="v1", url="serviceaccounts/reader/token", namespace=NAMESPACE,
                                  content=json.dumps({"spec": {"expirationSeconds": 3600}})) as answer:
            return answer.json()["status"]["token"]
    return as_sync_func(request)()


@step
def events(w):
    one = ConfigMap.get("one", namespace=NAMESPACE, api=w.api)
    Event({"metadata": {"name": "one.seen", "namespace": NAMESPACE}, "involvedObject": {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "one", "namespace": NAMESPACE, "uid": one.metadata.uid},
        "reason": "Seen", "message": "a look", "type": "Normal"}, api=w.api).create()
    return [e.to_dict() for e in w.api.get("events", namespace=NAMESPACE, field_selector="reason=Seen")]


@step
def pods(w):
    p = Pod({**pod("runs"), "metadata": {"name": "runs", "namespace": NAMESPACE}}, api=w.api)
    p.create()
    p.wait("condition=Ready", timeout=WAIT)
    done = p.exec(["/bin/echo", "hello"])
    try:
        p.exec(["/bin/sh", "-c", "exit 3"])
        failed = "succeeded"
    except ExceptionGroup as e:  # of the tasks that carry the streams
        failed = [[type(x).__name__, str(x)] for x in e.exceptions]
    return [p.ready(), list(p.logs()), list(p.logs(tail_lines=1)), done.stdout.decode(), done.returncode, failed]


@step
def port_forward(w):
    sent, got = b"0123456789" * 5000, b""
    with Pod.get("runs", namespace=NAMESPACE, api=w.api).portforward(8080) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as s:
            threading.Thread(target=s.sendall, args=(sent,), daemon=True).start()
            while len(got) < len(sent):
                got += s.recv(65536)
    return got == sent


@step
def end_of_the_namespace(w):
    CustomResourceDefinition({"metadata": {"name": f"gadgets.{CRD_GROUP}"}}, api=w.api).delete()
    n = Namespace.get(NAMESPACE, api=w.api)
    n.delete()
    n.wait("delete", timeout=WAIT)
    return isinstance(n, APIObject)


script.run(World())
