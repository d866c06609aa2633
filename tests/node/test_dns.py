# SPDX-License-Identifier: Apache-2.0
"""The tenant's DNS as pods use it: the C library's resolver and the kubelet's resolv.conf, on every kind of name."""
import re

import pytest

from testenv.node import DOMAIN, OUTSIDE
from testenv.wait import eventually

from places import pod


class Names:
    """What a pod of a place resolves."""

    def __init__(self, place, name="client"):
        self.place = place
        self.pod = name

    def addresses(self, name):
        """By getaddrinfo, with the search path of the pod; empty: there is no such name."""
        code, out, _ = self.place.kubectl.run("exec", self.pod, "--", "getent", "ahostsv4", name)
        return sorted({line.split()[0] for line in out.splitlines()}) if code == 0 else []

    def name_of(self, address):
        return self.place.sh(self.pod, f"getent hosts {address}").split()[1]

    def dig(self, *words):
        """(status, [records]) of a query as it is, without search path."""
        out = self.place.sh(self.pod, f"dig +tries=1 +time=5 {' '.join(words)}")
        status = re.search(r"status: (\w+)", out)
        answers = re.search(r"ANSWER SECTION:\n(.*?)\n\n", out, re.S)
        return status and status[1], [line.split(None, 4)[4] for line in answers[1].splitlines()] if answers else []

    def settings(self):
        """{keyword: words} of its resolv.conf."""
        lines = [line.split() for line in self.place.sh(self.pod, "cat /etc/resolv.conf").splitlines() if line.strip()]
        return {word: sorted(rest) if word == "options" else rest for word, *rest in lines}  # those come from a map


@pytest.fixture
def names(place):
    place.start("client")
    return Names(place)


def soon(names, name, wanted, what):
    return eventually(lambda: names.addresses(name) == wanted, 30, what)


# --- names of the tenant ----------------------------------------------------------------------------------

def test_a_service_by_all_its_names(place, names):
    place.serve("web")
    ip = place.service("web")["spec"]["clusterIP"]
    ns = place.namespace
    soon(names, "web", [ip], "the short name")
    for name in (f"web.{ns}", f"web.{ns}.svc", f"web.{ns}.svc.{DOMAIN}", f"web.{ns}.svc.{DOMAIN}."):
        assert names.addresses(name) == [ip], name
    assert names.name_of(ip) == f"web.{ns}.svc.{DOMAIN}"
    assert names.dig(f"_http._tcp.web.{ns}.svc.{DOMAIN}", "SRV") == ("NOERROR", [f"0 100 80 web.{ns}.svc.{DOMAIN}."])
    place.soon("web", f"/agnhost connect --timeout=5s web.{ns}:80", "", "the Service, by Go's resolver")
    assert names.dig("web.", "A")[0] == "NXDOMAIN"


def test_another_namespace_of_the_tenant(place, names, place_of, research):
    there = place_of(research)
    there.serve("web")
    ip = there.service("web")["spec"]["clusterIP"]
    soon(names, f"web.{there.namespace}", [ip], "the name with its namespace")
    assert names.addresses("web") == []
    place.soon("client", f"curl -sS -m 5 http://web.{there.namespace}/hostname", "web", "its answer")


def test_the_api_by_its_names(place, names):
    ip = place.sh("client", "echo $KUBERNETES_SERVICE_HOST")
    for name in ("kubernetes.default", f"kubernetes.default.svc.{DOMAIN}"):
        assert names.addresses(name) == [ip], name
        assert names.dig(f"kubernetes.default.svc.{DOMAIN}") == ("NOERROR", [ip])
    server = names.settings()["nameserver"]
    assert names.addresses(f"kube-dns.kube-system.svc.{DOMAIN}") == server


def test_a_headless_service_follows_its_pods(place, names):
    place.service("peers", clusterIP="None", selector={"group": "peers"}, ports=None)
    for name in ("a", "b"):
        place.serve(name, labels={"group": "peers"})
    both = sorted(place.ip(name) for name in ("a", "b"))
    soon(names, "peers", both, "both pods")
    place.kubectl("delete", "pod", "a")
    soon(names, "peers", [place.ip("b")], "the one that is left")


def test_pods_of_a_stateful_set(place, names):
    labels = {"app": "db"}
    place.service("db", clusterIP="None", ports=[{"name": "http", "port": 8080}])
    place.apply("StatefulSet", "db", api="apps/v1", spec={
        "serviceName": "db", "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}})
    place.kubectl("rollout", "status", "statefulset/db", "--timeout=120s")
    for name in ("db-0", "db-1"):
        soon(names, f"{name}.db", [place.ip(name)], name)
        full = f"{name}.db.{place.namespace}.svc.{DOMAIN}"
        assert names.name_of(place.ip(name)) == full
    status, records = names.dig(f"_http._tcp.db.{place.namespace}.svc.{DOMAIN}", "SRV")
    assert status == "NOERROR" and sorted(r.split()[3].split(".")[0] for r in records) == ["db-0", "db-1"]


def test_hostname_and_subdomain(place, names):
    place.service("sub", clusterIP="None", selector={"app": "named"}, ports=None)
    place.start("named", hostname="one", subdomain="sub")
    soon(names, "one.sub", [place.ip("named")], "the pod by its hostname")
    assert place.sh("named", "hostname") == "one"
    assert names.name_of(place.ip("named")) == f"one.sub.{place.namespace}.svc.{DOMAIN}"


def test_a_pod_knows_its_own_name_without_a_service(place, names):
    place.start("lonely", hostname="one", subdomain="nowhere")
    full = f"one.nowhere.{place.namespace}.svc.{DOMAIN}"
    place.soon("lonely", f"getent hosts {full} | cut -d' ' -f1", place.ip("lonely"), "its own name")
    assert names.dig(full)[0] == "NXDOMAIN"


def test_pods_that_are_not_ready(place, names):
    probe = {"readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1}}
    place.start("slow", probe, wait=False)
    for name, early in (("shown", True), ("hidden", False)):
        place.service(name, clusterIP="None", selector={"app": "slow"}, ports=None, publishNotReadyAddresses=early)
    eventually(lambda: place.get("pods", "slow")["status"].get("podIP"), 60, "its address")
    soon(names, "shown", [place.ip("slow")], "the pod that is not ready")
    assert names.addresses("hidden") == []


def test_external_names(place, names):
    place.service("away", type="ExternalName", externalName="www.example.com", selector=None, ports=None)
    place.serve("web")
    ip = place.service("web")["spec"]["clusterIP"]
    place.service("alias", type="ExternalName", externalName=f"web.{place.namespace}.svc.{DOMAIN}", selector=None, ports=None)
    soon(names, "away", [OUTSIDE["www.example.com"]], "a name of the world")
    soon(names, "alias", [ip], "a Service under another name")


# --- names that are not the tenant's ----------------------------------------------------------------------

def test_other_names_go_to_the_hosts_dns(names):
    for name, ip in OUTSIDE.items():
        assert names.addresses(name) == [ip], name
        assert names.name_of(ip) == name
    assert names.dig("none.example.com")[0] == "NXDOMAIN"
    assert names.dig("+tcp", "www.example.com") == ("NOERROR", [OUTSIDE["www.example.com"]])


def test_the_hosts_names_are_not_there(host, names, place_of):
    there = place_of(host)
    there.serve("secret")
    ip = there.service("secret")["spec"]["clusterIP"]
    full = f"secret.{there.namespace}.svc.{DOMAIN}"
    at_home = Names(there, there.start("client"))
    soon(at_home, full, [ip], "the host's own pods to know it")
    assert names.addresses(full) == []
    for name in (full, "research.team-research.svc." + DOMAIN, "kubernetes.default.svc.other"):
        assert names.dig(name)[0] == "NXDOMAIN", name
    reverse = names.dig("-x", ip)
    assert reverse == ("NXDOMAIN", []), reverse


def test_another_tenants_names_are_not_there(names, other, place_of):
    there = place_of(other)
    there.serve("web")
    ip = there.service("web")["spec"]["clusterIP"]
    at_home = Names(there, there.start("client"))
    soon(at_home, "web", [ip], "its own pods to know it")
    full = f"web.{there.namespace}.svc.{DOMAIN}"
    assert names.addresses(full) == [] and names.addresses(f"web.{there.namespace}") == []
    assert names.dig("-x", ip)[0] == "NXDOMAIN"
    # It could not send a query either: the other tenant's server answers its own pods only.
    theirs = other.address("-dns")
    assert at_home.dig(f"@{theirs}", full) == ("NOERROR", [ip])
    assert refused(names, theirs, full)


def test_strangers_are_not_answered(host, research, place, place_of):
    """A pod of the host in another namespace."""
    place.serve("web")
    place.service("web")
    there = place_of(host)
    stranger = Names(there, there.start("client"))
    server = research.address("-dns")
    full = f"web.{place.namespace}.svc.{DOMAIN}"
    assert refused(stranger, server, full) and refused(stranger, server, "www.example.com")
    assert refused(stranger, server, "+tcp", full)


def refused(names, server, *words):
    """No answer: REFUSED, or silence."""
    out = names.place.sh(names.pod, f"dig +tries=1 +time=4 @{server} {' '.join(words)} || true")
    assert "ANSWER SECTION" not in out
    return "status: REFUSED" in out or "no servers could be reached" in out or "timed out" in out or "end of file" in out or \
        "connection reset" in out


# --- resolv.conf ------------------------------------------------------------------------------------------

def test_policy_cluster_first(place, names, research):
    ns = place.namespace
    assert names.settings() == {"nameserver": [research.address("-dns")], "options": ["ndots:5"],
                                "search": [f"{ns}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN, "corp.example"]}


def test_policy_default(place, host):
    place.start("plain", dnsPolicy="Default")
    assert Names(place, "plain").settings() == {"nameserver": [host.dns_address], "search": ["corp.example"]}


def test_policy_none(place):
    place.start("own", dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.53"], "searches": ["a.example", "b.example"],
                                                    "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}]})
    assert Names(place, "own").settings() == {"nameserver": ["192.0.2.53"], "search": ["a.example", "b.example"],
                                              "options": ["ndots:2", "rotate"]}


def test_config_over_a_policy(place, research):
    place.start("mixed", dnsConfig={"nameservers": ["192.0.2.53"], "searches": ["a.example"],
                                    "options": [{"name": "ndots", "value": "1"}, {"name": "attempts", "value": "3"}]})
    settings = Names(place, "mixed").settings()
    assert settings["search"] == [f"{place.namespace}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN, "corp.example", "a.example"]
    assert settings["options"] == ["attempts:3", "ndots:1"]
    out = place.sh("mixed", "cat /etc/resolv.conf")
    assert re.findall(r"nameserver (\S+)", out) == [research.address("-dns"), "192.0.2.53"]
