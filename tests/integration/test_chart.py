# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: what it renders, what it refuses and how, and that its Role is enough for the main job."""
import base64
import ipaddress
import json
import os
import re
import secrets
import socket
import ssl
import subprocess

import pytest
import yaml

from testenv import ApiError, VirtualCluster, binaries, eventually
from testenv.helm import CHART, Helm
from testenv.kubectl import echoed
from testenv.nodes import pool_config
from testenv.pki import derive_kubeconfig
from testenv.virtual import merge

GPU = "nvidia.com/gpu"
METADATA = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::254/128", "fe80::/10"]

POOLS = {"config": {
    "pools": [pool_config("a100", "a100", kind="dedicated", per_pod=4),
              pool_config("shared", "l4", kind="shared", priorityTiers={"high": "gpu-high"})],
    "bindings": [{"pool": "a100", "guarantee": 8},
                 {"pool": "shared", "guarantee": "4", "burst": "4", "default": True}]}}
EVERYTHING = merge(POOLS, {
    "config": {"name": "lab", "kubeconfig": {"server": "https://lab.gpu.example"},
               "listen": {"address": "0.0.0.0:9443", "names": ["lab.gpu.example"]},
               "policy": {"podSecurity": "restricted", "verdict": "enforce", "labels": {"allow": ["rack/"]}},
               "store": {"maxObjects": 2000000}, "host": {"qps": 50}, "log": {"level": "debug"}},
    "image": {"digest": "sha256:" + "a" * 64, "pullSecrets": [{"name": "pull"}]},
    "service": {"type": "LoadBalancer", "port": 8443, "nodePort": 30443, "annotations": {"a": "b"},
                "loadBalancerSourceRanges": ["10.0.0.0/8"]},
    "persistence": {"storageClass": "standard", "annotations": {"a": "b"}},
    "rbac": {"clusterRole": {"enabled": True}},
    "hostFence": {"enabled": True, "allow": {"labels": ["a.example/b"], "annotations": ["a.example/b"], "finalizers": ["a/b"],
                  "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}], "schedulerNames": ["s"],
                  "runtimeClasses": ["r"], "priorityClasses": ["p"], "serviceAccounts": ["a"], "imagePullSecrets": ["i"]}},
    "serviceAccount": {"name": "runner", "annotations": {"a": "b"}},
    "networkPolicy": {"dns": {"cidrs": ["169.254.20.10/32"]}, "publicEgress": {"enabled": True},
                      "clients": [{"namespaceSelector": {}}], "hostApi": {"cidrs": ["10.0.0.1/32", "fd12::1/128"]},
                      "forbidden": ["10.20.0.0/16", "203.0.113.7/32"],
                      "controlPlaneEgress": [{"to": [{"ipBlock": {"cidr": "198.51.100.7/32"}}], "ports": [{"port": 443}]}],
                      "egress": [{"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}]}],
                      "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]}]},
    "limitRange": {"max": {"memory": "64Gi"}, "min": {"cpu": "10m"}}, "metrics": {"serviceMonitor": True, "rules": True},
    "extraArgs": ["--force"], "podAnnotations": {"a": "b"}, "nodeSelector": {"a": "b"}, "priorityClassName": "high",
    "tolerations": [{"key": "a", "operator": "Exists"}], "affinity": {"nodeAffinity": {}}})
LITTLE = {"persistence": {"enabled": False}, "networkPolicy": {"enabled": False}, "resources": None,
          "quota": {"enabled": False}, "limitRange": {"enabled": False}, "rbac": {"create": False},
          "serviceAccount": {"create": False, "name": "given"}}
NO_OPERATOR = {"metrics": {"serviceMonitor": False, "rules": False}}  # the real host has no kinds of Prometheus' operator
VALUES = {"defaults": {}, "pools": POOLS, "everything": EVERYTHING, "little": LITTLE}


@pytest.fixture
def tiers(host):
    """The host's class that POOLS names: each pod of the pool has it."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    host.api.post(path, {"metadata": {"name": "gpu-high"}, "value": 1000})
    yield
    host.api.delete(f"{path}/gpu-high")


@pytest.fixture(scope="module")
def helm(tmp_path_factory):
    return Helm(tmp_path_factory.mktemp("helm"))


def by_kind(objects, kind, name=None):
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    assert len(found) == 1, [(o["kind"], o["metadata"]["name"]) for o in objects]
    return found[0]


def config_of(objects):
    return by_kind(objects, "ConfigMap")["data"]["config.yaml"]


def check(tmp_path, text):
    """What `sublet check` says of a configuration."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return subprocess.run([binaries.sublet(), "check", "--config", path], capture_output=True, text=True,
                          check=False)


# --- rendering ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_lint_and_render(helm, tmp_path, values):
    out = helm("lint", "--strict", CHART, values=values)
    assert "0 chart(s) failed" in out and "[WARNING]" not in out
    objects = helm.template("research", "team-research", values)
    seen = set()
    for o in objects:
        key = (o["kind"], o["metadata"]["name"])
        assert key not in seen and o["apiVersion"], key
        seen.add(key)
        if not o["kind"].startswith(("Cluster", "Validating")):
            assert o["metadata"]["namespace"] == "team-research", key
        assert o["metadata"]["labels"]["app.kubernetes.io/instance"] == "research", key
    answer = check(tmp_path, config_of(objects))
    assert answer.returncode == 0, answer.stderr


def test_prometheus(helm):
    """Of its operator, beside the Secret that they name; off by default."""
    values = {"tenantNamespace": "gpu-research", "metrics": {"serviceMonitor": True, "rules": True}}
    objects = helm.template("research", "control", values)
    monitor, rules = by_kind(objects, "ServiceMonitor"), by_kind(objects, "PrometheusRule")
    assert monitor["metadata"]["namespace"] == rules["metadata"]["namespace"] == "gpu-research"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["control"]}
    service = by_kind(objects, "Service", "research")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    endpoint = monitor["spec"]["endpoints"][0]
    assert endpoint["port"] in [p["name"] for p in service["spec"]["ports"]]
    assert endpoint["tlsConfig"]["keySecret"] == {"name": "research-kubeconfig", "key": "client-key"}
    for alert in rules["spec"]["groups"][0]["rules"]:
        assert '{job="research",namespace="control"}' in alert["expr"], alert
    monitor = by_kind(helm.template("research", "control", merge(values, {"metrics": {"tokenSecret": "scrape"}})), "ServiceMonitor")
    endpoint = monitor["spec"]["endpoints"][0]
    assert endpoint["authorization"] == {"credentials": {"name": "scrape", "key": "token"}}
    assert set(endpoint["tlsConfig"]) == {"serverName", "ca"}
    assert not {"ServiceMonitor", "PrometheusRule"} & {o["kind"] for o in helm.template("research", "control", {})}


EXPOSED = {"expose": {"host": "lab.gpu.example", "ingress": {"enabled": True, "className": "edge"}, "tlsRoute": {
    "enabled": True, "parentRefs": [{"name": "shared", "namespace": "gateways", "sectionName": "tls"}]}}}


def test_the_api_outside_the_host(helm, tmp_path):
    objects = helm.template("research", "t", merge(EXPOSED, {"config": {"listen": {"names": ["other.example"]}}}))
    service = by_kind(objects, "Service", "research")
    ingress, route = by_kind(objects, "Ingress"), by_kind(objects, "TLSRoute")
    assert ingress["metadata"]["namespace"] == route["metadata"]["namespace"] == service["metadata"]["namespace"] == "t"
    assert ingress["metadata"]["annotations"] == {"nginx.ingress.kubernetes.io/ssl-passthrough": "true",
                                                  "nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}
    assert ingress["spec"] == {"ingressClassName": "edge", "rules": [{"host": "lab.gpu.example", "http": {"paths": [{
        "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "research", "port": {"name": "https"}}}}]}}]}
    assert route["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert route["spec"] == {"parentRefs": EXPOSED["expose"]["tlsRoute"]["parentRefs"], "hostnames": ["lab.gpu.example"],
                             "rules": [{"backendRefs": [{"name": "research", "port": 443}]}]}
    config = yaml.safe_load(config_of(objects))
    assert config["listen"] == {"names": ["other.example", "lab.gpu.example"]}
    assert config["kubeconfig"] == {"server": "https://lab.gpu.example"}
    assert check(tmp_path, config_of(objects)).returncode == 0

    # One of them, another port, other annotations, and an address that the admin knows better.
    objects = helm.template("research", "t", {"service": {"port": 8443}, "config": {"listen": {"address": "0.0.0.0:9443"}}, "expose": {
        "host": "lab.gpu.example", "port": 6443, "ingress": {"enabled": True, "annotations": {
            "nginx.ingress.kubernetes.io/ssl-passthrough": None, "nginx.ingress.kubernetes.io/backend-protocol": None,
            "haproxy.org/ssl-passthrough": "true"}}}})
    ingress, config = by_kind(objects, "Ingress"), yaml.safe_load(config_of(objects))
    assert ingress["metadata"]["annotations"] == {"haproxy.org/ssl-passthrough": "true"}
    assert "ingressClassName" not in ingress["spec"] and not [o for o in objects if o["kind"] == "TLSRoute"]
    assert config["kubeconfig"]["server"] == "https://lab.gpu.example:6443"
    assert config["listen"] == {"address": "0.0.0.0:9443", "names": ["lab.gpu.example"]}
    given = merge(EXPOSED, in_config(kubeconfig={"server": "https://given.example"}, listen={"names": ["lab.gpu.example"]}))
    config = yaml.safe_load(config_of(helm.template("research", "t", given)))
    assert config["kubeconfig"]["server"] == "https://given.example" and config["listen"]["names"] == ["lab.gpu.example"]
    older = merge(EXPOSED, {"expose": {"tlsRoute": {"version": "v1alpha2"}}})
    assert by_kind(helm.template("research", "t", older), "TLSRoute")["apiVersion"] == "gateway.networking.k8s.io/v1alpha2"


def test_extra_rules(helm):
    rule = {"apiGroups": ["team.example"], "resources": ["things"], "verbs": ["get", "list", "watch"]}
    other = {**rule, "resources": ["others"]}
    objects = helm.template("research", "team-research", {"rbac": {
        "extraRules": [rule], "clusterRole": {"enabled": True, "extraRules": [other]}}})
    assert by_kind(objects, "Role")["rules"][-1] == rule
    assert by_kind(objects, "ClusterRole")["rules"][-1] == other


def test_a_release_is_all_a_tenant_needs_and_nothing_cluster_wide(helm):
    objects = helm.template("research", "team-research")
    assert sorted(o["kind"] for o in objects) == sorted(
        ["StatefulSet", "Service", "Service", "Role", "RoleBinding", "ConfigMap", "ResourceQuota", "LimitRange"] +
        2 * ["ServiceAccount"] + 3 * ["NetworkPolicy"])
    assert yaml.safe_load(config_of(objects)) == {
        "name": "research", "host": {"namespace": "team-research", "podServiceAccount": "research-pods", "qps": 50,
                                     "burst": 500},
        "store": {"maxBytes": "256Mi"},
        "network": {"dns": {"listen": "0.0.0.0:1053"}},
        "kubeconfig": {"server": "https://research.team-research.svc"}, "pools": [], "bindings": []}
    rules = by_kind(objects, "Role")["rules"]
    assert not [r for r in rules if "*" in r["verbs"] + r["resources"] + r["apiGroups"]]
    assert by_kind(helm.template("research", "t", {"service": {"port": 8443}}), "ConfigMap")["data"][
        "config.yaml"].count("server: https://research.t.svc:8443\n") == 1


@pytest.mark.parametrize("apart", [{}, {"tenantNamespace": "apart"}])
def test_the_fence_names_the_queue_of_the_namespace(helm, apart):
    """{namespace} is where the tenant's pods are: the process and the fence have one name of it."""
    pool = {"name": "parts", "mode": "kai-fraction", "nodeSelector": {"sublet.dev/pool": "parts"},
            "scheduler": {"kind": "kai", "queueTemplate": "{namespace}-{tenant}-parts"}}
    objects = helm.template("research", "team", merge({"hostFence": {"enabled": True}, "config": {
        "pools": [pool], "bindings": [{"pool": "parts", "guarantee": 1}]}}, apart))
    fence = json.dumps([o for o in objects if o["kind"] == "ValidatingAdmissionPolicy"])
    namespace = apart.get("tenantNamespace", "team")
    assert yaml.safe_load(config_of(objects))["host"]["namespace"] == namespace
    assert f"{namespace}-research-parts" in fence and "{namespace}" not in fence


def test_what_is_the_tenants_goes_to_its_namespace(helm):
    objects = helm.template("research", "t", merge(EVERYTHING, {"tenantNamespace": "apart"}))
    where = {}
    for o in objects:
        where.setdefault(o["metadata"].get("namespace"), set()).add(o["kind"])
    assert where["apart"] == {"Role", "RoleBinding", "ServiceAccount", "ResourceQuota", "LimitRange", "NetworkPolicy",
                              "ServiceMonitor", "PrometheusRule"}
    assert where["t"] == {"StatefulSet", "Service", "ServiceAccount", "ConfigMap", "Role", "RoleBinding", "NetworkPolicy"}
    config = yaml.safe_load(config_of(objects))["host"]
    assert (config["namespace"], config["serviceNamespace"]) == ("apart", "t")
    beside = next(o for o in objects if o["kind"] == "Role" and o["metadata"]["namespace"] == "t")
    assert beside["rules"] == [{"apiGroups": [""], "resources": ["services"], "resourceNames": ["lab", "lab-dns"],
                                "verbs": ["get"]}]
    for o in objects:
        if o["kind"] == "RoleBinding":
            assert o["subjects"] == [{"kind": "ServiceAccount", "name": "runner", "namespace": "t"}]
    tenant = by_kind(objects, "NetworkPolicy", "lab-tenant")["spec"]["egress"]
    peer = next(p for rule in tenant for p in rule["to"] if "sublet.dev/control-plane" in str(p))
    assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "t"}}
    clients = by_kind(objects, "NetworkPolicy", "lab-control-plane")["spec"]["ingress"][0]["from"]
    assert clients[0]["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "apart"}}


def test_cluster_roles_are_asked_for(helm):
    objects = helm.template("research", "t", {"rbac": {"clusterRole": {"enabled": True}}})
    role = by_kind(objects, "ClusterRole")
    assert {r["resources"][0] for r in role["rules"]} == {"nodes", "storageclasses", "priorityclasses"}
    assert {v for r in role["rules"] for v in r["verbs"]} == {"list", "watch"}
    objects = helm.template("research", "t", {"rbac": {"clusterRole": {"name": "readers"}}})
    assert by_kind(objects, "ClusterRoleBinding")["roleRef"]["name"] == "readers"
    assert "ClusterRole" not in {o["kind"] for o in objects}


def test_kubelets_are_reached_only_when_they_are_served(helm):
    """nodes/proxy lets its holder act in any pod of a node: no chart without sync.kubelets grants it."""
    def granted(values):
        return [(o["kind"], r["verbs"], r["resources"]) for o in helm.template("research", "t", values) if "rules" in o
                for r in o["rules"] if {"nodes/proxy", "nodes/*", "*/proxy", "*"} & set(r["resources"])]

    on = {"rbac": {"clusterRole": {"enabled": True}}, "config": {"sync": {"kubelets": "own"}}}
    assert granted(on) == [("ClusterRole", ["get"], ["nodes/proxy"])]
    for off in (*VALUES.values(), merge(on, {"config": {"sync": {"kubelets": "off"}}}), merge(on, {"config": {"sync": {"kubelets": False}}})):
        assert granted(off) == []
    assert "nodes/proxy" in helm.fails("template", "research", CHART, values={"config": {"sync": {"kubelets": "own"}}})
    assert "kubelets" in helm.fails("template", "research", CHART, values=merge(on, {"config": {"sync": {"kubelets": "whole"}}}))


def test_quotas_are_read_for_nodes_of_pools_only(helm):
    def granted(values):
        return [(o["kind"], r["verbs"]) for o in helm.template("research", "t", values) if "rules" in o
                for r in o["rules"] if "resourcequotas" in r["resources"]]

    on = {"rbac": {"clusterRole": {"enabled": True}}, "config": {"sync": {"nodes": "perPool"}}}
    assert granted(on) == [("Role", ["list", "watch"])]
    assert granted(merge(on, {"config": {"sync": {"nodes": "real"}}})) == []
    assert "sync.nodes" in helm.fails("template", "research", CHART, values={"config": {"sync": {"nodes": "perPool"}}})
    assert "nodes" in helm.fails("template", "research", CHART, values=merge(on, {"config": {"sync": {"nodes": "all"}}}))


def test_gpu_bindings_are_read_where_they_are_followed(helm):
    def granted(values):
        return [(o["kind"], o["metadata"]["namespace"], r["verbs"]) for o in helm.template("research", "t", values)
                if "rules" in o for r in o["rules"] if "gpubindings" in r["resources"]]

    on = {"config": {"fleet": {"bindings": True}}}
    assert granted(on) == [("Role", "t", ["get", "list", "watch"])]
    assert granted({"config": {"fleet": {"bindings": False}}}) == granted({}) == []
    fenced = merge(on, {"hostFence": {"enabled": True}})
    assert "hostFence.pools" in helm.fails("template", "research", CHART, values=fenced)
    pool = {"name": "npu", "nodeSelector": {"sublet.dev/pool": "npu"}, "resources": {"x.example/npu": {"gpuEq": 1}}}
    assert "x.example/npu" in json.dumps(helm.template("research", "t", merge(fenced, {"hostFence": {"pools": [pool]}})))


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_the_pod_is_restricted(helm, values):
    pod = by_kind(helm.template("research", "t", values), "StatefulSet")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod) and pod["enableServiceLinks"] is False
    assert len(pod["containers"]) == 1
    container = pod["containers"][0]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}
    for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz"), ("startupProbe", "/livez")):
        assert container[probe]["httpGet"] == {"path": path, "port": "https", "scheme": "HTTPS"}
    assert {m["mountPath"] for m in container["volumeMounts"]} == {"/data", "/etc/sublet"}


def test_control_planes_keep_off_machines_with_gpus(helm):
    def affinity(values):
        return by_kind(helm.template("research", "t", values), "StatefulSet")["spec"]["template"]["spec"].get("affinity")

    with open(os.path.join(binaries.TREE, "translate/pod_fence.c")) as file:
        table = file.read().split("ACCELERATORS[] = {")[1].split("};")[0]
    keys = set(re.findall(r'{"([^"]+)"', table))
    preferred = affinity({})["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert len(keys) == 6 and {e["key"] for e in preferred[0]["preference"]["matchExpressions"]} == keys
    assert affinity({"affinity": None}) is None


def test_a_tenant_cannot_pose_as_its_control_plane(helm):
    """Labels of app.kubernetes.io go down to the host as they are; those of sublet.dev never."""
    objects = helm.template("research", "t", POOLS)
    selectors = [by_kind(objects, "Service", "research")["spec"]["selector"],
                 by_kind(objects, "Service", "research-dns")["spec"]["selector"],
                 by_kind(objects, "StatefulSet")["spec"]["selector"]["matchLabels"],
                 by_kind(objects, "NetworkPolicy", "research-control-plane")["spec"]["podSelector"]["matchLabels"]]
    for selector in selectors:
        assert any(key.startswith("sublet.dev/") for key in selector)
    labels = by_kind(objects, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert all(selectors[0].items() <= labels.items() for _ in selectors)


def blocks(objects):
    """(CIDR, its exceptions) of every egress rule."""
    for policy in (o["spec"] for o in objects if o["kind"] == "NetworkPolicy"):
        for rule in policy.get("egress", []):
            assert rule["to"], "a rule without `to` allows everything"
            for block in (peer["ipBlock"] for peer in rule["to"] if "ipBlock" in peer):
                yield ipaddress.ip_network(block["cidr"]), [ipaddress.ip_network(e) for e in block.get("except", [])]


@pytest.mark.parametrize("values", [{}, EVERYTHING, {"networkPolicy": {"publicEgress": {"enabled": True}}}],
                         ids=["defaults", "everything", "public"])
def test_no_policy_opens_what_machines_keep(helm, values):
    objects = helm.template("research", "t", values)
    assert {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]} in [
        o["spec"] for o in objects if o["kind"] == "NetworkPolicy"]
    given = values.get("networkPolicy", {})
    named = [ipaddress.ip_network(c) for c in given.get("dns", {}).get("cidrs", []) +
             given.get("hostApi", {}).get("cidrs", [])]
    kept = [ipaddress.ip_network(c) for c in METADATA + given.get("forbidden", []) + given.get("hostApi", {}).get("cidrs", [])]
    for cidr, exceptions in blocks(objects):
        for one in kept:
            if cidr in named or cidr.version != one.version or not cidr.overlaps(one):
                continue
            assert one.subnet_of(cidr) and any(one.subnet_of(e) for e in exceptions), (cidr, one)
        for e in exceptions:
            assert e.subnet_of(cidr) and e != cidr, (cidr, e)  # what the API server requires


def test_an_unknown_api_server_is_not_everywhere(helm):
    for cidr, _ in blocks(helm.template("research", "t")):
        assert cidr.is_private or cidr == ipaddress.ip_network("100.64.0.0/10"), cidr
    jwt = {"issuer": {"url": "https://issuer.example", "audiences": ["a"]}, "claimMappings": {"username": {
        "claim": "sub", "prefix": "x:"}}}

    def control_plane(values):
        return by_kind(helm.template("research", "t", values), "NetworkPolicy", "research-control-plane")["spec"]["egress"]

    off = {"dns": {"enabled": False}}
    assert len(control_plane(off)) == 1, "the control plane asks no DNS and calls no pod"
    assert len(control_plane(merge(off, in_config(authentication={"jwt": [jwt]})))) == 2
    tenant = by_kind(helm.template("research", "t"), "NetworkPolicy", "research-tenant")["spec"]
    assert len(tenant["ingress"]) == 1 and len(tenant["ingress"][0]["from"]) == 1


def test_addresses_of_nodes(helm):
    """One Service before the API for each, which the account may read wherever the tenant's objects are."""
    values = merge({"rbac": {"clusterRole": {"enabled": True}}}, in_config(sync={"kubelets": "own", "kubeletAddresses": 2}))
    objects = helm.template("research", "t", merge(values, {"tenantNamespace": "apart"}))
    names = ["research-kubelet-0", "research-kubelet-1"]
    api = by_kind(objects, "Service", "research")["spec"]
    for name in names:
        service = by_kind(objects, "Service", name)
        assert service["metadata"]["namespace"] == "t" and service["spec"] == {
            "type": "ClusterIP", "selector": api["selector"], "ports": [
                {"name": "kubelet", "port": 10250, "targetPort": api["ports"][0]["targetPort"], "protocol": "TCP"}]}
    beside = next(o for o in objects if o["kind"] == "Role" and o["metadata"]["namespace"] == "t")
    assert beside["rules"][0]["resourceNames"] == ["research", "research-dns", *names]
    more = quota_of(helm, values)
    assert int(more["count/services"]) == int(quota_of(helm, {})["count/services"]) + 2
    assert not [o for o in helm.template("research", "t") if "-kubelet-" in o["metadata"]["name"]]


def test_dns_is_the_tenants_own(helm):
    """Its pods reach it and not the host's; no other pod reaches it."""
    objects = helm.template("research", "t", {"service": {"type": "LoadBalancer"}})
    service = next(o for o in objects if o["kind"] == "Service" and o["metadata"]["name"] == "research-dns")
    assert service["spec"]["type"] == "ClusterIP"
    assert {(p["port"], p["protocol"]) for p in service["spec"]["ports"]} == {(53, "UDP"), (53, "TCP")}
    ports = by_kind(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert {(p["name"], p["containerPort"], p["protocol"]) for p in ports} >= {("dns", 1053, "UDP"), ("dns-tcp", 1053, "TCP")}
    tenant = by_kind(objects, "NetworkPolicy", "research-tenant")["spec"]["egress"]
    assert "kube-dns" not in str(tenant)
    assert [r for r in tenant if {"protocol": "UDP", "port": 1053} in r.get("ports", [])]
    incoming = by_kind(objects, "NetworkPolicy", "research-control-plane")["spec"]["ingress"]
    of_dns = [r for r in incoming if {"protocol": "UDP", "port": 1053} in r["ports"]]
    assert len(of_dns) == 1 and of_dns[0]["from"] == [
        {"podSelector": {"matchExpressions": [{"key": "sublet.dev/cluster", "operator": "Exists"}]}}]
    off = helm.template("research", "t", {"dns": {"enabled": False}})
    assert [o["metadata"]["name"] for o in off if o["kind"] == "Service"] == ["research"] and "1053" not in str(off)
    assert "kube-dns" in str(by_kind(off, "NetworkPolicy", "research-tenant")["spec"]["egress"])


NODES = {"nodeSelector": {"sublet.dev/pool": "p"}}


def quota_of(helm, values):
    return by_kind(helm.template("research", "t", values), "ResourceQuota")["spec"]["hard"]


def test_the_hosts_gpu_quota_follows_the_bindings(helm):
    assert quota_of(helm, {})["requests.nvidia.com/gpu"] == "0"
    assert quota_of(helm, POOLS)["requests.nvidia.com/gpu"] == "16"
    shares = {"config": {
        "pools": [{"name": "mig", **NODES, "mode": "mig", "profiles": {"1g.10gb": {"gpuEq": "1/7"},
                                                                       "3g.40gb+me": {"gpuEq": "3/7"}}},
                  {"name": "slices", **NODES, "mode": "time-slicing", "resources": {GPU: {"gpuEq": 0.25}},
                   "rename": {GPU: "nvidia.com/gpu.shared"}},
                  {"name": "whole", **NODES}, {"name": "more", **NODES, "mode": "exclusive"}],
        "bindings": [{"pool": "mig", "guarantee": 2.5}, {"pool": "slices", "burst": "1/2"},
                     {"pool": "whole", "guarantee": "2", "burst": 1}, {"pool": "more", "guarantee": "0.05"}]}}
    hard = quota_of(helm, shares)
    assert {k: v for k, v in hard.items() if "nvidia" in k} == {
        "requests.nvidia.com/mig-1g.10gb": "17", "requests.nvidia.com/mig-3g.40gb.me": "5",
        "requests.nvidia.com/gpu.shared": "2", "requests.nvidia.com/gpu": "3"}
    hard = quota_of(helm, {"quota": {"gpu": False, "hard": {"pods": 10, "requests.memory": 2000000000}},
                           "service": {"type": "NodePort"}})
    assert hard["pods"] == "11" and hard["requests.memory"] == "2000000000" and hard["services.nodeports"] == "1"
    assert "requests.nvidia.com/gpu" not in hard


def test_what_the_fleet_grants_is_bounded_by_its_quota_alone(helm):
    """Of two quotas the lesser holds: one of 0 would refuse every pod that the fleet has granted its GPUs."""
    def gpus(**values):
        hard = quota_of(helm, {"config": {"fleet": {"bindings": True}, **values.pop("config", {})}, **values})
        return {k: v for k, v in hard.items() if "nvidia" in k}
    whole, slices = {"name": "whole", **NODES}, {"name": "slices", **NODES, "mode": "time-slicing", "resources": {GPU: {"gpuEq": "1/4"}},
                                                 "rename": {GPU: "nvidia.com/gpu.shared"}}
    assert gpus() == {}, "which pools it may bind is not known"
    assert gpus(hostFence={"pools": [whole]}) == {}
    assert gpus(hostFence={"pools": [slices]}) == {"requests.nvidia.com/gpu": "0"}
    bound = {"pools": [whole, slices], "bindings": [{"pool": "whole", "guarantee": 3}, {"pool": "slices", "guarantee": 1}]}
    assert gpus(config=bound, hostFence={"pools": [whole]}) == {"requests.nvidia.com/gpu.shared": "4"}
    assert quota_of(helm, {"config": {"fleet": {"bindings": False}}, "hostFence": {"pools": [whole]}})["requests.nvidia.com/gpu"] == "0"


BOUNDED = ["pods", "count/pods", "count/services", "services.nodeports", "services.loadbalancers", "count/secrets",
           "count/configmaps", "count/serviceaccounts", "count/persistentvolumeclaims", "requests.storage",
           "requests.cpu", "requests.memory", "limits.memory", "requests.ephemeral-storage", "limits.ephemeral-storage",
           "requests.hugepages-2Mi", "requests.hugepages-1Gi", "requests.nvidia.com/gpu"]


def test_everything_a_tenant_can_use_up_is_bounded(helm):
    objects = helm.template("research", "t")
    hard = by_kind(objects, "ResourceQuota")["spec"]["hard"]
    assert sorted(hard) == sorted(BOUNDED)
    limits = by_kind(objects, "LimitRange")["spec"]["limits"][0]
    for key in BOUNDED:  # or the host refuses pods that do not say it
        part, _, resource = key.partition(".")
        if resource in ("cpu", "memory", "ephemeral-storage"):
            assert limits[{"requests": "defaultRequest", "limits": "default"}[part]][resource], key
    assert "limits.memory" not in quota_of(helm, {"quota": {"hard": {"limits.memory": None}}})
    assert quota_of(helm, {"quota": {"hard": {"count/services": 7}}})["count/services"] == "9"


# --- mistakes -------------------------------------------------------------------------------------------

def in_config(**keys):
    return {"config": keys}


POOL = {"name": "a", **NODES}


def egress(cidr, *exceptions):
    return {"networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": cidr, "except": list(exceptions)}}]}]}}


MISTAKES = {
    "a word": (in_config(policy={"verdict": "fast"}),
               r"at '/config/policy/verdict': value must be one of 'off', 'warn', 'enforce'"),
    "a key": (in_config(polcy={}), r"at '/config': additional properties 'polcy' not allowed"),
    "a deep key": (in_config(store={"maxBites": "1Gi"}), r"at '/config/store': additional properties 'maxBites'"),
    "a type": (in_config(listen={"names": "a"}), r"at '/config/listen/names': got string, want array"),
    "a bound": (in_config(host={"qps": 0}), r"at '/config/host/qps': minimum: got 0, want 1"),
    "a quantity": (in_config(store={"maxBytes": "lots"}), r"at '/config/store/maxBytes': 'lots' does not match"),
    "a duration": (in_config(policy={"verdictTimeout": "soon"}), r"/config/policy/verdictTimeout'"),
    "a pool's key": (in_config(pools=[{**POOL, "tolerates": []}]), r"at '/config/pools/0': .*'tolerates'"),
    "a pool's mode": (in_config(pools=[{**POOL, "mode": "fast"}]),
                      r"at '/config/pools/0/mode': value must be one of 'exclusive', 'mig'"),
    "a toleration of all": (in_config(pools=[{**POOL, "tolerations": [{"operator": "Exists"}]}]),
                            r"/config/pools/0/tolerations/0': missing property 'key'"),
    "a pool without nodes": (in_config(pools=[{"name": "a"}]), r"/config/pools/0': missing property 'nodeSelector'"),
    "a binding without amount": (in_config(pools=[POOL], bindings=[{"pool": "a"}]),
                                 r"at '/config/bindings/0': missing property 'guarantee'"),
    "a binding to nothing": (in_config(pools=[POOL], bindings=[{"pool": "b", "burst": 1}]),
                             r'config\.bindings\[0\]\.pool: no pool is called "b": config\.pools has \[a\]'),
    "a binding twice": (in_config(pools=[POOL], bindings=2 * [{"pool": "a", "burst": 1}]),
                        r'config\.bindings\[1\]\.pool: pool "a" is bound already'),
    "a pool twice": (in_config(pools=2 * [POOL]), r'config\.pools\[1\]\.name: there are two pools'),
    "a namespace": (in_config(host={"namespace": "other"}),
                    r'config\.host\.namespace: "other" is not the namespace of this release, "t"'),
    "a kubeconfig": (in_config(host={"kubeconfig": "/x"}), r"config\.host\.kubeconfig: the chart runs on the host"),
    "a path": (in_config(store={"path": "/var"}), r'config\.store\.path: "/var" is not the volume'),
    "a name": (in_config(name="Lab"), r"at '/config/name': 'Lab' does not match"),
    "a context": (in_config(kubeconfig={"context": "a b"}), r"at '/config/kubeconfig/context'"),
    "a Secret without a name": (in_config(kubeconfig={"additionalSecrets": [{"namespace": "a"}]}),
                                r"additionalSecrets/0': missing property 'name'"),
    "a URL": (in_config(kubeconfig={"server": "lab.example"}), r"at '/config/kubeconfig/server'"),
    "a chart key": ({"persistence": {"sise": "1Gi"}}, r"at '/persistence': additional properties 'sise'"),
    "a quota that counts nothing": ({"quota": {"hard": {GPU: 4}}},
                                    r'quota\.hard: "nvidia.com/gpu" would count nothing: .*requests\.nvidia\.com/gpu'),
    "an open egress": ({"networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}},
                       r"networkPolicy\.egress\[0\]: 0\.0\.0\.0/0 needs except: \[169\.254\.0\.0/16\]"),
    "an egress to the lower half": (egress("0.0.0.0/1"), r"egress\[0\]: 0\.0\.0\.0/1 needs except: \[100\.100\.100\.200/32\]"),
    "an egress to the upper half": (egress("128.0.0.0/1"), r"egress\[0\]: 128\.0\.0\.0/1 needs except: \[169\.254\.0\.0/16\]"),
    "an egress to a quarter": (egress("128.0.0.0/2"), r"egress\[0\]: 128\.0\.0\.0/2 needs except: \[169\.254\.0\.0/16\]"),
    "an egress to all of IPv6": (egress("::/0"), r"egress\[0\]: ::/0 needs except: \[fd00:ec2::254/128\]"),
    "an egress to half of IPv6": (egress("8000::/1"), r"egress\[0\]: 8000::/1 needs except: \[fd00:ec2::254/128\]"),
    "an egress to metadata": (egress("169.254.169.254/32"), r"169\.254\.169\.254/32 leads to 169\.254\.0\.0/16"),
    "an egress to Azure's": (egress("168.63.0.0/16", "168.63.129.0/28"), r"needs except: \[168\.63\.129\.16/32\]"),
    "an egress to the API server": (merge(egress("10.0.0.0/8"), {"networkPolicy": {"hostApi": {"cidrs": ["10.0.0.1/32"]}}}),
                                    r"egress\[0\]: 10\.0\.0\.0/8 needs except: \[10\.0\.0\.1/32\]"),
    "an egress to nodes": (merge(egress("10.7.1.0/24"), {"networkPolicy": {"forbidden": ["10.7.0.0/16"]}}),
                           r"egress\[0\]: 10\.7\.1\.0/24 leads to 10\.7\.0\.0/16"),
    "a control plane to metadata": ({"networkPolicy": {"controlPlaneEgress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}},
                                    r"controlPlaneEgress\[0\]: 0\.0\.0\.0/0 needs except"),
    "no CIDR": ({"networkPolicy": {"forbidden": ["10.0.0.1"]}}, r"at '/networkPolicy/forbidden/0': '10.0.0.1' does not match"),
    "no CIDR of the host": ({"networkPolicy": {"hostApi": {"cidrs": ["10.0.0.1/33"]}}}, r'"10\.0\.0\.1/33" is not a CIDR'),
    "a fence's key": ({"hostFence": {"allow": {"nodes": ["a"]}}}, r"at '/hostFence/allow': additional properties 'nodes'"),
    "an API under no name": ({"expose": {"ingress": {"enabled": True}}}, r"expose\.host: an Ingress or a TLSRoute needs"),
    "an API under a pattern": ({"expose": {"host": "*.gpu.example"}}, r"at '/expose/host': '\*.gpu.example' does not match"),
    "an API under a name of one label": ({"expose": {"host": "lab"}}, r"at '/expose/host'"),
    "a route without a Gateway": (merge(EXPOSED, {"expose": {"tlsRoute": {"parentRefs": []}}}), r"parentRefs: a route needs"),
    "an API that the tenant can take": (merge(EXPOSED, in_config(sync={"toHost": {"ingresses": {
        "enabled": True, "classes": ["a"], "hosts": ["*.gpu.example"]}}})), r'"lab\.gpu\.example" is one of config\.sync\.toHost\.ingresses'),
    "an API that a route can take": (merge(EXPOSED, in_config(sync={"fromHost": {"gateways": {
        "enabled": True, "hosts": ["*.example"], "mappings": {"byName": {"a/b": "c/d"}}}}})), r"config\.sync\.fromHost\.gateways"),
    "an egress to all": ({"networkPolicy": {"egress": [{"ports": [{"port": 443}]}]}},
                         r"networkPolicy\.egress\[0\]: a rule without `to`"),
}


@pytest.mark.parametrize("values,message", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_told(helm, values, message):
    text = helm.fails("template", "research", CHART, "-n", "t", values=values)
    assert re.search(message, text), text


@pytest.mark.parametrize("values", [
    egress("0.0.0.0/0", "169.254.0.0/16", "168.63.129.16/32", "100.64.0.0/10", "192.0.0.0/24"),
    egress("128.0.0.0/1", "160.0.0.0/4", "192.0.0.0/8"), egress("::/0", "fd00::/8", "fe80::/10"), egress("2001:db8::/32"),
    egress("10.0.0.0/8"), egress("203.0.113.0/24")])
def test_rules_that_lead_nowhere_forbidden(helm, values):
    assert helm.template("research", "t", values)


def test_a_release_name_that_is_no_label(helm):
    assert 'config.name: "re.search"' in helm.fails("template", "re.search", CHART, "-n", "t", values={})


def test_what_the_chart_cannot_tell_the_program_does(helm, tmp_path):
    """The schema lets it pass; the program's check says it before anything is installed."""
    pool = {"name": "a", "nodeSelector": {"zone": "z", "rack": "r"}}
    values = in_config(pools=[pool], bindings=[{"pool": "a", "burst": 1}])
    answer = check(tmp_path, config_of(helm.template("research", "t", values)))
    assert answer.returncode == 1
    assert "config: pools[0]: nodeSelector: one of its labels must be sublet.dev/pool" in answer.stderr
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    again = subprocess.run([binaries.sublet(), "check", "--values", tmp_path / "values.yaml"], capture_output=True,
                           text=True, check=False)
    assert (again.returncode, again.stderr) == (1, answer.stderr)


def test_an_unquoted_off_is_the_word(helm, tmp_path):
    objects = helm.template("research", "t", "config: {policy: {verdict: off}}\n")
    assert check(tmp_path, config_of(objects)).returncode == 0


# --- a real host ----------------------------------------------------------------------------------------

@pytest.fixture
def team(host):
    """A namespace of the host as an admin would make it."""
    name = f"team-chart-{secrets.token_hex(3)}"
    host.create_namespace(name, {"pod-security.kubernetes.io/enforce": "baseline"})
    yield name
    host.delete_namespace(name)


@pytest.fixture
def on_host(host, tmp_path):
    return Helm(tmp_path, host.kubeconfig)


def test_more_arguments_follow_the_configuration(helm):
    for values, more in ({}, []), (EVERYTHING, ["--force"]):
        pod = by_kind(helm.template("research", "t", values), "StatefulSet")["spec"]["template"]["spec"]
        assert pod["containers"][0]["args"] == ["serve", "--config", "/etc/sublet/config.yaml", *more]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_a_real_server_accepts_it(on_host, host, team, values):
    values = merge(values, NO_OPERATOR)
    values.pop("priorityClassName", None)
    out = on_host("install", "research", CHART, "-n", team, "--dry-run=server", values=values)
    assert "Virtual cluster" in out and "WARNING" not in out.split("NOTES:")[0]
    template = by_kind(on_host.template("research", team, values), "StatefulSet")["spec"]["template"]
    strict = f"{team}-strict"
    host.create_namespace(strict, {"pod-security.kubernetes.io/enforce": "restricted"})
    try:
        template["metadata"]["name"] = "research-0"
        spec = {k: v for k, v in template["spec"].items() if k != "serviceAccountName"}
        spec["volumes"] = spec["volumes"] + [{"name": "data", "emptyDir": {}}]
        host.api.post(f"/api/v1/namespaces/{strict}/pods", {"apiVersion": "v1", "kind": "Pod",
                                                           "metadata": template["metadata"], "spec": spec},
                      dryRun="All")
    finally:
        host.delete_namespace(strict)


def test_a_namespace_without_pod_security(on_host, host, team):
    """The label is required where it can be read; a namespace that is made by the install is warned about."""
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None}}}
    host.api.patch(f"/api/v1/namespaces/{team}", labels)
    said = on_host.fails("install", "research", CHART, "-n", team, values={})
    assert f"namespace {team}: label pod-security.kubernetes.io/enforce is \"\": set it to baseline or restricted" in said
    labels["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
    host.api.patch(f"/api/v1/namespaces/{team}", labels)
    assert 'enforce is "privileged"' in on_host.fails("install", "research", CHART, "-n", team, values={})
    for values in ({"namespaceCheck": False}, in_config(policy={"podSecurity": "privileged"})):
        assert on_host("install", "research", CHART, "-n", team, "--dry-run=server", values=values)
    out = on_host("install", "research", CHART, "-n", f"{team}-new", "--create-namespace", "--dry-run=client", values={})
    assert f"WARNING: namespace {team}-new could not be looked at" in out


def test_what_is_off_is_said(on_host, team):
    out = on_host("install", "research", CHART, "-n", team, "--dry-run=server", values=merge(LITTLE, {
        "serviceAccount": {"create": True}, "rbac": {"create": True}, "networkPolicy": {"enabled": True}}))
    for said in ("the host fence is off", "the quota is off", "networkPolicy.hostApi.cidrs is empty", "persistence is off"):
        assert f"WARNING: {said}" in out, said
    out = on_host("install", "research", CHART, "-n", team, "--dry-run=server", values={"limitRange": {"enabled": False}})
    assert "WARNING: pods without limits.memory are refused" in out
    out = on_host("install", "research", CHART, "-n", team, "--dry-run=server", values=merge(
        EVERYTHING, {"priorityClassName": None, **NO_OPERATOR}))
    assert "WARNING" not in out.split("NOTES:")[1], out


class Release:
    """A release on the host, and `sublet serve` run beside it with the service account's own token."""

    def __init__(self, helm, host, namespace, directory, values):
        self.helm, self.host, self.namespace = helm, host, namespace
        helm("install", "research", CHART, "-n", namespace, "--wait", "--timeout", "300s", values=values)
        config = yaml.safe_load(self.object("/api/v1", "configmaps", "research")["data"]["config.yaml"])
        config["kubeconfig"] = None  # its URL leads nowhere from here
        config["network"]["dns"]["listen"] = "127.0.0.1:0"
        tenants = config["host"]["namespace"]
        self.vc = VirtualCluster("research", directory, host, tenants, config, self.token_kubeconfig())

    def object(self, group, resource, name):
        return self.host.api.get(f"{group}/namespaces/{self.namespace}/{resource}/{name}")

    def token_kubeconfig(self):
        base = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/research"
        answer = self.host.api.post(f"{base}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        path = os.path.join(self.helm.directory, "account.kubeconfig")
        return derive_kubeconfig(path, self.host.kubeconfig, token=answer["status"]["token"])

    def log(self):
        return self.vc.process.tail(1000)


@pytest.fixture
def release(on_host, host, tiers, team, tmp_path):
    made = []

    def make(values):
        made.append(Release(on_host, host, team, tmp_path / "tenant", values))
        return made[-1]

    yield make
    for r in made:
        r.vc.close()


def gpu_pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "main", "image": "busybox:1", "resources": {"limits": {GPU: "1"}}}]}}


def claim(name):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


@pytest.mark.parametrize("fence", [False, True], ids=["role", "role and fence"])
def test_the_role_is_enough_for_the_main_job(release, host, fence):
    r = release(merge(POOLS, {"hostFence": {"enabled": fence}}))
    assert r.object("/apis/apps/v1", "statefulsets", "research")["status"]["readyReplicas"] == 1
    k = r.vc.start().kubectl
    k("create", "configmap", "settings", "--from-literal=mode=fast")
    k("create", "secret", "generic", "key", "--from-literal=token=abc")
    k("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    k("set", "env", "deployment/web", "--from=configmap/settings")
    k("set", "env", "deployment/web", "--from=secret/key")
    k("expose", "deployment", "web", "--port=80")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    poser = gpu_pod("train")
    poser["metadata"]["labels"] = {"sublet.dev/control-plane": "research", "app.kubernetes.io/name": "sublet"}
    k.apply([claim("data"), poser])
    k("wait", "--for=condition=Ready", "pod/train", "--timeout=180s")
    k("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=180s")
    eventually(lambda: "Scheduled" in k("get", "events"), 30, "the scheduler's event")
    refusal = k.fails("debug", "train", "--profile=general", "--image=busybox:1", "--container=no", "--", "true")
    assert "SYS_PTRACE" in refusal and "kubectl debug --profile=baseline adds a container that complies" in refusal
    k("debug", "train", "--profile=baseline", "--image=busybox:1", "--container=look", "--", "true")
    eventually(lambda: any(c["name"] == "look" for p in r.vc.host_pods()
                           for c in p["spec"].get("ephemeralContainers", [])), 30, "the debug container")
    assert not [p for p in r.vc.host_pods() for key in ("sublet.dev/control-plane", "app.kubernetes.io/name", "app")
                if key in p["metadata"]["labels"]]  # nor does a Service of the admin's select them
    assert all("sublet.dev/cluster" in p["metadata"]["labels"] for p in r.vc.host_pods())  # what policies select by
    assert {p["spec"]["serviceAccountName"] for p in r.vc.host_pods()} == {"research-pods"}
    k("label", "pod", "train", "stage=two")
    k("set", "image", "deployment/web", "nginx=nginx:2")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    waits = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": {
        "nodeSelector": {"rack": "none"}, "containers": [{"name": "main", "image": "busybox:1", "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"}}}]}}  # simulated kubelets report no resources of running ones
    k.apply(waits)
    eventually(lambda: [p for p in r.vc.host_pods() if "rack" in p["spec"].get("nodeSelector", {})], 30, "the waiting pod")
    k("patch", "pod", "waits", "--subresource=resize", "--type=strategic", "-p",
      '{"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "250m"}}}]}}')
    eventually(lambda: [c for p in r.vc.host_pods() for c in p["spec"]["containers"]
                        if c["resources"].get("requests", {}).get("cpu") == "250m"], 30, "the resize")
    assert k("exec", "train", "--", "echo", "hello") == "hello\n"
    with k.forwarded("pod/train", 8080) as port:
        assert echoed(port, b"hello") == b"hello"
    k("patch", "service", "web", "--type=json", "-p", '[{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]')
    eventually(lambda: [s for s in r.vc.host_objects("/api/v1", "services") if 81 in
                        [p["port"] for p in s["spec"]["ports"]]], 30, "the new port")
    ip = k("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    assert ip in {s["spec"].get("clusterIP") for s in r.vc.host_objects("/api/v1", "services")}
    api = r.object("/api/v1", "services", "research")["spec"]["clusterIP"]
    assert k("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}") == f"{api}:443"
    dns = r.object("/api/v1", "services", "research-dns")["spec"]["clusterIP"]
    assert k("get", "service", "kube-dns", "-n", "kube-system", "-o", "jsonpath={.spec.clusterIP}") == dns
    assert {p["spec"]["dnsConfig"]["nameservers"][0] for p in r.vc.host_pods()} == {dns}
    k("label", "configmap", "settings", "x=y")
    k("delete", "deployment/web", "service/web", "pod/train", "pod/waits", "pvc/data", "--timeout=180s")
    eventually(lambda: not r.vc.host_pods() and not r.vc.host_objects("/api/v1", "services"), 60, "all of it to go")
    secret = eventually(lambda: r.object("/api/v1", "secrets", "research-kubeconfig"), 30, "the kubeconfig")
    assert b"https://127.0.0.1" in base64.b64decode(secret["data"]["value"])
    used = r.object("/api/v1", "resourcequotas", "research")["status"]["hard"]
    assert used["requests.nvidia.com/gpu"] == "16"


def test_what_has_no_namespace_goes_down(release, host):
    """Under the ClusterRole and through the fence: a class, a volume with a Secret, and a claim of each."""
    r = release({"hostFence": {"enabled": True}, "rbac": {"clusterRole": {"enabled": True}}, "config": {"sync": {"toHost": {
        "storageClasses": {"enabled": True, "provisioners": {"kubernetes.io/host-path": {}}},
        "persistentVolumes": {"enabled": True, "drivers": {"csi.chart.example": {
            "volumeHandles": ["chart-*"], "mountOptions": ["ro"]}}}}}}})
    k = r.vc.start().kubectl
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "own", "mountOptions": ["ro"],
            "csi": {"driver": "csi.chart.example", "volumeHandle": "chart-1",
                    "nodeStageSecretRef": {"namespace": "default", "name": "key"}}}
    k("create", "secret", "generic", "key", "--from-literal=token=abc")
    made, held = claim("made"), claim("held")
    made["spec"]["storageClassName"] = "fast"
    held["spec"].update({"storageClassName": "own", "volumeName": "data"})
    k.apply([{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
              "provisioner": "kubernetes.io/host-path"},
             {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "data"}, "spec": spec}])
    k.apply([made, held])
    for name in ("made", "held"):
        k("wait", "--for=jsonpath={.status.phase}=Bound", f"pvc/{name}", "--timeout=180s")
    k("wait", "--for=jsonpath={.status.phase}=Bound", "pv/data", "--timeout=180s")
    eventually(lambda: [s for s in r.vc.host_objects("/api/v1", "secrets")
                        if s["metadata"]["annotations"]["sublet.dev/name"] == "key"], 60, "the volume's Secret")
    k("patch", "pv", "data", "-p", '{"spec": {"capacity": {"storage": "2Gi"}}}')
    mine = f"sublet.dev/host-namespace={r.vc.namespace}"
    eventually(lambda: host.kubectl("get", "pv", "-l", mine, "-o", "jsonpath={.items[*].spec.capacity.storage}") == "2Gi", 60,
               "the change")
    k("delete", "pvc/made", "pvc/held", "--timeout=180s")
    k("wait", "--for=jsonpath={.status.phase}=Released", "pv/data", "--timeout=180s")
    k("delete", "pv/data", "storageclass/fast", "--timeout=180s")
    eventually(lambda: not host.kubectl.names("pv", "-l", mine) and not host.kubectl.names("storageclass", "-l", mine), 60,
               "all of it to leave")


@pytest.mark.parametrize("fence", [False, True], ids=["role", "role and fence"])
def test_the_kubeconfig_in_further_secrets(release, on_host, host, team, fence):
    """One beside the tenant's objects, one in a namespace of which the account may read and write this Secret alone."""
    apart = f"{team}-readers"
    host.create_namespace(apart)
    try:
        values = merge(in_config(kubeconfig={"context": "research@gpu", "additionalSecrets": [
            {"name": "cluster-a", "namespace": apart, "context": "a", "server": "https://a.gpu.example"},
            {"name": "lenient", "insecure": True},
            {"name": "robot-b", "namespace": apart, "serviceAccount": {
                "name": "robot", "namespace": "default", "tokenLifetime": "10m"}}]}), {"hostFence": {"enabled": fence}})
        r = release(values)
        given = yaml.safe_load(r.object("/api/v1", "configmaps", "research")["data"]["config.yaml"])["kubeconfig"]
        r.vc.write_config({"kubeconfig": {**given, "server": ""}})  # the Service leads nowhere from here
        r.vc.start()

        def filled(namespace, name):
            path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
            data = eventually(lambda: host.api.get(path).get("data"), 60, f"{name} to be filled in")
            assert data["value"] == data["config"] and ("client-key" in data) != ("token" in data)
            return data, yaml.safe_load(base64.b64decode(data["value"]))

        first = filled(r.vc.namespace, "research-kubeconfig")[1]
        assert first["current-context"] == "research@gpu" and first["contexts"][0]["context"]["user"] == "research@gpu-admin"
        data, there = filled(apart, "cluster-a")
        assert there["current-context"] == "a" and there["clusters"][0]["cluster"]["server"] == "https://a.gpu.example"
        assert there["clusters"][0]["cluster"]["certificate-authority-data"] == data["certificate-authority"]
        assert data["client-key"] != first["users"][0]["user"]["client-key-data"]
        data, lenient = filled(r.vc.namespace, "lenient")
        cluster = lenient["clusters"][0]["cluster"]
        assert cluster["insecure-skip-tls-verify"] is True and "certificate-authority-data" not in cluster
        assert "certificate-authority" not in data
        path = os.path.join(on_host.directory, "lenient.kubeconfig")
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(lenient, f)
        assert r.vc.kubectl_as(path)("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "admin"
        robot = f"/api/v1/namespaces/{apart}/secrets/robot-b"
        assert not host.api.get(robot).get("data")  # without the account
        r.vc.kubectl("create", "serviceaccount", "robot")
        data, of_robot = filled(apart, "robot-b")
        assert of_robot["users"][0]["user"] == {"token": base64.b64decode(data["token"]).decode()}
        path = os.path.join(on_host.directory, "robot.kubeconfig")
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(of_robot, f)
        assert r.vc.kubectl_as(path)("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == \
            "system:serviceaccount:default:robot"
        checked = subprocess.run([binaries.sublet(), "check", "--config", r.vc.config_path, "--host"], capture_output=True,
                                 text=True, check=False, timeout=120).stdout
        for name in ("cluster-a", "robot-b"):
            assert re.search(rf"^ok +right secrets of {apart} +{name}: get,list,watch,patch$", checked, re.M), checked
        account = r.vc.kubectl_as(r.token_kubeconfig())
        for verb, what in (("list", "secrets"), ("get", "secrets/other"), ("create", "secrets"), ("delete", "secrets/cluster-a"),
                           ("delete", "secrets/robot-b")):
            code, out, _ = account.run("auth", "can-i", verb, what, "-n", apart)
            assert (code, out.strip()) == (1, "no"), (verb, what)
        on_host("upgrade", "research", CHART, "-n", team, "--wait", "--timeout", "300s", values=merge(
            values, {"podAnnotations": {"a": "b"}}))
        assert filled(apart, "cluster-a")[1] == there  # Helm leaves what is in it
        on_host("upgrade", "research", CHART, "-n", team, "--wait", "--timeout", "300s", values={
            "hostFence": {"enabled": fence}})
        assert not [s for s in host.kubectl.names("secrets", "-n", apart) if "cluster-a" in s]
    finally:
        host.delete_namespace(apart)


def test_a_namespace_apart_from_the_control_plane(release, host, team):
    """The account reads no Secret of the release's namespace: neither Helm's records nor what else is kept there."""
    apart = f"{team}-apart"
    host.create_namespace(apart, {"pod-security.kubernetes.io/enforce": "baseline"})
    try:
        r = release(merge(POOLS, {"tenantNamespace": apart, "hostFence": {"enabled": True}}))
        k = r.vc.start().kubectl
        k("create", "secret", "generic", "key", "--from-literal=token=abc")
        k.apply([claim("data"), gpu_pod("train")])
        k("wait", "--for=condition=Ready", "pod/train", "--timeout=180s")
        api = r.object("/api/v1", "services", "research")["spec"]["clusterIP"]
        assert k("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}") == api
        eventually(lambda: host.api.get(f"/api/v1/namespaces/{apart}/secrets/research-kubeconfig"), 30, "the kubeconfig")
        quota = f"/api/v1/namespaces/{apart}/resourcequotas/research"
        eventually(lambda: host.api.get(quota)["status"]["used"]["pods"] == "1", 60, "the host's quota to count the pod")
        account = r.vc.kubectl_as(r.token_kubeconfig())
        for verb, what in (("list", "secrets"), ("get", "secrets"), ("create", "secrets"), ("create", "pods"),
                           ("get", "configmaps"), ("list", "services")):
            code, out, _ = account.run("auth", "can-i", verb, what, "-n", team)
            assert (code, out.strip()) == (1, "no"), (verb, what)
        k("delete", "pod/train", "pvc/data", "--timeout=180s")
        eventually(lambda: not r.vc.host_pods(), 60, "the pod to go")
    finally:
        host.delete_namespace(apart)


def test_the_name_outside_the_host_leads_to_the_api(release, host):
    """TLS for the exposed name ends in the process: its certificate has the name, and clients are known by theirs."""
    r = release(merge(EXPOSED, {"expose": {"tlsRoute": {"enabled": False}}}))
    rule = r.object("/apis/networking.k8s.io/v1", "ingresses", "research")["spec"]["rules"][0]
    assert rule["host"] == "lab.gpu.example" and rule["http"]["paths"][0]["backend"]["service"]["name"] == "research"
    given = yaml.safe_load(r.object("/api/v1", "configmaps", "research")["data"]["config.yaml"])
    r.vc.write_config({"kubeconfig": given["kubeconfig"]})
    r.vc.start(wait=False)  # the name leads nowhere from here
    secret = eventually(lambda: r.object("/api/v1", "secrets", "research-kubeconfig"), 60, "the kubeconfig")["data"]
    text = base64.b64decode(secret["value"]).decode()
    cluster = yaml.safe_load(text)["clusters"][0]["cluster"]
    assert cluster["server"] == "https://lab.gpu.example"
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with socket.create_connection(("127.0.0.1", r.vc.port.number), timeout=60) as plain:
        with context.wrap_socket(plain, server_hostname="lab.gpu.example") as tls:
            assert ("DNS", "lab.gpu.example") in tls.getpeercert()["subjectAltName"]
    out = r.vc.kubectl("--server", f"https://127.0.0.1:{r.vc.port.number}", "--tls-server-name", "lab.gpu.example",
                       "auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")
    assert "system:masters" in out


@pytest.mark.parametrize("version", ["v1", "v1alpha3", "v1alpha2"])
def test_the_route_is_of_a_version_that_the_host_serves(on_host, real_host, team, version):
    names = {"plural": "tlsroutes", "singular": "tlsroute", "kind": "TLSRoute"}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": "tlsroutes.gateway.networking.k8s.io", "annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"}}, "spec": {
        "group": "gateway.networking.k8s.io", "scope": "Namespaced", "names": names, "versions": [
            {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    real_host.api.post(path, crd)
    routes = f"/apis/gateway.networking.k8s.io/{version}/namespaces/{team}/tlsroutes"
    try:
        eventually(lambda: real_host.api.get(routes), 60, "the host to serve routes", also=[404, 429])
        on_host("install", "research", CHART, "-n", team, values=EXPOSED)
        assert real_host.api.get(f"{routes}/research")["spec"]["hostnames"] == ["lab.gpu.example"]
        on_host("uninstall", "research", "-n", team)
    finally:
        real_host.api.delete(f"{path}/{crd['metadata']['name']}")
        eventually(lambda: real_host.api.raw("GET", routes)[0] == 404, 60, "the routes to be gone")


def test_without_a_cluster_role_nodes_are_names(release, host):
    """Reported once each, and tried again every few minutes only."""
    r = release(POOLS)
    k = r.vc.start().kubectl
    assert k.names("nodes") == []
    eventually(lambda: k.names("storageclasses") == ["standard"], 30, "the host's default class, from a dry run")
    k.apply(claim("data"))
    host_claim = eventually(lambda: r.vc.host_objects("/api/v1", "persistentvolumeclaims"), 30, "the claim on the host")
    assert host_claim[0]["spec"]["storageClassName"] == "standard"
    assert "not offered" in k.fails("apply", "-f", "-", stdin=yaml.safe_dump(
        {**claim("gold"), "spec": {**claim("gold")["spec"], "storageClassName": "gold"}}))
    k.apply(gpu_pod("train"))
    k("wait", "--for=condition=Ready", "pod/train", "--timeout=180s")
    node = k("get", "pod", "train", "-o", "jsonpath={.spec.nodeName}")
    seen = k.json("get", "node", node)
    assert [c["status"] for c in seen["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
    assert "nvidia.com/gpu.product" not in seen["metadata"]["labels"]
    assert seen["metadata"]["labels"]["kubernetes.io/os"] == "linux" == seen["status"]["nodeInfo"]["operatingSystem"]
    assert seen["metadata"]["labels"]["kubernetes.io/arch"] == seen["status"]["nodeInfo"]["architecture"]
    k("delete", "pod", "train", "--now")
    eventually(lambda: k.names("nodes") == [], 30, "the node to go with its last pod")
    log = r.log()
    for kind in ("nodes", "storageclasses"):
        said = [line for line in log.splitlines() if f"watch {kind}" in line]
        assert len(said) == 1 and "forbidden" in said[0], log


def test_with_a_cluster_role_nodes_are_shown(release, host):
    r = release(merge(POOLS, {"rbac": {"clusterRole": {"enabled": True}}}))
    k = r.vc.start().kubectl
    eventually(lambda: "gpu-a100-1" in k.names("nodes"), 30, "the nodes of the pools")
    assert k.json("get", "node", "gpu-a100-1")["metadata"]["labels"]["nvidia.com/gpu.product"]
    eventually(lambda: k.names("storageclasses") == ["standard"], 30, "the storage class")
    with pytest.raises(ApiError):
        r.host.api.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{r.namespace}")
    r.vc.stop()
    r.helm("uninstall", "research", "-n", r.namespace, "--wait")
    left = r.host.api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"]
    assert not [c for c in left if r.namespace in c["metadata"]["name"]]


def test_what_the_account_may_not_do(release, host):
    r = release({})
    account = r.vc.kubectl_as(r.token_kubeconfig())
    for verb, what, where in [("list", "nodes", ()), ("list", "secrets", ("-n", "kube-system")),
                              ("list", "pods", ("-A",)), ("create", "rolebindings", ("-n", r.namespace)),
                              ("impersonate", "users", ()), ("create", "serviceaccounts/token", ("-n", r.namespace)),
                              ("update", "resourcequotas", ("-n", r.namespace)),
                              ("delete", "networkpolicies", ("-n", r.namespace)),
                              ("create", "deployments.apps", ("-n", r.namespace))]:
        code, out, _ = account.run("auth", "can-i", verb, what, *where)
        assert (code, out.strip()) == (1, "no"), (verb, what)


def test_an_upgrade_restarts_only_when_it_must(on_host, host, team):
    on_host("install", "research", CHART, "-n", team, values=POOLS)

    def template():
        path = f"/apis/apps/v1/namespaces/{team}/statefulsets/research"
        return host.api.get(path)["spec"]["template"]

    before = template()
    on_host("upgrade", "research", CHART, "-n", team, values=merge(POOLS, {"quota": {"hard": {"pods": "7"}}}))
    assert template() == before
    on_host("upgrade", "research", CHART, "-n", team, values=merge(POOLS, {"config": {"log": {"level": "debug"}}}))
    assert template() != before
    on_host("rollback", "research", "1", "-n", team)
    assert template() == before


def test_the_page_is_true(host, tmp_path):
    """The commands of docs/installing.md, in its order, with its values."""
    with open(os.path.join(binaries.TREE, "docs", "installing.md"), encoding="utf-8") as f:
        page = f.read()
    blocks = re.findall(r"^```(\S+)([^\n]*)\n(.*?)^```$", page, re.M | re.S)
    (tmp_path / "research.yaml").write_text(next(text for kind, _, text in blocks if kind == "yaml"))
    (tmp_path / "charts").symlink_to(os.path.dirname(CHART))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, path in (("kubectl", binaries.host_program("kubectl")), ("helm", binaries.host_program("helm")),
                       ("sublet", binaries.sublet())):
        (programs / name).symlink_to(path)
    env = {**os.environ, **Helm(tmp_path, host.kubeconfig).env, "PATH": f"{programs}:{os.environ['PATH']}"}
    steps = [line for _, mark, text in blocks if mark == " by=tests/integration/test_chart.py"
             for line in text.splitlines()]
    assert len(steps) > 6
    try:
        for step in steps:
            if "get secret" in step:  # simulated kubelets run no containers, so it was not published
                host.api.post("/api/v1/namespaces/team-research/secrets", {
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "research-kubeconfig"},
                    "stringData": {"value": "kubeconfig"}})
            r = subprocess.run(["bash", "-euo", "pipefail", "-c", step], cwd=tmp_path, env=env, timeout=600,
                               capture_output=True, text=True, check=False)
            assert r.returncode == 0, f"{step}\n{r.stdout}{r.stderr}"
        assert (tmp_path / "research.kubeconfig").read_text() == "kubeconfig"
    finally:
        host.delete_namespace("team-research")
