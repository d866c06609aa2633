# SPDX-License-Identifier: Apache-2.0
"""Webhooks by URL: those that the admin lists are called as by a kube-apiserver, every other one is refused when it is
written, and what a listed name resolves to is judged when it is connected to."""
import json
import os
import socket

import pytest

from testenv import eventually
from testenv.pki import Pki
from testenv.process import Port
from testenv.webhook import PLUGIN, WebhookServer, ca_bundle, patch, rule

MAPS = "/api/v1/namespaces/urls/configmaps"
HOOKS = f"{PLUGIN}/mutatingwebhookconfigurations"
LABEL = patch({"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}})


def own_address():
    """One of this machine beyond loopback; without another, none is there to reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("192.0.2.1", 9))
        return s.getsockname()[0]


@pytest.fixture
def server(workdir):
    pki, port = Pki(os.path.join(workdir, "urls")), Port()
    s = WebhookServer(pki.issue("urls", "/CN=urls", ("127.0.0.1", "localhost")), "127.0.0.1", port.number,
                      lambda handler, path, review: s.reply(path, review))
    s.url, s.pki, s.reply = f"https://127.0.0.1:{port.number}", pki, lambda path, review: LABEL
    yield s
    s.stop()


@pytest.fixture
def vc(tenant, server):
    made = tenant("urls", {"policy": {"webhookUrls": [f"{server.url}/in", server.url.replace("127.0.0.1", "localhost")]}})
    made.api.post("/api/v1/namespaces", {"metadata": {"name": "urls"}})
    return made


def configuration(server, url, **over):
    return {"metadata": {"name": "c"}, "webhooks": [{
        "name": "url.test.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule("configmaps")],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "urls"}},
        "clientConfig": {"url": url, "caBundle": ca_bundle(server.pki)}, **over}]}


def test_a_listed_url_is_called_as_by_kube_apiserver(vc, server, real_host):
    shown = []
    real_host.api.post("/api/v1/namespaces", {"metadata": {"name": "urls"}})
    for api in (vc.api, real_host.api):
        api.post(HOOKS, configuration(server, f"{server.url}/in/here"))
        eventually(lambda api=api: api.request("POST", MAPS, {"metadata": {"name": "a"}}, query={"dryRun": "All"})["metadata"].get(
            "labels"), 30, "the webhook to be called")
        path, request, headers = server.seen[-1]
        shown.append((path, request["name"], request["operation"], sorted(k.lower() for k in headers if k.lower() in (
            "content-type", "authorization"))))
        api.delete(f"{HOOKS}/c")
    assert shown[0] == shown[1]
    real_host.api.delete("/api/v1/namespaces/urls")


def test_other_urls_are_refused_when_they_are_written(vc, server):
    refused = [f"{server.url}/", f"{server.url}/inner", f"{server.url}/in/../out", "https://169.254.169.254/latest/meta-data",
               "https://kubernetes.default.svc/", "https://127.0.0.1/in", f"https://127.1:{server.url.rsplit(':', 1)[1]}/in"]
    for url in refused:
        code, _, data = vc.api.raw("POST", HOOKS, configuration(server, url))
        status = json.loads(data)
        assert code == 403 and status["reason"] == "Forbidden", status
        assert f"webhooks[0].clientConfig.url: {url} is not among the URLs" in status["message"], status
    vc.api.post(HOOKS, configuration(server, f"{server.url}/in"))
    code, _, data = vc.api.raw("PATCH", f"{HOOKS}/c", [{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value":
                               f"{server.url}/out"}], content_type="application/json-patch+json")
    assert code == 403, data
    vc.api.patch(f"{HOOKS}/c", {"metadata": {"labels": {"a": "b"}}})
    assert not server.seen


def definition(server, url):
    def version(name):
        return {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}

    return {"metadata": {"name": "lots.urls.dev"}, "spec": {
        "group": "urls.dev", "scope": "Namespaced", "names": {"plural": "lots", "kind": "Lot"}, "versions": [version("v1"), version("v2")],
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
            "url": url, "caBundle": ca_bundle(server.pki)}}}}}


def test_a_listed_url_converts(vc, server):
    """The webhook of a CRD's versions is bound by the same list (an unlisted URL: test_conversion.py)."""
    def convert(path, review):
        request = review["request"]
        return {"result": {"status": "Success"}, "convertedObjects": [
            {**o, "apiVersion": request["desiredAPIVersion"], "by": path} for o in request["objects"]]}

    server.reply = convert
    vc.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(server, f"{server.url}/in/turn"))
    lots = "/apis/urls.dev/{}/namespaces/urls/lots".format
    eventually(lambda: vc.api.raw("GET", lots("v2"))[0] == 200, 30, "the definition")
    vc.api.post(lots("v2"), {"apiVersion": "urls.dev/v2", "kind": "Lot", "metadata": {"name": "a"}})
    assert vc.api.get(lots("v1") + "/a")["by"].startswith("/in/turn")


def test_a_name_cannot_lead_to_this_machine(vc, server, tenant):
    """localhost is listed, but no name stands for an address of this machine; nor does the machine's own name."""
    vc.api.post(HOOKS, configuration(server, server.url.replace("127.0.0.1", "localhost") + "/x"))
    code, _, data = vc.api.raw("POST", MAPS, {"metadata": {"name": "a"}})
    message = json.loads(data)["message"]
    assert code == 500 and "an address that no webhook may be at" in message, message
    own, name = own_address(), socket.gethostname()
    if socket.gethostbyname(name) in (own, "127.0.0.1", "127.0.1.1"):
        other = tenant("urls", {"policy": {"webhookUrls": [f"https://{name}:8443"]}})
        other.api.post("/api/v1/namespaces", {"metadata": {"name": "urls"}})
        other.api.post(HOOKS, configuration(server, f"https://{name}:8443/x"))
        code, _, data = other.api.raw("POST", MAPS, {"metadata": {"name": "a"}})
        assert code == 500 and "an address that no webhook may be at" in json.loads(data)["message"], data
    assert not server.seen
