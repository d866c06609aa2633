# SPDX-License-Identifier: Apache-2.0
"""The page of `sublet fleet` against a real host: who may look, what is sent, and when it ends."""
import concurrent.futures
import json
import os
import ssl
import subprocess

import pytest

from testenv import eventually
from testenv.page import gpu_pod


def test_the_host_decides_who_may_look(host, page):
    page.fleet.start()
    seer, blind = page.account("seer", True), page.account("blind", False)

    status, headers, content = page.ask("/")
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8" and "/page.js" in content
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert [page.ask(p)[0] for p in ("/page.js", "/page.css", "/metrics", "/fleet", "/../etc/passwd")] == [200, 200, 404, 404, 404]

    of_the_server = host.api.create_service_account(page.namespace, "server")  # for another audience
    for path in ("/fleet/state", "/fleet/events"):
        for token, code, reason in ((None, 401, "Unauthorized"), (of_the_server, 401, "Unauthorized"), ("nonsense", 401, "Unauthorized"),
                                    (seer + "x", 401, "Unauthorized"), (blind, 403, "Forbidden")):
            for _ in range(2):  # the second verdict is a kept one
                status, headers, content = page.ask(path, token)
                told = json.loads(content)
                assert (status, told["kind"], told["reason"], told["code"]) == (code, "Status", reason, code), (path, content)
                assert ("www-authenticate" in headers) == (code == 401)
                assert "pools" not in content
    assert "/fleet/state" in json.loads(page.ask(token=blind)[2])["message"]
    assert [page.ask(token=seer, method=m)[0] for m in ("POST", "PUT", "DELETE", "OPTIONS")] == [405] * 4

    status, headers, content = page.ask(token=seer)
    assert status == 200 and headers["content-type"] == "application/json" and headers["cache-control"] == "no-store"
    state = json.loads(content)
    assert state["leader"] and state["observed"] and {p["name"] for p in state["pools"]} == {"a100", "shared"}
    assert page.ask(token=seer, method="HEAD")[2] == ""


def test_what_changes_is_sent(host, page, pools):
    """A pod that gets GPUs, its end, and a month that grows; a token that is withdrawn ends the stream."""
    seer = page.account("seer", True)
    page.fleet.start()
    events = page.events(seer)
    assert events.response.status == 200 and events.response.getheader("content-type") == "text/event-stream"

    def held(state):
        return [(h["pool"], float(h["held"]), h["pods"]) for h in state["holders"] if h["tenant"] == page.namespace]
    assert held(events.until(lambda s: s["observed"], "the first state")) == []
    path = f"/api/v1/namespaces/{page.namespace}/pods"
    host.api.post(path, gpu_pod(pools["pools"][0], "one", 2))
    state = events.until(held, "the pod's GPUs")
    assert held(state) == [("a100", 2.0, 1)]
    pool = next(p for p in state["pools"] if p["name"] == "a100")
    assert float(pool["held"]) >= 2
    assert sum(float(pool[k]) for k in ("held", "idle", "unhealthy")) == float(pool["capacity"])
    host.api.delete(f"{path}/one", gracePeriodSeconds=0)
    events.until(lambda s: not held(s), "the pod's end")
    events.until(lambda s: "lines" in s["month"], "the month to date")

    # Whoever may no longer look is shown no more, within the time of a review.
    binding = next(p for p in page.made if p.endswith(f"/{page.namespace}-seer"))
    host.api.delete(binding)
    page.made.remove(binding)
    event = "state"
    while event in ("state", "seen"):
        event, data = events.next()
    assert event == "refused" and json.loads(data)["reason"] == "Forbidden", (event, data)
    assert events.response.read() == b""


def test_a_host_without_a_verdict_is_no_permission(host, page):
    """Without the right to review, or without a host, nothing is shown."""
    seer = page.account("seer", True)
    page.fleet.start()
    role = next(p for p in page.made if p.endswith(f"/clusterroles/{page.namespace}-fleet"))
    rules = host.api.get(role)
    rules["rules"] = [r for r in rules["rules"] if r["resources"] != ["tokenreviews"]]
    host.api.put(role, rules)

    def refused():
        status, _, content = page.ask(token=seer)
        return content if status == 503 else None
    content = eventually(refused, 60, "the reviews to be refused")
    assert json.loads(content)["message"] == "the host gives no verdict on the token"
    assert "tokenreviews" in page.fleet.process.tail(), "the reason is in the log alone"


def test_tokens_that_are_none_are_a_bounded_load(host, page):
    """Of many unknown tokens few are reviewed; a viewer that was permitted goes on."""
    seer = page.account("seer", True)
    page.fleet.start()
    assert page.ask(token=seer)[0] == 200
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        codes = list(pool.map(lambda i: page.ask(token=f"none-{i}")[0], range(300)))
    assert set(codes) == {401, 429}, codes
    assert page.ask(token=seer)[0] == 200, "its verdict is kept"
    eventually(lambda: page.ask(token="another")[0] == 401, 30, "reviews to go on")


def certificate(directory, name):
    """A certificate and its key for 127.0.0.1, signed by itself."""
    crt, key = os.path.join(directory, f"{name}.crt"), os.path.join(directory, f"{name}.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-keyout", key, "-out", crt, "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    return crt, key


class Mounted:
    """A mounted Secret with one of two certificates; replace() is what a kubelet does: it renames a link to a directory."""

    def __init__(self, directory):
        self.dir, self.mount = directory, directory / "mount"
        for name in ("first", "second"):
            crt, key = certificate(directory, name)
            os.mkdir(directory / f"..{name}")
            os.rename(crt, self.certificate(name))
            os.rename(key, directory / f"..{name}" / "tls.key")
        os.mkdir(self.mount)
        os.symlink(directory / "..first", self.mount / "..data")
        for file in ("tls.crt", "tls.key"):
            os.symlink(os.path.join("..data", file), self.mount / file)
        self.files = [str(self.mount / "tls.crt"), str(self.mount / "tls.key")]

    def certificate(self, name):
        return str(self.dir / f"..{name}" / "tls.crt")

    def replace(self):
        os.symlink(self.dir / "..second", self.mount / "..next")
        os.rename(self.mount / "..next", self.mount / "..data")


def test_a_certificate_is_replaced(page, tmp_path):
    secret = Mounted(tmp_path)

    def trusts(name):
        context = ssl.create_default_context(cafile=secret.certificate(name))
        try:
            return page.ask("/", tls=context)[0] == 200
        except ssl.SSLCertVerificationError:
            return False
    page.fleet.process.argv[-2:] = ["--page", "127.0.0.1:0", "--page-cert", secret.files[0], "--page-key", secret.files[1]]
    page.fleet.start()
    assert trusts("first") and not trusts("second")
    secret.replace()
    eventually(lambda: trusts("second"), 30, "the new certificate")
    assert not trusts("first")


def test_metrics_are_encrypted(page, tmp_path):
    """As the page is: curl that trusts one certificate reads them, with the token, until another one is mounted."""
    secret, token = Mounted(tmp_path), tmp_path / "token"
    token.write_text("scrape-token\n")

    def curl(name, *args, scheme="https"):
        r = subprocess.run(["curl", "--silent", "--show-error", "--noproxy", "*", "--cacert", secret.certificate(name),
                            "--write-out", "%{http_code}", *args, f"{scheme}://127.0.0.1:{page.fleet.port('metrics')}/metrics"],
                           text=True, capture_output=True, timeout=60, check=False)
        return r.returncode, r.stdout

    def reads(name):
        code, out = curl(name, "--header", "Authorization: Bearer scrape-token")
        assert code in (0, 60), (code, out)  # 60: it does not trust the certificate
        return code == 0 and out.endswith("200") and "sublet_fleet_leader 1" in out
    page.fleet.process.argv[-2:] = ["--listen", "127.0.0.1:0", "--token-file", str(token), "--listen-cert", secret.files[0],
                                    "--listen-key", secret.files[1]]
    page.fleet.start()
    assert reads("first") and not reads("second")
    assert curl("first") == (0, "a bearer token is needed\n401")
    assert curl("first", scheme="http")[0] != 0, "nothing is served in plain text"
    secret.replace()
    eventually(lambda: reads("second"), 30, "the new certificate")
    assert not reads("first")


@pytest.mark.parametrize("args, message", [
    (("--page", "0.0.0.0:0"), "a certificate is needed, except on a loopback address"),
    (("--listen", "127.0.0.1:0", "--listen-cert", "/nowhere"), "--listen-cert and --listen-key belong together"),
    (("--listen", "127.0.0.1:0", "--listen-cert", "/nowhere", "--listen-key", "/nowhere"), "cannot open /nowhere"),
    (("--listen", "127.0.0.1:0", "--listen-cert", "", "--listen-key", ""), "--listen-cert is empty: it names a file"),
    (("--listen-cert", "/nowhere", "--listen-key", "/nowhere"), "--listen-cert is given without --listen"),
    (("--page", "127.0.0.1:0", "--page-cert", "/nowhere"), "--page-cert and --page-key belong together"),
    (("--page", "127.0.0.1:0", "--page-cert", "/nowhere", "--page-key", "/nowhere"), "cannot open /nowhere"),
])
def test_what_it_does_not_serve(page, args, message):
    page.fleet.process.argv[-2:] = args
    page.fleet.start(wait=False)
    assert page.fleet.process.wait(60) in (1, 2)
    assert message in page.fleet.process.tail()
