# SPDX-License-Identifier: Apache-2.0
"""DNS of a tenant on the wire: a resolver library and dig against the running process, over loopback."""
import contextlib
import shutil
import socket
import socketserver
import subprocess
import threading

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from testenv import eventually
from testenv.process import Port

DOMAIN = "cluster.local"
ADDRESS = "10.96.0.53"
LONG = [f"192.0.2.{i}" for i in range(1, 200)]  # more than a datagram holds

pytestmark = pytest.mark.both_hosts


class Upstream:
    """A resolver of the test's own: answers from a table over UDP and TCP, and counts its queries."""

    def __init__(self):
        self.asked = []
        self.table = {("www.example.com.", "A"): ["192.0.2.1"], ("long.example.com.", "A"): LONG,
                      ("host.example.com.", "CNAME"): ["kubernetes.default.svc.cluster.local."]}
        self.silent = False
        outer = self

        class Udp(socketserver.BaseRequestHandler):
            def handle(self):
                data, sock = self.request
                answer = outer.answer(data)
                if not outer.silent:
                    wire = answer.to_wire(max_size=65535)
                    if len(wire) > 1232:
                        answer.answer = []
                        answer.flags |= dns.flags.TC
                        wire = answer.to_wire()
                    sock.sendto(wire, self.client_address)

        class Tcp(socketserver.BaseRequestHandler):
            def handle(self):
                size = int.from_bytes(self.request.recv(2), "big")
                wire = outer.answer(self.request.recv(size), "tcp").to_wire(max_size=65535)
                self.request.sendall(len(wire).to_bytes(2, "big") + wire)

        self.tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tcp)
        self.port = self.tcp.server_address[1]
        self.udp = socketserver.ThreadingUDPServer(("127.0.0.1", self.port), Udp)
        for server in (self.tcp, self.udp):
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, data, over="udp"):
        query = dns.message.from_wire(data)
        q = query.question[0]
        name, kind = q.name.to_text(), dns.rdatatype.to_text(q.rdtype)
        self.asked.append((name, kind, over))
        answer = dns.message.make_response(query, recursion_available=True)
        found = [(k, v) for (n, k), v in self.table.items() if n == name and k in (kind, "CNAME")]
        for k, values in found:
            answer.answer.append(dns.rrset.from_text_list(name, 300, "IN", k, values))
        if not found:
            answer.set_rcode(dns.rcode.NXDOMAIN)
            answer.authority.append(dns.rrset.from_text("com.", 300, "IN", "SOA", "ns.com. h.com. 1 2 3 4 60"))
        return answer

    def count(self, name):
        return sum(a[0] == name for a in self.asked)

    def close(self):
        for server in (self.tcp, self.udp):
            server.shutdown()
            server.server_close()


@pytest.fixture
def upstream():
    with contextlib.closing(Upstream()) as u:
        yield u


@pytest.fixture
def port():
    with contextlib.closing(Port()) as p:
        yield p


def options(port, upstream, **more):
    return {"network": {"dns": {"listen": f"127.0.0.1:{port}", "address": ADDRESS,
                                "forwarders": [f"127.0.0.1:{upstream.port}"], **more}}}


@pytest.fixture
def vc(tenant, port, upstream):
    return tenant("named", options(port, upstream, clients=["127.0.0.0/8"], hosts=["10.7.0.1 git.corp.example"],
                                   aliases=["registry.example web.default.svc.cluster.local", "*.old.example *.default.svc.cluster.local",
                                            "far.example www.example.com", "hidden.example api.other.svc.host.local"],
                                   hiddenDomains=["cluster.local", "host.local"]))


def ask(port, name, kind="A", tcp=False, timeout=5, source=None, **edns):
    query = dns.message.make_query(name, kind, **edns)
    how = dns.query.tcp if tcp else dns.query.udp
    return how(query, "127.0.0.1", port=port.number, timeout=timeout, source=source)


def texts(answer):
    return sorted(r.to_text() for rrset in answer.answer for r in rrset)


def addresses(port, name, kind="A", **how):
    return texts(ask(port, name, kind, **how))


def service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **spec}}


def services_of(ns="default"):
    return f"/api/v1/namespaces/{ns}/services"


def test_aliases(vc, port, upstream):
    assert ask(port, "registry.example").rcode() == dns.rcode.NXDOMAIN
    ip = vc.api.post(services_of(), service("web", ports=[{"port": 80}]))["spec"]["clusterIP"]
    for name in ("registry.example", "web.old.example"):
        eventually(lambda name=name: addresses(port, name) == sorted(["web.default.svc.cluster.local.", ip]), 30, name)
    assert addresses(port, "far.example") == sorted(["www.example.com.", "192.0.2.1"])
    assert upstream.count("far.example.") == 0 and upstream.count("www.example.com.") == 1
    before = len(upstream.asked)
    assert ask(port, "hidden.example").rcode() == dns.rcode.NXDOMAIN
    assert len(upstream.asked) == before


def test_names_of_nodes(tenant, host, port, upstream):
    """With kubelets by address, the name of a Node leads there."""
    on = {"sync": {"kubelets": "own", "kubeletAddresses": 2}, **options(port, upstream, clients=["127.0.0.0/8"])}
    vc = tenant("byname", config=on)
    for i in range(2):
        host.api.post(f"/api/v1/namespaces/{vc.namespace}/services",
                      {"metadata": {"name": f"byname-kubelet-{i}"}, "spec": {"ports": [{"name": "kubelet", "port": 10250}]}})
    vc.restart()

    def shown():
        return {n["metadata"]["name"]: a["address"] for n in vc.api.get("/api/v1/nodes")["items"]
                for a in n["status"].get("addresses", []) if a["type"] == "InternalIP"}

    nodes = eventually(lambda: len(shown()) == 2 and shown(), 60, "two addresses of nodes")
    for name, address in nodes.items():
        eventually(lambda name=name, address=address: addresses(port, name) == [address], 30, name)
    assert ask(port, "none-of-these").rcode() == dns.rcode.NXDOMAIN
    assert upstream.count(f"{next(iter(nodes))}.") == 0


def test_the_servers_own_service_is_kept(vc, port):
    path = services_of("kube-system") + "/kube-dns"
    made = eventually(lambda: vc.api.get(path), 30, "kube-dns")
    assert made["spec"]["clusterIP"] == ADDRESS
    assert {(p["name"], p["protocol"], p["port"]) for p in made["spec"]["ports"]} == {("dns", "UDP", 53), ("dns-tcp", "TCP", 53)}
    assert addresses(port, f"kube-dns.kube-system.svc.{DOMAIN}") == [ADDRESS]
    vc.api.delete(path)
    again = eventually(lambda: vc.api.get(path), 30, "kube-dns again")
    assert again["metadata"]["uid"] != made["metadata"]["uid"] and again["spec"]["clusterIP"] == ADDRESS
    assert not [o for o in vc.host_objects("/api/v1", "services")]


def test_names_follow_their_objects(vc, port):
    api = vc.api
    ip = api.post(services_of(), service("web", ports=[{"name": "http", "port": 80}], selector={"app": "web"}))["spec"]["clusterIP"]
    name = f"web.default.svc.{DOMAIN}"
    eventually(lambda: addresses(port, name) == [ip], 30, "its address")
    answer = ask(port, name)
    assert answer.flags & dns.flags.AA and answer.flags & dns.flags.RA and answer.answer[0].ttl == 5
    assert addresses(port, name.upper()) == [ip]
    assert texts(ask(port, f"_http._tcp.{name}", "SRV")) == [f"0 100 80 {name}."]
    reverse = ".".join(reversed(ip.split("."))) + ".in-addr.arpa"
    assert texts(ask(port, reverse, "PTR")) == [f"{name}."]
    api.delete(f"{services_of()}/web")
    gone = eventually(lambda: (lambda a: a if a.rcode() == dns.rcode.NXDOMAIN else pytest.fail("there"))(ask(port, name)), 30, "NXDOMAIN")
    assert gone.authority[0].name.to_text() == f"{DOMAIN}." and gone.authority[0].ttl == 5


def test_pods_of_a_stateful_set_have_names(vc, port):
    k = vc.kubectl
    vc.api.post(services_of(), service("db", clusterIP="None", selector={"app": "db"}, ports=[{"name": "pg", "port": 5432}]))
    k.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
             "spec": {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}},
                      "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod("x")["spec"]}}})
    k("rollout", "status", "statefulset/db", "--timeout=180s")
    ips = {p["metadata"]["name"]: p["status"]["podIP"] for p in k.items("pods")}
    name = f"db.default.svc.{DOMAIN}"
    eventually(lambda: addresses(port, name) == sorted(ips.values()), 30, "both addresses")
    for n, ip in ips.items():
        assert addresses(port, f"{n}.{name}") == [ip]
        assert addresses(port, f"{ip.replace('.', '-')}.default.pod.{DOMAIN}") == [ip]
    srv = ask(port, f"_pg._tcp.{name}", "SRV", use_edns=0)
    assert texts(srv) == [f"0 50 5432 db-0.{name}.", f"0 50 5432 db-1.{name}."]
    assert {r.to_text() for s in srv.additional for r in s} == set(ips.values())


def test_other_names_are_forwarded_and_kept(vc, port, upstream):
    assert addresses(port, "www.example.com") == ["192.0.2.1"]
    second = ask(port, "www.example.com")
    assert texts(second) == ["192.0.2.1"] and upstream.count("www.example.com.") == 1
    assert not second.flags & dns.flags.AA and second.answer[0].ttl <= 300
    none = ask(port, "none.example.com")
    assert none.rcode() == dns.rcode.NXDOMAIN and none.authority
    ask(port, "none.example.com")
    assert upstream.count("none.example.com.") == 1
    vc.api.post(services_of(), service("alias", type="ExternalName", externalName="www.example.com"))
    eventually(lambda: addresses(port, f"alias.default.svc.{DOMAIN}") == ["192.0.2.1", "www.example.com."], 30, "alias")
    assert addresses(port, "git.corp.example") == ["10.7.0.1"]


def test_a_long_answer_is_cut_and_whole_over_tcp(port, upstream, vc):
    plain = ask(port, "long.example.com")
    assert plain.flags & dns.flags.TC and 0 < len(texts(plain)) < len(LONG) and len(plain.to_wire()) <= 512
    wide = ask(port, "long.example.com", use_edns=0, payload=4096)
    assert wide.flags & dns.flags.TC and wide.edns == 0 and len(texts(plain)) < len(texts(wide)) < len(LONG)
    assert addresses(port, "long.example.com", tcp=True) == sorted(LONG)
    assert upstream.asked.count(("long.example.com.", "A", "tcp")) == 1


def test_names_of_the_host_stay_there(vc, port, upstream):
    for name in ("kubernetes.default.svc.cluster.local", "other.team.svc.cluster.local"):
        ask(port, name)
    assert ask(port, "1.0.96.10.in-addr.arpa", "PTR").rcode() == dns.rcode.NXDOMAIN
    assert not upstream.asked
    outside = ask(port, "host.example.com")  # an alias into the host's domain
    assert outside.rcode() == dns.rcode.NXDOMAIN and not outside.answer
    assert upstream.count("host.example.com.") == 1


def test_a_mapped_service_of_the_host_has_a_name(host, tenant, port, upstream):
    source = f"source-{port}"
    host.create_namespace(source)
    try:
        ip = host.api.post(f"/api/v1/namespaces/{source}/services", {"metadata": {"name": "db"}, "spec": {
            "ports": [{"name": "sql", "port": 5432}]}})["spec"]["clusterIP"]
        tenant("mapped", config={**options(port, upstream, clients=["127.0.0.0/8"]), "sync": {"fromHost": {"services": {
            "enabled": True, "mappings": {"byName": {f"{source}/db": "default/database"}}}}}})
        name = "database.default.svc.cluster.local"
        eventually(lambda: addresses(port, name) == [ip], 60, "its address")
        assert texts(ask(port, f"_sql._tcp.{name}", "SRV")) == [f"0 100 5432 {name}."]
        assert ask(port, f"db.{source}.svc.cluster.local").rcode() == dns.rcode.NXDOMAIN
    finally:
        host.delete_namespace(source)


def test_a_headless_service_of_the_host_has_addresses(host, tenant, port, upstream):
    source = f"source-{port}"
    host.create_namespace(source)
    try:
        host.api.post(f"/api/v1/namespaces/{source}/services", {"metadata": {"name": "db"}, "spec": {
            "clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]}})
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{source}/endpointslices"
        host.api.post(slices, {"metadata": {"name": "db-1", "labels": {"kubernetes.io/service-name": "db"}}, "addressType": "IPv4",
                               "endpoints": [{"addresses": ["10.1.2.3"], "hostname": "db-0"},
                                             {"addresses": ["10.1.2.4"]}, {"addresses": ["10.1.2.5"], "conditions": {"ready": False}}],
                               "ports": [{"name": "sql", "port": 5432}]})
        tenant("bare", config={**options(port, upstream, clients=["127.0.0.0/8"]), "sync": {"fromHost": {"services": {
            "enabled": True, "headless": True, "mappings": {"byName": {f"{source}/db": "default/database"}}}}}})
        name = "database.default.svc.cluster.local"
        eventually(lambda: sorted(addresses(port, name)) == ["10.1.2.3", "10.1.2.4"], 60, "those that are ready")
        assert ask(port, f"db-0.{name}").rcode() == dns.rcode.NXDOMAIN  # the host's names are its own
        host.api.patch(f"{slices}/db-1", {"endpoints": [{"addresses": ["10.1.2.9"]}]})
        eventually(lambda: addresses(port, name) == ["10.1.2.9"], 60, "the change")
    finally:
        host.delete_namespace(source)


def test_a_silent_resolver_is_an_error_and_not_a_wait_for_ever(vc, port, upstream):
    upstream.silent = True
    assert ask(port, "slow.example.com", timeout=30).rcode() == dns.rcode.SERVFAIL
    assert upstream.count("slow.example.com.") == 3
    upstream.silent = False
    assert addresses(port, "www.example.com") == ["192.0.2.1"]


def test_many_questions_share_a_connection(vc, port):
    query = [dns.message.make_query(f"n{i}.default.svc.{DOMAIN}", "A") for i in range(100)]
    with socket.create_connection(("127.0.0.1", port.number), timeout=30) as s:
        s.sendall(b"".join(len(w).to_bytes(2, "big") + w for w in (q.to_wire() for q in query)))
        read = s.makefile("rb")
        ids = set()
        for _ in query:
            wire = read.read(int.from_bytes(read.read(2), "big"))
            answer = dns.message.from_wire(wire)
            ids.add(answer.id)
            assert answer.rcode() == dns.rcode.NXDOMAIN
        assert ids == {q.id for q in query}
        s.sendall(b"\xff\xff")  # longer than any query
        assert read.read(1) == b""


def test_only_pods_of_the_tenant_are_answered(tenant, port, upstream):
    vc = tenant("closed", options(port, upstream))
    name = f"kube-dns.kube-system.svc.{DOMAIN}"
    eventually(lambda: vc.api.get(services_of("kube-system") + "/kube-dns"), 30, "kube-dns")
    with pytest.raises(dns.exception.Timeout):
        ask(port, name, timeout=1)
    with pytest.raises((EOFError, ConnectionError)):
        ask(port, name, tcp=True)
    vc.api.post("/api/v1/namespaces/default/pods", pod("asks", schedulingGates=[{"name": "example.com/wait"}]))
    answers = []

    def early():  # before the address of the pod is known
        answers.append(ask(port, name, source="127.0.0.9", timeout=10))

    thread = threading.Thread(target=early)
    thread.start()
    status = "/api/v1/namespaces/default/pods/asks/status"
    vc.api.patch(status, {"status": {"phase": "Running", "podIP": "127.0.0.9", "podIPs": [{"ip": "127.0.0.9"}]}})
    thread.join()
    assert answers[0].rcode() == dns.rcode.NOERROR
    assert ask(port, name, tcp=True, source="127.0.0.9").answer
    with pytest.raises(dns.exception.Timeout):
        ask(port, name, timeout=1)
    assert not upstream.asked
    vc.api.patch(status, {"status": {"phase": "Succeeded"}})

    def refused():
        with pytest.raises(dns.exception.Timeout):
            ask(port, name, timeout=1, source="127.0.0.9")
        return True

    eventually(refused, 30, "a pod that has ended is a stranger")


def test_one_pod_cannot_have_everything_forwarded(tenant, port, upstream):
    tenant("greedy", options(port, upstream, clients=["127.0.0.0/8"], forwardRate=5))
    codes = [ask(port, f"n{i}.example.com").rcode() for i in range(40)]
    assert codes.count(dns.rcode.NXDOMAIN) == len(upstream.asked) and codes.count(dns.rcode.SERVFAIL) >= 20


def test_bad_messages_are_refused_or_dropped(vc, port):
    good = dns.message.make_query(DOMAIN, "SOA", use_edns=0)

    def send(wire):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(1)
            s.sendto(wire, ("127.0.0.1", port.number))
            return dns.message.from_wire(s.recv(65535))

    assert send(good.to_wire()).answer
    assert send(good.to_wire()[:20]).rcode() == dns.rcode.FORMERR
    zone = dns.message.make_query(DOMAIN, "AXFR")
    assert send(zone.to_wire()).rcode() == dns.rcode.REFUSED
    assert send(dns.message.make_query(DOMAIN, "A", rdclass="CH").to_wire()).rcode() == dns.rcode.REFUSED
    update = bytearray(good.to_wire())
    update[2] |= 5 << 3
    assert send(bytes(update)).rcode() == dns.rcode.NOTIMP
    later = bytearray(good.to_wire())
    later[-5] = 1  # the version in OPT, which is last
    assert send(bytes(later)).rcode() == dns.rcode.BADVERS
    for wire in (b"", b"x", dns.message.make_response(good).to_wire()):
        with pytest.raises(TimeoutError):
            send(wire)


def test_dig_understands_it(vc, port):
    dig = shutil.which("dig")
    assert dig, "tests/setup installs dig"
    out = subprocess.run([dig, "@127.0.0.1", "-p", str(port), f"dns-version.{DOMAIN}", "TXT", "+dnssec"], check=True,
                         capture_output=True, text=True).stdout
    assert 'IN\tTXT\t"1.1.0"' in out and "status: NOERROR" in out and "EDNS: version: 0" in out and "WARNING: Message" not in out
