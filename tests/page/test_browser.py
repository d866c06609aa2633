# SPDX-License-Identifier: Apache-2.0
"""The page of `sublet fleet` in a real Chromium: what a person sees, live, and when it is not.

SUBLET_SCREENSHOTS names a directory for pictures of each state.
"""
import os

import pytest
from selenium.webdriver.common.by import By

from testenv import eventually
from testenv.page import gpu_pod


class Seen:
    """What the browser shows now."""

    def __init__(self, browser, page):
        self.browser = browser
        self.url = f"http://127.0.0.1:{page.fleet.port('page')}/"

    def open(self):
        self.browser.get(self.url)
        return self

    def text(self, what):
        return self.browser.find_element(By.ID, what).text

    def shown(self, what):
        return self.browser.find_element(By.ID, what).is_displayed()

    def rows(self, table):
        """The cells of each row, as strings."""
        return self.browser.execute_script(
            "return [...document.getElementById(arguments[0]).tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))", table)

    def bars(self, row, table="pools"):
        """{class: width in pixels} of the bar of the row of a pool, or of a tenant."""
        return self.browser.execute_script(
            "const r = [...document.getElementById(arguments[1]).tBodies[0].rows].find(r => r.cells[0].textContent === arguments[0]);"
            "return Object.fromEntries([...r.querySelectorAll('.bar div')].map(d => [d.className, d.getBoundingClientRect().width]))",
            row, table)

    def log_in(self, token):
        self.browser.find_element(By.ID, "token").send_keys(token + "\n")

    def picture(self, name):
        directory = os.environ.get("SUBLET_SCREENSHOTS")
        if directory:
            os.makedirs(directory, exist_ok=True)
            self.browser.save_screenshot(os.path.join(directory, f"{name}.png"))

    def errors(self):
        """What the browser complained of, but for answers that the test provoked."""
        return [e for e in self.browser.get_log("browser") if "Failed to load resource" not in e["message"]
                and "favicon" not in e["message"]]


def test_a_person_looks(host, page, pools, browser):
    page.fleet.start()
    seer, blind = page.account("seer", True), page.account("blind", False)
    seen = Seen(browser, page).open()

    eventually(lambda: seen.shown("login"), 30, "the question for a token")
    assert "A token is needed." == seen.text("status") and not seen.shown("state")
    seen.picture("1-login")
    for token, words in (("nonsense", "does not know the token"), (blind, "may not get the path /fleet/state")):
        seen.log_in(token)
        eventually(lambda: words in seen.text("status"), 30, words)
        assert seen.shown("login") and not seen.shown("state")
    seen.picture("2-refused")

    seen.log_in(seer)
    eventually(lambda: seen.shown("state"), 30, "the state")
    assert seen.text("status").startswith("Live.") and not seen.shown("login")
    assert [r[0] for r in seen.rows("pools")] == ["a100", "shared"]
    before = seen.bars("a100")
    assert before["idle"] > 0 and "guaranteed" not in before

    # A pod that starts is seen without a reload; the bar is as long as its GPUs are of the capacity.
    path = f"/api/v1/namespaces/{page.namespace}/pods"
    host.api.post(path, gpu_pod(pools["pools"][0], "one", 4))
    eventually(lambda: [r for r in seen.rows("tenants") if r[0] == page.namespace and r[3] == "4"], 30, "the tenant's row")
    bars = seen.bars("a100")
    assert abs(bars["guaranteed"] / sum(bars.values()) - 4 / 16) < 0.01, bars
    eventually(lambda: any(r[0] == page.namespace for r in seen.rows("month")), 120, "its month")
    seen.picture("3-live")

    # A machine whose GPUs fail, and one that is lost.
    nodes = [n["metadata"]["name"] for n in host.api.get("/api/v1/nodes")["items"] if "a100" in n["metadata"]["name"]]
    before = host.api.get(f"/api/v1/nodes/{nodes[0]}")["status"]["allocatable"]["nvidia.com/gpu"]
    host.api.patch(f"/api/v1/nodes/{nodes[0]}/status", {"status": {"allocatable": {"nvidia.com/gpu": str(int(before) - 1)}}})
    try:
        eventually(lambda: seen.rows("faults")[0][:3] == [nodes[0], "a100", "1"], 60, "the fault")
        assert seen.bars("a100")["unhealthy"] > 0
        seen.picture("4-fault")
    finally:
        host.api.patch(f"/api/v1/nodes/{nodes[0]}/status", {"status": {"allocatable": {"nvidia.com/gpu": before}}})
    eventually(lambda: seen.rows("faults") == [["All GPUs are healthy."]], 60, "its end")

    # A process that ends is no silence: the page says that it is old, and goes on by itself.
    port = page.fleet.port("page")
    page.fleet.process.argv[page.fleet.process.argv.index("127.0.0.1:0")] = f"127.0.0.1:{port}"
    page.fleet.stop()
    eventually(lambda: "Not live" in seen.text("status"), 60, "the word that it is old")
    assert seen.shown("state")
    seen.picture("5-not-live")
    page.fleet.start()
    eventually(lambda: seen.text("status").startswith("Live."), 60, "the page to go on")
    host.api.delete(f"{path}/one", gracePeriodSeconds=0)
    eventually(lambda: not [r for r in seen.rows("tenants") if r[0] == page.namespace], 60, "the pod's end")

    # A reload forgets the token; nothing was refused by the page's own policy.
    seen.open()
    eventually(lambda: seen.text("status") == "A token is needed.", 30, "the question for a token")
    assert not seen.shown("state") and page.namespace not in browser.page_source
    assert seen.errors() == [], seen.errors()


GROUP = "/apis/sublet.dev/v1alpha1"


@pytest.mark.parametrize("page", [{"config": {"pools": [{"name": "any"}], "grants": {"enabled": True}}}], indirect=True)
def test_budgets(host, gpu_crds, page, pools, browser):
    """What is spent, what will be by the month's end, and the budget, as a bar and as words that follow the binding."""
    pool = {k: v for k, v in pools["pools"][0].items() if k != "name"}
    page.create(f"{GROUP}/gpupools", {"apiVersion": "sublet.dev/v1alpha1", "kind": "GPUPool", "metadata": {"name": "a100"}, "spec": pool})
    bindings = f"{GROUP}/namespaces/{page.namespace}/gpubindings"
    page.create(bindings, {"apiVersion": "sublet.dev/v1alpha1", "kind": "GPUBinding", "metadata": {"name": "a100"},
                           "spec": {"pool": "a100", "guarantee": "8"}})
    page.fleet.write_config(pools=[dict(p, metering={"price": "3600", "currency": "USD"}) for p in pools["pools"]],
                            grants={"enabled": True})
    page.fleet.start()
    page.fleet.stop()
    page.fleet.began_earlier(7200)
    page.fleet.start()
    eventually(lambda: host.api.get(f"{bindings}/a100").get("status", {}).get("grant") == "8", 60, "its grant")
    path = f"/api/v1/namespaces/{page.namespace}/pods"
    host.api.post(path, gpu_pod(pools["pools"][0], "one", 4))
    eventually(lambda: host.api.get(f"{path}/one")["spec"].get("nodeName"), 60, "its node")
    seen = Seen(browser, page).open()
    eventually(lambda: seen.shown("login"), 30, "the question for a token")
    seen.log_in(page.account("seer", True))
    eventually(lambda: [r for r in seen.rows("tenants") if r[0] == page.namespace and r[3] == "4"], 30, "the tenant's row")
    assert not seen.shown("planned"), "no binding has a budget"
    eventually(lambda: any(float(x["cost"]) > 4 for x in page.fleet.report("tenant,pool")["lines"] if x.get("tenant") == page.namespace),
               60, "its cost")
    host.api.delete(f"{path}/one", gracePeriodSeconds=0)
    eventually(lambda: [r for r in seen.rows("tenants") if r[0] == page.namespace and r[3] == "0"], 30, "the pod's end")

    def budget(amount, good, what):
        host.api.patch(f"{bindings}/a100", {"spec": {"budget": {"amount": amount}}})
        row = eventually(lambda: next((r for r in seen.rows("budgets") if r[0] == page.namespace and good(r)), None), 120, what)
        assert row[1] == "a100" and seen.shown("planned")
        return row, seen.bars(page.namespace, "budgets")
    row, bars = budget("1000000000", lambda r: r[4] and float(r[3]) > 4, "the forecast")
    assert row[5:] == ["1000000000.00 USD", "0%", ""] and bars["idle"] > 0 and "beyond" not in bars, (row, bars)
    spent, forecast = (float(r) for r in row[3:5])
    assert 0 < spent < forecast
    row, bars = budget(f"{(spent + forecast) / 2:.6f}", lambda r: r[7], "a budget that will not do")
    assert row[7] == "will be exceeded at this rate" and row[6] != "100%", row
    whole = sum(bars.values())
    assert set(bars) == {"guaranteed", "forecast", "beyond"} and abs(bars["guaranteed"] / whole - spent / forecast) < 0.02, (row, bars)
    seen.picture("6-budget")
    row, bars = budget(f"{spent / 2:.6f}", lambda r: r[7] == "spent", "a budget that is spent")
    assert set(bars) == {"guaranteed", "unhealthy", "beyond"} and int(row[6][:-1]) >= 199, (row, bars)
    seen.picture("7-spent")
    assert seen.errors() == [], seen.errors()
