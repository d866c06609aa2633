# SPDX-License-Identifier: Apache-2.0
"""A budget on a real host: a tenant's own process, a fleet with prices, and what follows once the month has cost as much."""
import datetime
import json
import time
from fractions import Fraction

from testenv import eventually

from test_grants import bindings_of, condition, described, grants, namespace, ready_of  # noqa: F401 - fixtures
from test_pools import workload
from test_tenant import pod


def priced(grants, pools, price):  # noqa: F811
    grants.fleet.write_config(pools=[dict(p, metering={"price": price, "currency": "USD"}) for p in pools["pools"]])


def reported(grants, tenant):  # noqa: F811
    """What `sublet report` says that the tenant's pods cost this month."""
    lines = [x for x in grants.fleet.report("tenant,pool,month")["lines"] if x.get("tenant") == tenant and x.get("pool") == "a100"]
    return Fraction(lines[-1]["costExact"]) if lines else Fraction(0)


def is_running(grants, tenant):  # noqa: F811
    """Does the ledger say that some of its pods have not ended?"""
    return any(x.get("tenant") == tenant and x.get("reason") == "Running" for x in grants.fleet.report("tenant,pool,reason")["lines"])


def test_a_budget_that_is_spent(host, grants, tenant, pools):  # noqa: F811
    """What is borrowed is taken back and the guarantee stays; a raised budget lifts it; a stop refuses, and ends nothing."""
    vc = tenant("spender", config={"fleet": {"bindings": True}}, on=host)
    path, k = f"{bindings_of(vc.namespace)}/a100", vc.kubectl
    priced(grants, pools, "3600")  # one USD for a GPU and a second
    grants.bind(vc.namespace, guarantee="2", burst="6", default=True)
    grants.fleet.start()
    grants.until(vc.namespace, grant="8")
    k.apply(workload("Deployment", "work", replicas=5))
    eventually(lambda: ready_of(vc) == 5, 120, "its pods to run")
    assert "budget" not in grants.status(vc.namespace)

    host.api.patch(path, {"spec": {"budget": {"amount": "1.00", "enforcement": "Queue"}}})
    status = eventually(lambda: (s := grants.status(vc.namespace)).get("budget", {}).get("percent", 0) >= 100 and s, 60, "the cost")
    assert Fraction("1.00") <= Fraction(status["budget"]["spent"]) <= reported(grants, vc.namespace)
    exceeded = condition(host.api.get(path), "BudgetExceeded")
    assert exceeded["status"] == "True" and exceeded["message"].startswith("the budget of 1.00 USD for 20"), exceeded
    grants.until(vc.namespace, grant="2")
    eventually(lambda: ready_of(vc) == 2, 120, "what is borrowed to end")
    eventually(lambda: grants.quota(vc.namespace) == 2, 60, "its bound")
    eventually(lambda: any(r == "BudgetExceeded" for _, r, _ in described(host, vc.namespace, "gpubinding", "a100")), 60, "the Event")
    mine = eventually(lambda: k.json("get", "gpuusage", "a100")["status"].get("budget"), 60, "the tenant's own view")
    assert (mine["amount"], mine["currency"], mine["enforcement"]) == ("1.00", "USD", "Queue") and mine["percent"] >= 100
    labels = frozenset({("currency", "USD"), ("pool", "a100"), ("tenant", vc.namespace)})
    metrics = grants.fleet.metrics()
    assert metrics["sublet_fleet_budget_ratio"][labels] >= 1 and metrics["sublet_fleet_budget_threshold_percent"][labels] == 100
    assert metrics["sublet_fleet_budget_spent_micros"][labels] >= metrics["sublet_fleet_budget_amount_micros"][labels] == 1000000

    grants.fleet.kill()  # one that starts has the status to go by until it has read the ledger
    grants.fleet.start()
    grants.until(vc.namespace, grant="2")
    host.api.patch(path, {"spec": {"budget": {"amount": "1000000000"}}})
    grants.until(vc.namespace, grant="8")
    eventually(lambda: ready_of(vc) == 5, 120, "all of its pods to run again")

    host.api.patch(path, {"spec": {"budget": {"amount": "1.00", "enforcement": "Stop"}}})
    grants.until(vc.namespace, grant="5")
    unavailable = eventually(lambda: k.json("get", "gpuusage", "a100")["status"].get("unavailable"), 60, "what the tenant is told")
    assert 'pool "a100" takes no new pods: the budget of 1.00 USD for 20' in unavailable
    refusal = k.fails("create", "-f", "-", stdin=json.dumps(pod("more", 1)))
    assert "PoolUnavailable" in refusal and "the budget of 1.00 USD for 20" in refusal, refusal
    assert ready_of(vc) == 5 and "reclaim" not in grants.status(vc.namespace)


def left_of_month():
    """Seconds."""
    now = datetime.datetime.now(datetime.timezone.utc)
    following = (now.replace(day=1) + datetime.timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Fraction((following - now).total_seconds())


def test_a_budget_that_will_be_spent(host, grants, tenant, pools):  # noqa: F811
    """What the month will have cost is said before it did: spent, and the rate of what is on record of a day until its end."""
    vc = tenant("planner", config={"fleet": {"bindings": True}}, on=host)
    path, k = f"{bindings_of(vc.namespace)}/a100", vc.kubectl
    priced(grants, pools, "3600")
    grants.bind(vc.namespace, guarantee="2", default=True)
    grants.fleet.start()
    grants.until(vc.namespace, grant="2")
    grants.fleet.stop()
    began = time.time() - 7200
    grants.fleet.began_earlier(7200)
    grants.fleet.start()
    k.apply(workload("Deployment", "work", replicas=2))
    eventually(lambda: ready_of(vc) == 2, 120, "its pods to run")
    eventually(lambda: reported(grants, vc.namespace) > 1, 60, "their cost")
    k("delete", "deployment", "work")
    eventually(lambda: not is_running(grants, vc.namespace), 60, "its pods to end")
    spent = reported(grants, vc.namespace)

    def is_forecast(status, reason):
        is_so = condition(host.api.get(path), "BudgetForecastExceeded")
        return (is_so["status"], is_so["reason"]) == (status, reason) and is_so
    most = left_of_month()
    host.api.patch(path, {"spec": {"budget": {"amount": "1000000000"}}})
    status = eventually(lambda: (b := grants.status(vc.namespace).get("budget", {})).get("forecast") and b, 120, "the forecast")
    forecast, elapsed = Fraction(status["forecast"]), Fraction(time.time() - began) + 60
    assert abs(Fraction(status["spent"]) - spent) < Fraction(1, 1000000), status
    assert spent * (1 + left_of_month() / elapsed) < forecast < spent * (1 + most / 7140), (spent, status)
    assert is_forecast("False", "ForecastWithinBudget")

    amount = f"{float((spent + forecast) / 2):.6f}"
    host.api.patch(path, {"spec": {"budget": {"amount": amount}}})
    exceeds = eventually(lambda: is_forecast("True", "ForecastBeyondBudget"), 60, "the condition")
    assert exceeds["message"].startswith("at the rate of the last 24 hours the month costs more than the budget of "), exceeds
    assert condition(host.api.get(path), "BudgetExceeded")["status"] == "False" and grants.status(vc.namespace)["grant"] == "2"
    eventually(lambda: any(r == "ForecastBeyondBudget" for _, r, _ in described(host, vc.namespace, "gpubinding", "a100")), 60, "the Event")
    mine = eventually(lambda: (b := k.json("get", "gpuusage", "a100")["status"].get("budget", {})).get("amount") == amount.rstrip("0") and b,
                      60, "the tenant's own view")
    assert Fraction(mine["forecast"]) > Fraction(mine["amount"]) > Fraction(mine["spent"])
    labels = frozenset({("currency", "USD"), ("pool", "a100"), ("tenant", vc.namespace)})
    metrics = grants.fleet.metrics()
    assert metrics["sublet_fleet_budget_forecast_micros"][labels] > metrics["sublet_fleet_budget_amount_micros"][labels]

    grants.fleet.kill()  # one that starts goes on from the status
    grants.fleet.start()
    assert is_forecast("True", "ForecastBeyondBudget")
    host.api.patch(path, {"spec": {"budget": {"amount": "1000000000"}}})
    eventually(lambda: is_forecast("False", "ForecastWithinBudget"), 60, "a budget that suffices")


def test_the_price_is_that_of_the_fleet(host, grants, tenant, pools):  # noqa: F811
    """A tenant's dry run has the price by which the ledger bills, whatever the GPUPool says, and knows what is borrowed."""
    vc = tenant("buyer", config={"fleet": {"bindings": True}}, on=host)
    metering = {"price": "2.50", "currency": "USD", "per": "GPUHour", "borrowFactor": "0.80"}
    grants.fleet.write_config(pools=[dict(p, metering=metering) for p in pools["pools"]])
    grants.bind(vc.namespace, guarantee="2", burst="6", default=True)
    grants.fleet.start()
    grants.until(vc.namespace, grant="8")
    assert grants.status(vc.namespace)["pool"]["metering"] == dict(metering, price="2.5", borrowFactor="0.8")

    def says(gpus):
        _, _, err = vc.kubectl.run("create", "-f", "-", "--dry-run=server", stdin=json.dumps(pod(f"p{gpus}", gpus)))
        return [line for line in err.splitlines() if " per hour" in line]
    within = 'Warning: pool "a100": 2 GPU cost 5.00 USD per hour'
    eventually(lambda: says(2) == [within], 60, "the price to reach the tenant")
    assert says(3) == ['Warning: pool "a100": 3 GPU cost 7.00 USD per hour (1 GPU beyond the guarantee, each 2.00)']
    vc.kubectl.apply(pod("holds", 2))
    assert says(1) == ['Warning: pool "a100": 1 GPU costs 2.00 USD per hour (1 GPU beyond the guarantee, each 2.00)']


def test_a_misspelt_currency_takes_no_guarantee(host, grants, namespace, pools):  # noqa: F811
    """Of an edit the budget alone is refused: the grant stays, the budget before it is in force, and an Event says so."""
    path = f"{bindings_of(namespace)}/a100"
    priced(grants, pools, "2.50")
    grants.bind(namespace, guarantee="4", budget={"amount": "100.00", "currency": "USD", "warnAt": [30, 90]})
    grants.fleet.start()
    grants.until(namespace, grant="4")
    host.api.patch(path, {"spec": {"guarantee": "5", "budget": {"amount": "200.00", "currency": "UDS"}}})
    grants.until(namespace, grant="5")
    made = host.api.get(path)
    assert condition(made, "Ready")["status"] == "True" and made["status"]["budget"]["amount"] == "100.00", made["status"]
    assert made["status"]["budget"]["warnAt"] == [30, 90], made["status"]["budget"]
    refused = condition(made, "BudgetAccepted")
    assert (refused["status"], refused["reason"]) == ("False", "BudgetRefused"), refused
    assert 'budget.currency is "UDS", but pool "a100" costs USD' in refused["message"], refused
    eventually(lambda: any(r == "BudgetRefused" for _, r, _ in described(host, namespace, "gpubinding", "a100")), 60, "the Event")
    host.api.patch(path, {"spec": {"budget": {"currency": "USD"}}})
    eventually(lambda: grants.status(namespace)["budget"]["amount"] == "200.00", 60, "the budget of the edit")
    assert condition(host.api.get(path), "BudgetAccepted")["status"] == "True"


def test_without_prices_a_budget_is_refused(host, grants, namespace):  # noqa: F811
    grants.bind(namespace, guarantee="2", budget={"amount": "1.00"})
    grants.fleet.start()
    eventually(lambda: grants.status(namespace).get("conditions"), 60, "its conditions")
    ready = condition(host.api.get(f"{bindings_of(namespace)}/a100"), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Invalid") and "no metering" in ready["message"], ready
