# SPDX-License-Identifier: Apache-2.0
"""Each alert of the charts fires for what it is about, and for nothing else: promtool evaluates the charts' own files."""
import re

import pytest
import yaml

from testenv.prometheus import chart_rules, promtool

OURS = 'job="research",namespace="control"'
# Of each alert: series that let it fire, the labels it has then, and series beside which it is silent. promtool's notation:
# "1x9000" is a sample each minute, "_" none.
ALERTS = {
    "SubletNotScraped": ({}, {"job": "research", "namespace": "control"}, {f"sublet_store_revision{{{OURS}}}": "7x9000"}),
    "SubletWarning": ({f'sublet_notices{{{OURS},topic="disk",reason="DiskFull"}}': "1x9000"},
                      {"job": "research", "namespace": "control", "topic": "disk", "reason": "DiskFull"},
                      {f'sublet_notices{{{OURS},topic="disk",reason="DiskFull"}}': "0x9000",
                       'sublet_notices{job="other",namespace="control",topic="disk",reason="DiskFull"}': "1x9000"}),
    "SubletCertificateExpires": (
        {f'sublet_certificate_expiration_timestamp_seconds{{{OURS},certificate="ca"}}': "600000x9000"},
        {"job": "research", "namespace": "control", "certificate": "ca"},
        {f'sublet_certificate_expiration_timestamp_seconds{{{OURS},certificate="ca"}}': "9000000x9000"}),
    "SubletFleetNotObserving": ({"sublet_fleet_leader": "0x9000"}, {}, {"sublet_fleet_leader": "1x9000"}),
    "SubletFleetBehind": ({"sublet_fleet_leader": "1x9000", "sublet_fleet_unseen_seconds": "61x9000"}, {},
                          {"sublet_fleet_leader": "1x9000", "sublet_fleet_unseen_seconds": "60x9000"}),
    "SubletFleetLedgerNotWritten": ({"sublet_fleet_ledger_trouble": "1x9000"}, {}, {"sublet_fleet_ledger_trouble": "0x9000"}),
    "SubletFleetLedgerFull": ({"sublet_fleet_ledger_full": "1x9000"}, {}, {"sublet_fleet_ledger_full": "0x9000"}),
    "SubletFleetCountersStale": (  # the first sample is at second 0
        {"sublet_fleet_leader": "1x9000", "sublet_fleet_gpu_counted_timestamp_seconds": "-3601x9000"}, {},
        {"sublet_fleet_leader": "1x9000", "sublet_fleet_gpu_counted_timestamp_seconds": "0+60x9000"}),
    "SubletFleetUnhealthyGPUs": ({'sublet_fleet_unhealthy_gpus{pool="a"}': "2x9000", 'sublet_fleet_unhealthy_gpus{pool="b"}': "0x9000"},
                                 {"pool": "a"}, {'sublet_fleet_unhealthy_gpus{pool="a"}': "0x9000"}),
    "SubletFleetNodesNotHealthy": ({'sublet_fleet_nodes{pool="a",state="not-ready"}': "1x9000"}, {"pool": "a", "state": "not-ready"},
                                   {'sublet_fleet_nodes{pool="a",state="any"}': "4x9000",
                                    'sublet_fleet_nodes{pool="a",state="unhealthy"}': "0x9000"}),
    # An empty label is none.
    "SubletFleetNodesOpen": ({'sublet_fleet_nodes{pool="",state="unmatched"}': "1x9000"}, {"state": "unmatched"},
                             {'sublet_fleet_nodes{pool="",state="cordoned"}': "1x9000"}),
    "SubletFleetMaintenanceOverdue": ({'sublet_fleet_pool_unavailable{pool="a",state="overdue"}': "1x9000"}, {"pool": "a"},
                                      {'sublet_fleet_pool_unavailable{pool="a",state="draining"}': "1x9000"}),
    "SubletFleetPoolCondition": (
        {'sublet_fleet_pool_condition{condition="Fenced",pool="a",status="false"}': "1x9000",
         'sublet_fleet_pool_condition{condition="Overcommitted",pool="a",status="false"}': "1x9000"}, {"condition": "Fenced", "pool": "a"},
        {'sublet_fleet_pool_condition{condition="Ready",pool="a",status="false"}': "0x9000",
         'sublet_fleet_pool_condition{condition="Ready",pool="a",status="true"}': "1x9000"}),
    "SubletFleetWritesRefused": ({'sublet_fleet_refused_writes{kind="ResourceQuota"}': "1x9000", 'sublet_fleet_refused_writes{kind="Queue"}': "0x9000"},
                                 {"kind": "ResourceQuota"}, {'sublet_fleet_refused_writes{kind="ResourceQuota"}': "0x9000"}),
    "SubletFleetBudgetThreshold": (
        {'sublet_fleet_budget_threshold_percent{currency="USD",pool="a",tenant="t"}': "80x9000",
         'sublet_fleet_budget_ratio{currency="USD",pool="a",tenant="t"}': "0.9x9000"}, {"pool": "a", "tenant": "t"},
        {'sublet_fleet_budget_threshold_percent{currency="USD",pool="a",tenant="t"}': "0x9000",
         'sublet_fleet_budget_threshold_percent{currency="USD",pool="b",tenant="t"}': "100x9000",
         'sublet_fleet_budget_ratio{currency="USD",pool="b",tenant="t"}': "1x9000"}),
    "SubletFleetBudgetForecast": (
        {'sublet_fleet_budget_forecast_micros{currency="USD",pool="a",tenant="t"}': "21x9000",
         'sublet_fleet_budget_amount_micros{currency="USD",pool="a",tenant="t"}': "20x9000",
         'sublet_fleet_budget_ratio{currency="USD",pool="a",tenant="t"}': "0.5x9000"}, {"pool": "a", "tenant": "t"},
        {'sublet_fleet_budget_forecast_micros{currency="USD",pool="a",tenant="t"}': "20x9000",
         'sublet_fleet_budget_amount_micros{currency="USD",pool="a",tenant="t"}': "20x9000",
         'sublet_fleet_budget_forecast_micros{currency="USD",pool="b",tenant="t"}': "21x9000",
         'sublet_fleet_budget_amount_micros{currency="USD",pool="b",tenant="t"}': "20x9000",
         'sublet_fleet_budget_ratio{currency="USD",pool="b",tenant="t"}': "1x9000"}),
    "SubletFleetBudgetExceeded": (
        {'sublet_fleet_budget_ratio{currency="USD",pool="a",tenant="t"}': "1x9000",
         'sublet_fleet_budget_ratio{currency="USD",pool="b",tenant="t"}': "0.5x9000"}, {"pool": "a", "tenant": "t"},
        {'sublet_fleet_budget_ratio{currency="USD",pool="a",tenant="t"}': "0.99x9000"}),
    "SubletFleetBudgetUnread": (
        {"sublet_fleet_leader": "1x9000", "sublet_fleet_budget_unread_seconds": "3601x9000"}, {},
        {"sublet_fleet_leader": "1x9000", "sublet_fleet_budget_unread_seconds": "3600x9000"}),
    "SubletFleetMisuse": ({'sublet_fleet_misuse_pods{pool="a",tenant="t"}': "1x9000"}, {"pool": "a", "tenant": "t"},
                          {'sublet_fleet_misuse_pods{pool="a",tenant="t"}': "0x9000"}),
    "SubletFleetIdleGPUs": ({'sublet_fleet_idle_held_gpus{pool="a",state="warm",tenant="t"}': "1x9000",
                             'sublet_fleet_idle_held_gpus{pool="a",state="unused",tenant="t"}': "1x9000"}, {"pool": "a", "tenant": "t"},
                            {'sublet_fleet_idle_held_gpus{pool="a",state="warm",tenant="t"}': "0x9000"}),
    "SubletFleetExportersFailing": ({'sublet_fleet_telemetry_exporters{state="failing"}': "1x9000"}, {"state": "failing"},
                                    {'sublet_fleet_telemetry_exporters{state="failing"}': "0x9000"}),
    "SubletFleetExportersAbsent": ({'sublet_fleet_telemetry_exporters{state="absent"}': "1x9000",
                                    'sublet_fleet_telemetry_exporters{state="answering"}': "1x9000"}, {"state": "absent"},
                                   {'sublet_fleet_telemetry_exporters{state="absent"}': "0x9000",
                                    'sublet_fleet_telemetry_exporters{state="answering"}': "1x9000"}),
}


def alerts(rules):
    return {r["alert"]: (path, r) for path, groups in rules.values() for g in groups for r in g["rules"] if "alert" in r}


def said(text, labels):
    """The annotation as Prometheus writes it."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels[m[1]], text)


def evaluate(tmp_path, path, checks):
    """checks: of promtool's tests, [{interval, input_series, alert_rule_test or promql_expr_test}]."""
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(path)], "evaluation_interval": "1m", "tests": checks}), encoding="utf-8")
    return promtool("test", "rules", file)


def case(name, rule, series, labels, ago):
    """labels None: it does not fire. ago: minutes after its `for`."""
    minutes = {"m": 1, "h": 60}[rule["for"][-1]] * int(rule["for"][:-1]) + ago
    firing = [{"exp_labels": {**rule["labels"], **labels},
               "exp_annotations": {k: said(v, labels) for k, v in rule["annotations"].items()}}] if labels is not None else []
    return {"interval": "1m", "input_series": [{"series": k, "values": v} for k, v in series.items()],
            "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": firing}]}


@pytest.mark.parametrize("chart", ["sublet", "fleet"])
def test_the_files_are_valid(rules, chart):
    code, out = promtool("check", "rules", rules[chart][0])
    assert code == 0 and "SUCCESS" in out, out


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert(rules, tmp_path, name):
    path, rule = alerts(rules)[name]
    fires, labels, quiet = ALERTS[name]
    code, out = evaluate(tmp_path, path, [case(name, rule, fires, labels, 1), case(name, rule, fires, None, -1),
                                          case(name, rule, quiet, None, 60)])
    assert code == 0, out
    code, out = evaluate(tmp_path, path, [case(name, rule, quiet, labels, 1)])
    assert code != 0 and "FAILED" in out, "promtool finds no fault where there is one"


def test_every_alert_is_tried(rules):
    assert set(alerts(rules)) == set(ALERTS)


def test_what_is_recorded(rules, tmp_path):
    series = {'sublet_fleet_held_gpus{pool="a",tenant="t"}': "3x5", 'sublet_fleet_held_gpus{pool="a",tenant="u"}': "1x5",
              'sublet_fleet_unmeasured_gpus{pool="a",tenant="t"}': "1x5", 'sublet_fleet_utilised_gpus{pool="a",tenant="t"}': "0.5x5",
              'sublet_fleet_capacity_gpus{pool="a"}': "8x5", 'sublet_fleet_capacity_gpus{pool="none"}': "0x5",
              'sublet_fleet_held_gpus{pool="none",tenant="t"}': "0x5"}
    code, out = evaluate(tmp_path, rules["fleet"][0], [{
        "interval": "1m", "input_series": [{"series": k, "values": v} for k, v in series.items()], "promql_expr_test": [
            {"expr": "sublet_fleet:unused:gpus", "eval_time": "3m", "exp_samples": [
                {"labels": 'sublet_fleet:unused:gpus{pool="a",tenant="t"}', "value": 1.5}]},
            {"expr": "sublet_fleet:held:ratio", "eval_time": "3m", "exp_samples": [
                {"labels": 'sublet_fleet:held:ratio{pool="a"}', "value": 0.5}]}]}])
    assert code == 0, out


def test_names_of_other_platforms(rules, tmp_path):
    """Recorded on request, with the labels that dashboards of them have; a team is a tenant, a type of GPU is a pool."""
    assert "ml_platform" not in str(rules["fleet"][1])
    path = tmp_path / "named.rules.yaml"
    path.write_text(yaml.safe_dump(chart_rules(tmp_path, platformNames=True)["fleet"]), encoding="utf-8")
    series = {'sublet_fleet_held_gpus{job="fleet",pool="a",tenant="t"}': "3x5", 'sublet_fleet_held_gpus{job="fleet",pool="b",tenant="t"}': "0.25x5",
              'sublet_fleet_held_gpus{job="fleet",pool="a",tenant="u"}': "1x5",
              'sublet_fleet_gpu_seconds_total{borrowed="false",job="fleet",pool="a",tenant="t"}': "0+60x5",
              'sublet_fleet_gpu_seconds_total{borrowed="true",job="fleet",pool="a",tenant="t"}': "0+30x5",
              'sublet_fleet_gpu_seconds_total{borrowed="false",job="fleet",pool="b",tenant="t"}': "0+15x5"}
    code, out = evaluate(tmp_path, path, [{
        "interval": "1m", "input_series": [{"series": k, "values": v} for k, v in series.items()], "promql_expr_test": [
            {"expr": "ml_platform_current_gpus", "eval_time": "3m", "exp_samples": [
                {"labels": 'ml_platform_current_gpus{team_id="t"}', "value": 3.25},
                {"labels": 'ml_platform_current_gpus{team_id="u"}', "value": 1}]},
            {"expr": "ml_platform_gpu_seconds_total", "eval_time": "4m", "exp_samples": [
                {"labels": 'ml_platform_gpu_seconds_total{gpu_type="a",team_id="t"}', "value": 360},
                {"labels": 'ml_platform_gpu_seconds_total{gpu_type="b",team_id="t"}', "value": 60}]}]}])
    assert code == 0, out
