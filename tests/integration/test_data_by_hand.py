# SPDX-License-Identifier: Apache-2.0
"""Copies of ConfigMaps and Secrets that another client of the host changes: the tenant's content is written back,
also after a restart, and not in a race without end."""
import base64

import pytest

from testenv import eventually

from test_explain import pod

KEY = "k"


def encoded(kind, text):
    return base64.b64encode(text.encode()).decode() if kind == "Secret" else text


class Copy:
    """One referenced object and its copy on the host."""

    def __init__(self, vc, kind):
        self.vc, self.kind, self.plural = vc, kind, kind.lower() + "s"
        vc.kubectl.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": "settings", "namespace": "default"},
                          "data": {KEY: encoded(kind, "v")}})
        volume = {"secret": {"secretName": "settings"}} if kind == "Secret" else {"configMap": {"name": "settings"}}
        vc.kubectl.apply(pod("web", volumes=[{"name": "settings", **volume}]))
        vc.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
        [there] = [o for o in vc.host_objects("/api/v1", self.plural)
                   if o["metadata"]["annotations"]["sublet.dev/name"] == "settings"]
        self.path = f"/api/v1/namespaces/{vc.namespace}/{self.plural}/{there['metadata']['name']}"

    def by_hand(self, **data):
        self.vc.host.api.patch(self.path, {"data": {k: v and encoded(self.kind, v) for k, v in data.items()}})

    def data(self):
        return self.vc.host.api.get(self.path).get("data")

    def is_back(self):
        eventually(lambda: self.data() == {KEY: encoded(self.kind, "v")}, 60, "the content to be the tenant's")


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_changes_are_written_back(tenant, kind):
    vc = tenant("research")
    copy = Copy(vc, kind)
    copy.by_hand(k="changed", more="x")
    copy.is_back()
    vc.stop()
    copy.by_hand(k=None)
    vc.start()
    copy.is_back()


def test_a_fight_is_reported_and_slow(tenant):
    vc = tenant("research")
    copy = Copy(vc, "ConfigMap")
    copy.by_hand(k="once")
    copy.is_back()
    copy.by_hand(k="twice")
    eventually(lambda: [e for e in vc.api.get("/api/v1/namespaces/default/events")["items"]
                        if e["involvedObject"]["kind"] == "ConfigMap" and "the host cluster changes" in e["message"]], 60,
               "an Event")
    assert copy.data() == {KEY: "twice"}
    # A change of the tenant's own goes down at once.
    vc.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
                      "data": {KEY: "new"}})
    eventually(lambda: copy.data() == {KEY: "new"}, 60, "the tenant's change")
