# SPDX-License-Identifier: Apache-2.0
"""What the host gets of an object, before it gets it: Warnings of a tenant's dry run, `sublet explain` for the admin."""
import json
import socket
import subprocess
import os

import yaml

from testenv import binaries, eventually
from testenv.nodes import pool_config


def explain(vc, objects, *args):
    """Exit code, standard output, standard error."""
    text = yaml.safe_dump_all(objects if isinstance(objects, list) else [objects])
    r = subprocess.run([binaries.sublet(), "explain", "-f", "-", "--data-dir", vc.store, *args], input=text,
                       capture_output=True, text=True, check=False, timeout=120)
    return r.returncode, r.stdout, r.stderr


def pod(name="train", namespace="default", **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
            "spec": {"containers": [{"name": "main", "image": "example.com/x:1"}], **spec}}


def gpu_pod(**spec):
    out = pod(**spec)
    out["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return out


def host_pod(vc):
    """That of pod train."""
    return next((p for p in vc.host_pods() if p["metadata"]["annotations"]["sublet.dev/name"] == "train"), None)


def dry_run(vc, manifest, how="create"):
    code, _, err = vc.kubectl.run(how, "-f", "-", "--dry-run=server", stdin=json.dumps(manifest))
    assert code == 0, err
    return [line for line in err.splitlines() if line.startswith("Warning: ")]


def test_a_dry_run_warns_and_a_write_does_not(tenant, pools):
    vc = tenant("research", pools)
    manifest = gpu_pod(subdomain="workers", setHostnameAsFQDN=True, schedulerName="default-scheduler")
    warnings = dry_run(vc, manifest)
    assert [w.split(": ")[1] for w in warnings] == ["spec.setHostnameAsFQDN", "spec.subdomain", "spec.nodeSelector"]
    assert "is not sent to the host cluster: the virtual cluster's DNS answers it" in warnings[1]
    assert "is set on the host cluster: the node selector of the pool" in warnings[2]
    assert not any("shared" in w or "team-" in w for w in warnings)  # nothing of the host's own

    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"},
                  "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": {
                      "metadata": {"labels": {"app": "d"}}, "spec": manifest["spec"]}}}
    assert [w.split(": ")[1] for w in dry_run(vc, deployment)] == [w.split(": ")[1] for w in warnings]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default"},
               "spec": {"type": "LoadBalancer", "loadBalancerClass": "example.com/own", "ports": [{"port": 80}]}}
    assert [w.split(": ")[1] for w in dry_run(vc, service)] == ["spec.loadBalancerClass", "spec.type"]

    assert not dry_run(vc, pod("plain"))
    _, _, err = vc.kubectl.run("create", "-f", "-", stdin=json.dumps(manifest))
    assert "Warning" not in err
    eventually(lambda: host_pod(vc), 60, "the host pod")


def test_a_pod_is_explained(tenant, pools, host):
    vc = tenant("research", pools)
    manifest = gpu_pod(subdomain="workers", hostname="w-0")
    code, out, err = explain(vc, manifest)
    assert (code, err) == (0, ""), out
    lines = out.splitlines()
    assert lines[0].startswith(f"Pod default/train is Pod {vc.namespace}/train-") and lines[0].endswith(" on the host")
    assert '  dropped  spec.subdomain: "workers"' in lines
    assert '  added    spec.nodeSelector: {"sublet.dev/pool":"shared"}' in lines
    variables = [line for line in lines if line.startswith("  added    spec.containers[main].env: ")]
    assert len(variables) == 1 and "KUBERNETES_SERVICE_HOST" in variables[0] and "AMD_VISIBLE_DEVICES" in variables[0]
    assert lines[-1] == "the host admits it"
    assert not vc.kubectl.names("pods") and not vc.host_pods()  # nothing was made

    # What it shows is what is made.
    code, out, _ = explain(vc, manifest, "-o", "json")
    shown = json.loads(out)
    vc.kubectl.apply(manifest)
    made = eventually(lambda: host_pod(vc), 60, "the host pod")
    assert code == 0 and shown["metadata"]["name"] == made["metadata"]["name"]
    assert shown["spec"]["nodeSelector"] == made["spec"]["nodeSelector"]
    assert [v["name"] for v in shown["spec"]["containers"][0]["env"]] == \
        [v["name"] for v in made["spec"]["containers"][0]["env"]]
    _, out, _ = explain(vc, manifest, "-o", "yaml")  # which exists now
    assert yaml.safe_load(out)["metadata"]["annotations"]["sublet.dev/uid"] == \
        made["metadata"]["annotations"]["sublet.dev/uid"]


def priced(pools, **policy):
    """The pools with prices, and what the tenant is warned of."""
    metering = {"price": "2.50", "currency": "USD", "per": "GPUHour", "borrowFactor": "0.8"}
    return dict(pools, pools=[dict(p, metering=metering) for p in pools["pools"]], policy=policy)


def scaled(kind, number, gpus=1):
    body = gpu_pod()
    body["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = str(gpus)
    template = {"metadata": {"labels": {"app": "w"}}, "spec": body["spec"]}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": "w"},
                "spec": {"parallelism": number, "completions": number, "template": template}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"},
            "spec": {"replicas": number, "selector": {"matchLabels": {"app": "w"}}, "template": template}}


def prices(said):
    """Of the lines of a client, what things cost."""
    return [line.removeprefix("Warning: ") for line in said if " per hour" in line]


def test_a_dry_run_says_what_it_costs(tenant, pools):
    """Exactly, of pods and workloads; a write says nothing unless it is to, and a pool without a price never."""
    vc = tenant("research", priced(pools))
    k = vc.kubectl
    assert prices(dry_run(vc, gpu_pod())) == ['pool "shared": 1 GPU costs 2.50 USD per hour']
    assert prices(dry_run(vc, scaled("Deployment", 3, gpus=2))) == ['pool "shared": 2 GPU cost 5.00 USD per hour (3 replicas: 15.00)']
    assert prices(dry_run(vc, scaled("Job", 2))) == ['pool "shared": 1 GPU costs 2.50 USD per hour (2 pods: 5.00)']
    most = scaled("Deployment", 2147483647)
    assert prices(dry_run(vc, most)) == ['pool "shared": 1 GPU costs 2.50 USD per hour (2147483647 replicas: 5368709117.50)']
    assert not prices(dry_run(vc, pod()))  # it holds nothing

    code, _, err = k.run("apply", "-f", "-", stdin=json.dumps(scaled("Deployment", 1)))
    assert code == 0 and not prices(err.splitlines()), err
    more = scaled("Deployment", 2)
    assert prices(dry_run(vc, more, how="apply")) == ['pool "shared": 1 GPU costs 2.50 USD per hour (2 replicas: 5.00)']

    code, out, _ = explain(vc, [dict(gpu_pod(), metadata={"name": "one"}), scaled("StatefulSet", 4)])
    assert [line for line in out.splitlines() if line.startswith("price: ")] == [
        'price: pool "shared": 1 GPU costs 2.50 USD per hour', 'price: pool "shared": 1 GPU costs 2.50 USD per hour (4 replicas: 10.00)']

    always = tenant("always", priced(pools, priceWarnings="always"))
    _, _, err = always.kubectl.run("create", "-f", "-", stdin=json.dumps(gpu_pod()))
    assert prices(err.splitlines()) == ['pool "shared": 1 GPU costs 2.50 USD per hour'], err
    never = tenant("never", priced(pools, priceWarnings="never"))
    assert not prices(dry_run(never, gpu_pod()))
    _, out, _ = explain(never, gpu_pod())
    assert 'price: pool "shared": 1 GPU costs 2.50 USD per hour' in out.splitlines()
    assert not prices(dry_run(tenant("free", pools), gpu_pod()))


def test_the_verdict_of_both_sides(tenant, pools, host):
    vc = tenant("research", pools)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": vc.namespace},
             "spec": {"hard": {"count/configmaps": "0", "pods": "0"}}}
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/resourcequotas", quota)
    code, out, _ = eventually(lambda: (lambda r: r[0] == 1 and r)(explain(vc, pod())), 30, "the host's quota")
    assert "the host refuses it: " in out and "exceeded quota: none" in out and "verdict-" not in out
    code, out, _ = explain(vc, pod(hostNetwork=True))
    assert code == 1 and "the virtual cluster refuses it: " in out and "hostNetwork=true" in out
    assert "on the host" not in out
    code, out, _ = explain(vc, pod(namespace="nowhere"))
    assert code == 1 and 'namespaces "nowhere" not found' in out


def test_a_pod_that_waits(tenant, pools, host):
    """The host's quota of devices is as full as the limit of the pool, and refuses no pod that has to wait for both."""
    config = dict(pools, bindings=[{"pool": "shared", "guarantee": "1", "burst": "1", "overQuota": "queue"}], policy={"verdict": "enforce"})
    vc = tenant("research", config)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "devices", "namespace": vc.namespace},
             "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/resourcequotas", quota)
    for i in (1, 2):
        vc.kubectl.apply(gpu_pod(name=f"holds-{i}"))
    eventually(lambda: len(vc.host_pods()) == 2, 60, "the host pods")

    def says():
        code, out, _ = explain(vc, gpu_pod(name="late"))
        last = out.splitlines()[-1]
        return code == 0 and last == "it waits in the line of the pool: the host gets it when GPUs come free" and out
    out = eventually(says, 30, "the host's quota to be full")
    assert "pool shared: requested 1 GPU, used 2, limit 2" in out
    vc.kubectl.apply(gpu_pod(name="late"))  # and so it does, where the host's verdict binds
    eventually(lambda: "waiting for 1 GPU in pool shared: position 1" in vc.kubectl("describe", "pod", "late"), 30, "its place")
    assert says() and len(vc.host_pods()) == 2


def test_other_kinds(tenant):
    vc = tenant("research")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
               "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "immutable": True,
                "data": {"k": "v", "NVIDIA_VISIBLE_DEVICES": "all"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "bootstrap.kubernetes.io/token",
              "stringData": {"k": "v"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
           "spec": {"template": {"spec": pod(restartPolicy="Never", subdomain="x")["spec"]}}}
    code, out, err = explain(vc, [service, settings, secret, job], "-n", "kube-system")
    assert (code, err) == (0, ""), out
    parts = out.split("\n\n")
    assert [p.split()[:2] for p in parts] == [["Service", "kube-system/s"], ["ConfigMap", "kube-system/c"],
                                              ["Secret", "kube-system/s"], ["Job", "kube-system/j"]]
    assert 'changed  spec.selector: {"app":"x"} -> ' in parts[0]
    assert "dropped  immutable: true" in parts[1] and "changed  data: " in parts[1]
    assert 'changed  type: "bootstrap.kubernetes.io/token" -> "Opaque"' in parts[2]
    assert 'dropped  spec.subdomain: "x"' in parts[3] and " is Pod " in parts[3]
    assert all("the host admits it" in p for p in parts)

    external = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "e"},
                "spec": {"type": "ExternalName", "externalName": "example.com"}}
    code, out, _ = explain(vc, external)
    assert code == 0 and out.splitlines()[-1] == "it has no object on the host"
    code, _, err = explain(vc, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    assert code == 2 and 'kind "Namespace" has no host object' in err
    code, _, err = explain(vc, {"apiVersion": "v1", "kind": "Pod", "spec": "x"})
    assert code in (1, 2)


def test_kinds_that_are_enabled(tenant):
    vc = tenant("research", config={"sync": {"toHost": {"ingresses": {"enabled": True, "classes": ["shared"], "hosts": ["*.team.example"]},
                                                        "networkPolicies": {"enabled": True}}}})
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"rules": [
        {"host": "a.team.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"},
              "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}
    code, out, err = explain(vc, [ingress, policy])
    assert (code, err) == (0, ""), out
    first, second = out.split("\n\n")
    assert first.startswith(f"Ingress default/i is Ingress {vc.namespace}/i-")
    assert '  added    spec.ingressClassName: "shared"' in first
    assert '  changed  spec.rules[0].http.paths[0].backend.service.name: "web" -> "web-' in first
    assert second.startswith(f"NetworkPolicy default/p is NetworkPolicy {vc.namespace}/p-")
    assert all(part.splitlines()[-1] == "the host admits it" for part in (first, second))
    ingress["spec"]["rules"][0]["host"] = "bank.example"
    code, out, _ = explain(vc, ingress)
    assert code == 1 and "the virtual cluster refuses it: " in out and "sync.toHost.ingresses.hosts" in out
    assert not vc.host_objects("/apis/networking.k8s.io/v1", "ingresses")
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}}
    code, _, err = explain(vc, budget)
    assert code == 2 and "and what sync.toHost enables" in err


def test_it_needs_the_running_process(tenant):
    vc = tenant("research")
    vc.stop()
    code, _, err = explain(vc, pod())
    assert code == 2 and "no process serves" in err


def test_a_client_that_leaves_breaks_nothing(tenant):
    """Requests cut off at any byte, words that are none, lengths that are too long."""
    vc = tenant("research")
    address = os.path.join(vc.store, "control")
    body = json.dumps(pod()).encode()
    for text in (b"explain 9999999999\n", b"explain x\n", b"other 3\nabc", b"explain 3", b"explain 5\nab",
                 b"explain 1\n{{", b"explain 0\n", b"explain %d\n" % len(body) + body, b"x" * 100):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            client.sendall(text)
    code, out, err = eventually(lambda: (lambda r: r[0] == 0 and r)(explain(vc, pod())), 60, "room for a client")
    assert "the host admits it" in out, err


def test_the_queue_of_a_pod_and_no_gate(tenant):
    """On a host without Kueue; with it: tests/kueue."""
    vc = tenant("research", {"pools": [pool_config("shared", "l4", kind="shared", scheduler={
        "kind": "kueue", "queueTemplate": "t-{tenant}"})], "bindings": [{"pool": "shared", "guarantee": "8"}]})
    code, out, _ = explain(vc, gpu_pod())
    lines = out.splitlines()
    assert code == 0 and any('"kueue.x-k8s.io/queue-name"' in line or "kueue.x-k8s.io/queue-name" in line for line in lines)
    assert lines[-2] == "queue t-research: label kueue.x-k8s.io/queue-name; the host's Kueue does not hold it: no gate was added"
