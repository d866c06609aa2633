# SPDX-License-Identifier: Apache-2.0
"""`sync.kubeletAddresses`: a real kubelet behind the address of a tenant's Node, by the Service of the chart and kube-proxy."""
import json
import os
import re

import pytest
import yaml

from testenv import Api, eventually
from testenv.pki import derive_kubeconfig
from testenv.release import Release

from places import Place

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def scraped(host, workdir):
    made = Release(host, "scraped", os.path.join(workdir, "releases"), {
        "hostFence": {"enabled": True}, "config": {"sync": {"kubelets": "own", "kubeletAddresses": 1}}}).install()
    yield made
    made.remove()


def at_its_node(cluster, token, address):
    """A client of port 10250 at this address; it checks the certificate there."""
    path = derive_kubeconfig(os.path.join(cluster.dir, "scraper.kubeconfig"), cluster.kubeconfig, token=token)
    with open(path, encoding="utf-8") as f:
        config = yaml.safe_load(f)
    config["clusters"][0]["cluster"]["server"] = f"https://{address}:10250"
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump(config, f)
    return Api(path)


def test_scraped_at_the_address_of_its_node(scraped, research):
    """Own pods alone, each path by its right; the pods of another tenant and of the admin run on the same node."""
    with Place(scraped, "mine") as mine:
        mine.start("web")
        addresses = eventually(lambda: [a["address"] for n in scraped.api.get("/api/v1/nodes")["items"]
                                        for a in n["status"]["addresses"] if a["type"] == "InternalIP"], 60, "the node's address")
        assert addresses == [scraped.address("-kubelet-0")]
        mine.create("serviceaccounts", {"metadata": {"name": "scraper"}})
        token = mine.create("serviceaccounts/scraper/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
        client = at_its_node(scraped, token, addresses[0])

        def read(path):
            code, _, data = client.raw("GET", path)
            return code, data.decode()

        assert read("/metrics/resource")[0] == read("/stats/summary")[0] == 403
        scraped.api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "scraper"}, "rules": [
            {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}]})
        scraped.api.post(f"{RBAC}/clusterrolebindings", {
            "metadata": {"name": "scraper"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scraper"},
            "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "mine"}]})
        text = eventually(lambda: (lambda got: got[1] if got[0] == 200 and 'pod="web"' in got[1] else None)(read("/metrics/resource")),
                          120, "the pod's own figures")
        assert set(re.findall(r'namespace="([^"]*)"', text)) == {"mine"} and set(re.findall(r'pod="([^"]*)"', text)) == {"web"}, text
        assert "pod_cpu_usage_seconds_total" in text and "node_cpu" not in text, text
        assert read("/stats/summary")[0] == 403
        scraped.api.patch(f"{RBAC}/clusterroles/scraper", {"rules": [
            {"apiGroups": [""], "resources": ["nodes/metrics", "nodes/stats"], "verbs": ["get"]}]})
        stats = eventually(lambda: (lambda got: json.loads(got[1]) if got[0] == 200 else None)(read("/stats/summary")), 60, "the right")
        assert [(p["podRef"]["namespace"], p["podRef"]["name"]) for p in stats["pods"]] == [("mine", "web")]
        assert stats["pods"][0]["containers"][0]["name"] == "main" and scraped.namespace not in json.dumps(stats)
        assert read("/configz")[0] == 403
        client.close()
