# SPDX-License-Identifier: Apache-2.0
"""An operator on kopf, and what its handlers were called with: create, update, field, timer, deletion with a finalizer,
an index, peering with another operator.

Handlers are called when they are called; the outcome of a step is read from the objects, or from what was counted.
"""
import asyncio
import collections
import contextlib
import logging
import os
import threading

import kopf
from kubernetes import client, config

from objects import CRD_GROUP, crd
from script import NAMESPACE, Script, eventually

script = Script()
step = script.step
GADGETS = (CRD_GROUP, "v1", NAMESPACE, "gadgets")
PEERS = ("kopf.dev", "v1", NAMESPACE, "kopfpeerings")
seen = collections.defaultdict(list)
registry = kopf.OperatorRegistry()
logging.basicConfig(level=logging.WARNING)


@kopf.on.startup(registry=registry)
def configure(settings, **_):
    settings.posting.loggers = True
    settings.persistence.finalizer = "clients.example.com/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="clients.example.com")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="clients.example.com")
    settings.peering.standalone = False
    settings.peering.name = "gadgets"
    settings.peering.mandatory = True


@kopf.on.login(registry=registry)
def login(**kw):
    return kopf.login_with_kubeconfig(**kw)


@kopf.index(CRD_GROUP, "v1", "gadgets", registry=registry)
def by_mode(name, spec, **_):
    return {spec["mode"]: name}


@kopf.on.create(CRD_GROUP, "v1", "gadgets", registry=registry)
def created(name, spec, patch, retry, **_):
    """Fails once for the gadget that says so, and is called again."""
    seen["created"].append([name, retry])
    if spec["size"] == 13 and retry == 0:
        raise kopf.TemporaryError("once more", delay=0.1)
    if spec["size"] == 14:
        raise kopf.PermanentError("never")
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"of-{name}"}, "data": {"size": str(spec["size"])}}
    kopf.adopt(child)
    client.CoreV1Api().create_namespaced_config_map(NAMESPACE, child)
    patch.status["phase"] = "Made"
    return {"child": f"of-{name}"}


@kopf.on.update(CRD_GROUP, "v1", "gadgets", registry=registry)
def updated(name, diff, patch, by_mode, **_):  # pylint: disable=redefined-outer-name
    seen["updated"].append([name, sorted([op, list(field), old, new] for op, field, old, new in diff)])
    patch.status["phase"] = "Changed"
    patch.status["alike"] = sorted(n for values in by_mode.values() for n in values)


@kopf.on.field(CRD_GROUP, "v1", "gadgets", field="spec.mode", registry=registry)
def mode(name, old, new, **_):
    seen["mode"].append([name, old, new])


@kopf.timer(CRD_GROUP, "v1", "gadgets", interval=0.3, idle=0.1, registry=registry)
def ticks(name, **_):
    seen["ticks"].append(name)


@kopf.on.delete(CRD_GROUP, "v1", "gadgets", registry=registry)
def deleted(name, meta, **_):
    seen["deleted"].append([name, list(meta["finalizers"])])


@kopf.on.event("configmaps", labels={"watched": "1"}, registry=registry)
def event(name, type, **_):  # pylint: disable=redefined-builtin
    seen["events"].append([type, name])


class Operator:
    """Runs kopf in a thread of its own."""

    def __init__(self, priority):
        self.stop_flag = threading.Event()
        self.ready = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self._run, args=(priority,), daemon=True)

    def _run(self, priority):
        try:
            asyncio.run(kopf.operator(registry=registry, namespaces=[NAMESPACE], priority=priority, identity=f"operator-{priority}",
                                      ready_flag=self.ready, stop_flag=self.stop_flag))
        except Exception as e:  # pylint: disable=broad-except - shown by whoever waits for it
            self.error = e

    def start(self):
        self.thread.start()
        eventually(lambda: self.ready.is_set() or self.error, "the operator to be ready")
        if self.error:
            raise self.error
        return self

    def stop(self):
        self.stop_flag.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


class World:
    def __init__(self):
        config.load_kube_config()
        self.core = client.CoreV1Api()
        self.custom = client.CustomObjectsApi()
        self.operator = Operator(10)

    def gadget(self, name):
        with contextlib.suppress(client.ApiException):
            return self.custom.get_namespaced_custom_object(*GADGETS, name)
        return None

    def create(self, name, **spec):
        return self.custom.create_namespaced_custom_object(*GADGETS, {
            "apiVersion": f"{CRD_GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec})

    def phase(self, name, phase):
        def reached():
            g = self.gadget(name)
            handled = g and "clients.example.com/last-handled-configuration" in g["metadata"].get("annotations", {})
            return g if handled and g.get("status", {}).get("phase") == phase else None
        return eventually(reached, f"{name} to be {phase}")


def peering():
    """The kind that kopf's peers meet in."""
    made = crd("KopfPeering")
    made["metadata"]["name"] = "kopfpeerings.kopf.dev"
    made["spec"]["group"] = "kopf.dev"
    version = made["spec"]["versions"][0]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}
    del version["subresources"], version["additionalPrinterColumns"]
    return made


def known(gadget):
    """What does not depend on how far the handlers are."""
    meta = gadget["metadata"]
    return [meta["finalizers"], meta["generation"], gadget["spec"], gadget["status"]]


@step
def prepared(w):
    w.core.create_namespace({"metadata": {"name": NAMESPACE}})
    api = client.ApiextensionsV1Api()
    for body in (crd("Gadget"), peering()):
        api.create_custom_resource_definition(body)
        eventually(lambda n=body["metadata"]["name"]: any(c.type == "Established" and c.status == "True" for c in
                                                         api.read_custom_resource_definition(n).status.conditions or []), "the CRD")
    def peers():
        with contextlib.suppress(client.ApiException):
            return w.custom.create_namespaced_custom_object(*PEERS, {"apiVersion": "kopf.dev/v1", "kind": "KopfPeering",
                                                                    "metadata": {"name": "gadgets"}})
        return None
    return eventually(peers, "the kind to be served")


@step
def started(w):
    w.operator.start()
    peers = eventually(lambda: w.custom.get_namespaced_custom_object(*PEERS, "gadgets").get("status"), "the operator among its peers")
    return {name: [p["priority"], p["lifetime"], sorted(p)] for name, p in peers.items()}


@step
def create(w):
    w.create("g", size=3)
    g = w.phase("g", "Made")
    child = w.core.read_namespaced_config_map("of-g", NAMESPACE)
    return [known(g), [[o.kind, o.name, o.controller, o.block_owner_deletion] for o in child.metadata.owner_references], child.data]


@step
def retry(w):
    w.create("again", size=13)
    w.phase("again", "Made")
    w.create("never", size=14)
    eventually(lambda: ["never", 0] in seen["created"], "the handler")
    return sorted(seen["created"])


@step
def update(w):
    w.custom.patch_namespaced_custom_object(*GADGETS, "g", {"spec": {"size": 4, "mode": "fast"}})
    g = w.phase("g", "Changed")
    eventually(lambda: ["g", "slow", "fast"] in seen["mode"], "the handler of the field")
    return [known(g), seen["updated"], sorted(seen["mode"], key=str)]


@step
def timer(w):
    eventually(lambda: seen["ticks"].count("g") > 2, "the timer")
    return sorted(set(seen["ticks"]))


@step
def raw_events(w):
    w.core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "c", "labels": {"watched": "1"}}})
    eventually(lambda: seen["events"], "the first event")
    w.core.delete_namespaced_config_map("c", NAMESPACE)
    eventually(lambda: len(seen["events"]) > 1, "the second event")
    return seen["events"]


@step
def posted_events(w):
    """What kopf says of its handlers, as Events of the object."""
    def posted():
        events = w.core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.name=never").items
        return [[e.type, e.reason, e.message, e.involved_object.kind, e.source.component] for e in events if "permanently" in e.message]
    return eventually(posted, "an event")


@step
def delete(w):
    """Held by the finalizer until the handler has run; the child follows."""
    w.custom.delete_namespaced_custom_object(*GADGETS, "g")
    eventually(lambda: not w.gadget("g"), "the gadget to be gone")
    eventually(lambda: not w.core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=of-g").items, "the child to be gone")
    return seen["deleted"]


@step
def overtaken(w):
    """An operator of higher priority makes this one pause."""
    other = Operator(20).start()
    try:
        both = eventually(lambda: len(w.custom.get_namespaced_custom_object(*PEERS, "gadgets")["status"]) == 2, "the peer")
        before = len(seen["created"])
        w.create("h", size=1)
        w.phase("h", "Made")
        return [both, seen["created"][before:]]
    finally:
        other.stop()


@step
def stopped(w):
    for name in ("again", "never", "h"):
        w.custom.delete_namespaced_custom_object(*GADGETS, name)
        eventually(lambda name=name: not w.gadget(name), "the gadget to be gone")
    w.operator.stop()
    return w.custom.get_namespaced_custom_object(*PEERS, "gadgets").get("status")


@step
def end_of_the_namespace(w):
    for name in ("gadgets.clients.example.com", "kopfpeerings.kopf.dev"):
        client.ApiextensionsV1Api().delete_custom_resource_definition(name)
    w.core.delete_namespace(NAMESPACE)
    eventually(lambda: not w.core.list_namespace(field_selector=f"metadata.name={NAMESPACE}").items, "the namespace to be gone")


script.run(World())
