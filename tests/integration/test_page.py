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


def test_a_certificate_is_replaced(page, tmp_path):
    """As a Secret's files are: by renaming a link to a directory."""
    for name in ("first", "second"):
        crt, key = certificate(tmp_path, name)
        os.mkdir(tmp_path / f"..{name}")
        os.rename(crt, tmp_path / f"..{name}" / "tls.crt")
        os.rename(key, tmp_path / f"..{name}" / "tls.key")
    mount = tmp_path / "mount"
    os.mkdir(mount)
    os.symlink(tmp_path / "..first", mount / "..data")
    for file in ("tls.crt", "tls.key"):
        os.symlink(os.path.join("..data", file), mount / file)

    def trusts(name):
        context = ssl.create_default_context(cafile=str(tmp_path / f"..{name}" / "tls.crt"))
        try:
            return page.ask("/", tls=context)[0] == 200
        except ssl.SSLCertVerificationError:
            return False
    page.fleet.process.argv[-2:] = ["--page", "127.0.0.1:0", "--page-cert", str(mount / "tls.crt"), "--page-key", str(mount / "tls.key")]
    page.fleet.start()
    assert trusts("first") and not trusts("second")
    os.symlink(tmp_path / "..second", mount / "..next")
    os.rename(mount / "..next", mount / "..data")
    eventually(lambda: trusts("second"), 30, "the new certificate")
    assert not trusts("first")


@pytest.mark.parametrize("args, message", [
    (("--page", "0.0.0.0:0"), "a certificate is needed, except on a loopback address"),
    (("--page", "127.0.0.1:0", "--page-cert", "/nowhere"), "--page-cert and --page-key belong together"),
    (("--page", "127.0.0.1:0", "--page-cert", "/nowhere", "--page-key", "/nowhere"), "cannot open /nowhere"),
])
def test_what_it_does_not_serve(page, args, message):
    page.fleet.process.argv[-2:] = args
    page.fleet.start(wait=False)
    assert page.fleet.process.wait(60) in (1, 2)
    assert message in page.fleet.process.tail()
