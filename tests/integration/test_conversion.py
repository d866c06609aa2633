# SPDX-License-Identifier: Apache-2.0
"""Conversion webhooks of a tenant's CRDs, beside those of a real kube-apiserver: the same definitions, requests and answers of
the webhook, the same objects and messages. Then what a virtual cluster bounds, and what goes on while the webhook is away."""
import concurrent.futures
import contextlib
import json
import os
import time

import pytest

from converting import APPLY, BROKEN, CRDS, GROUP, MERGE, NS, RESULTS, Side, alike, path, plain, spot
from testenv import Api, eventually
from testenv.pki import Pki
from testenv.webhook import release  # noqa: F401 - release is a fixture


@pytest.fixture
def mine(tenant, workdir, release):
    vc = tenant("hooks")
    side = Side(vc.api, Pki(os.path.join(workdir, f"conv-{vc.namespace}")), "here", release)
    side.vc = vc
    side.define()
    yield side
    release.set()
    side.stack.close()
    release.clear()


@pytest.fixture(scope="module")
def theirs(real_host, workdir, release):
    side = Side(real_host.api, Pki(os.path.join(workdir, "conv-oracle")), "there", release)
    side.define()
    yield side
    side.api.delete(f"{CRDS}/spots.{GROUP}")
    side.stack.close()
    side.api.delete(f"/api/v1/namespaces/{NS}")
    eventually(lambda: side.api.raw("GET", f"/api/v1/namespaces/{NS}")[0] == 404, 60, "the end of the namespace")


def test_objects_are_those_of_kube_apiserver(mine, theirs):
    def act(send):
        send("POST", path("v1"), spot(host="h", port="1", odd=2), query={"fieldManager": "m"})
        send("POST", path("v2"), spot("b", "v2", at="i:2"), query={"fieldManager": "m"})
        for version in ("v1", "v2"):
            send("GET", path(version, "a"))
            send("GET", path(version, "b"))
            send("GET", path(version, "a/scale"))
            send("GET", path(version))
            send("GET", path(version), query={"limit": "5"})
            send("GET", path(version), query={"fieldSelector": "metadata.name=b"})
        for version in ("v1", "v2"):
            o = json.loads(json.dumps(send("GET", path(version, "a"))))
            o["spec"]["size"] = 4 if version == "v1" else 5
            send("PUT", path(version, "a"), o, query={"fieldManager": "put"})
            send("PUT", path(version, "a"), o, query={"fieldManager": "put"})
        send("PATCH", path("v1", "b"), {"spec": {"host": "j"}}, content_type=MERGE, query={"fieldManager": "m1"})
        send("PATCH", path("v2", "b"), {"spec": {"at": "k:3"}}, content_type=MERGE, query={"fieldManager": "m2"})
        send("PATCH", path("v1", "b"), [{"op": "replace", "path": "/spec/port", "value": "4"}],
             content_type="application/json-patch+json", query={"fieldManager": "m3"})
        send("PATCH", path("v1", "b/status"), {"status": {"seen": "yes"}}, content_type=MERGE, query={"fieldManager": "s"})
        send("PATCH", path("v2", "b/scale"), {"spec": {"replicas": 3}}, content_type=MERGE)
        send("PATCH", path("v1", "b/scale"), {"spec": {"replicas": 2}}, content_type=MERGE)
        send("GET", path("v1", "b"))
        send("GET", path("v2", "b"))
        send("POST", path("v1"), spot("dry", host="d", port="9"), query={"dryRun": "All", "fieldManager": "m"})
        send("POST", path("v1"), spot("a", host="again"), query={"fieldManager": "m"})
        send("PUT", path("v1", "b"), spot("b", host="x"))
        send("GET", path("v1", "none"))
        send("DELETE", path("v1", "a"))
        send("DELETE", path("v2", "b"))
        send("DELETE", path("v1", "b"))
    answers = alike(mine, theirs, act)
    assert answers[2][2]["spec"]["host"] == "h" and "odd" not in answers[2][2]["spec"], answers[2]
    assert {a[0] for a in answers} == {200, 201, 404, 409, 422, 500}, [a[0] for a in answers]


def test_a_scale_sets_no_defaults_of_its_version(mine, theirs):
    def act(send):
        send("POST", path("v2"), spot("a", "v2", at="h:1", replicas=1), query={"fieldManager": "m"})
        send("PATCH", path("v1", "a/scale"), {"spec": {"replicas": 2}}, content_type=MERGE, query={"fieldManager": "s"})
        send("GET", path("v2", "a"))
    answers = alike(mine, theirs, act)
    assert answers[-1][2]["spec"] == {"at": "h:1", "late": "x", "replicas": 2}


def test_fields_have_managers_in_their_versions_as_of_kube_apiserver(mine, theirs):
    def act(send):
        def apply(version, manager, name="m", force=False, **spec):
            return send("PATCH", path(version, name), json.dumps(spot(name, version, **spec)).encode(), content_type=APPLY,
                        query={"fieldManager": manager, "force": str(force).lower()})
        apply("v1", "one", host="h", port="1")
        apply("v2", "two", at="h:1", size=2)
        apply("v2", "two", at="i:1", size=2)
        apply("v2", "two", at="i:1", size=3, force=True)
        apply("v1", "one", host="h", port="1")
        apply("v1", "one", host="h", port="1", force=True)
        send("PATCH", path("v1", "m"), {"spec": {"size": 7}}, content_type=MERGE, query={"fieldManager": "three"})
        send("PATCH", path("v2", "m"), {"spec": {"at": "z:1"}}, content_type=MERGE, query={"fieldManager": "three"})
        send("GET", path("v1", "m"))
        send("GET", path("v2", "m"))
    answers = alike(mine, theirs, act)
    assert 409 in [a[0] for a in answers]


def test_reviews_are_those_of_kube_apiserver(mine, theirs):
    def act(send):
        send("POST", path("v1"), spot("r", host="h", port="1"), query={"fieldManager": "m"})
        send("GET", path("v1", "r"))
    alike(mine, theirs, act)
    got, wanted = ({json.dumps(plain(r), sort_keys=True) for r in side.reviews} for side in (mine, theirs))
    assert got <= wanted, json.dumps([json.loads(r) for r in got - wanted] + [json.loads(r) for r in wanted], indent=1)
    assert {json.loads(r)["request"]["desiredAPIVersion"] for r in got} == {f"{GROUP}/v1", f"{GROUP}/v2"}


@pytest.mark.parametrize("mode", [*BROKEN, *RESULTS, "uid", "absent", "404", "500", "418", "labels", "unknown"])
def test_answers_are_taken_and_refused_as_by_kube_apiserver(mine, theirs, mode):
    for side in (mine, theirs):
        side.api.post(path("v1"), spot("kept", host="h", port="1"))

    def act(send):
        send("GET", path("v1", "kept"))
        send("GET", path("v2", "kept"))
        send("POST", path("v1"), spot("new", host="h", port="1"), query={"fieldManager": "m"})
        send("POST", path("v2"), spot("own", "v2", at="h:1"), query={"fieldManager": "m"})
        send("PATCH", path("v1", "kept"), {"spec": {"port": "2"}}, content_type=MERGE, query={"fieldManager": "m"})
        if mode != "unknown":  # kube-apiserver drops all managers for a field that is in no schema
            send("PATCH", path("v2", "kept"), {"spec": {"at": "i:2"}}, content_type=MERGE, query={"fieldManager": "m"})
        send("DELETE", path("v1", "kept"))
        send("GET", path("v2", "kept"))
        send("GET", path("v2", "new"))
        send("DELETE", path("v2", "kept"))
    answers = alike(mine, theirs, act, mode)
    assert answers[0][0] == (200 if mode in ("labels", "unknown") else 500), answers[0]
    assert answers[3][0] == 201


DEFINITIONS = {
    "no-client": lambda c: c["webhook"].pop("clientConfig"),
    "no-webhook": lambda c: c.pop("webhook"),
    "both": lambda c: c["webhook"]["clientConfig"].update(url="https://x.dev"),
    "neither": lambda c: c["webhook"]["clientConfig"].pop("service"),
    "http": lambda c: c["webhook"].update(clientConfig={"url": "http://x.dev/a?b=c#d"}),
    "user": lambda c: c["webhook"].update(clientConfig={"url": "https://u:p@x.dev"}),
    "no-host": lambda c: c["webhook"].update(clientConfig={"url": "https:///a"}),
    "no-names": lambda c: c["webhook"]["clientConfig"].update(service={"name": "", "namespace": ""}),
    "port": lambda c: c["webhook"]["clientConfig"]["service"].update(port=70000),
    "path": lambda c: c["webhook"]["clientConfig"]["service"].update(path="a//B"),
    "no-reviews": lambda c: c["webhook"].update(conversionReviewVersions=[]),
    "unknown-reviews": lambda c: c["webhook"].update(conversionReviewVersions=["v2", "v3"]),
    "bad-reviews": lambda c: c["webhook"].update(conversionReviewVersions=["v1", "V1", "v1", ""]),
    "strategy": lambda c: c.update(strategy="Magic"),
    "none-with-webhook": lambda c: c.update(strategy="None"),
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_definitions_are_refused_as_by_kube_apiserver(mine, theirs, case):
    got = []
    for side in (mine, theirs):
        crd = side.crd("lots", "Lot")
        DEFINITIONS[case](crd["spec"]["conversion"])
        code, headers, data = side.api.raw("POST", CRDS, crd)
        got.append([code, headers.get_all("Warning"), plain(json.loads(data), [side.port.number])])
    assert got[0] == got[1] and got[0][0] == 422, json.dumps(got, indent=1)


def test_a_bundle_that_is_none_keeps_a_definition_from_being_established(mine, theirs):
    got = []
    for side in (mine, theirs):
        crd = side.crd("lots", "Lot")
        crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = "bm90IGEgYnVuZGxl"
        side.api.post(CRDS, crd)

        def condition(side=side):
            listed = side.api.get(f"{CRDS}/lots.{GROUP}").get("status", {}).get("conditions") or []
            return next((c for c in listed if c["type"] == "Established" and c["reason"] == "InvalidCABundle"), None)
        first = eventually(condition, 30, "the condition")
        side.api.delete(f"{CRDS}/lots.{GROUP}")
        code, _, data = side.api.raw("PATCH", f"{CRDS}/spots.{GROUP}", {"spec": {"conversion": {"webhook": {"clientConfig": {
            "caBundle": "bm90IGEgYnVuZGxl"}}}}}, content_type=MERGE)
        got.append([plain(first), code, plain(json.loads(data))])
    assert got[0] == got[1] and got[0][1] == 422, json.dumps(got, indent=1)


# ---- lists and watches ----

def test_lists_and_watches_have_the_requested_version(mine):
    api = mine.api
    for i in range(300):
        api.post(path("v2"), spot(f"s{i}", "v2", at=f"h{i}:{i}"))
    mine.reviews.clear()
    got = api.get(path("v1"))
    assert [o["spec"]["host"] for o in got["items"]] == sorted(f"h{i}" for i in range(300))
    assert {o["apiVersion"] for o in got["items"]} == {f"{GROUP}/v1"} and got["apiVersion"] == f"{GROUP}/v1"
    assert len(mine.reviews) < 10 and sum(len(r["request"]["objects"]) for r in mine.reviews) == 300
    mine.reviews.clear()
    table = json.loads(api.raw("GET", path("v1"), accept="application/json;as=Table;v=v1;g=meta.k8s.io")[2])
    assert sorted(r["cells"] for r in table["rows"]) == sorted([f"s{i}", f"h{i}"] for i in range(300))
    mine.reviews.clear()
    page = api.get(path("v1"), limit=10)
    assert len(page["items"]) == 10 and page["metadata"]["continue"] and len(mine.reviews) == 1
    assert len(api.get(path("v2"))["items"]) == 300 and len(mine.reviews) == 1
    events = api.watch(path("v1"), allowWatchBookmarks="true", sendInitialEvents="true", resourceVersionMatch="NotOlderThan",
                       timeoutSeconds="60")
    seen = [next(events) for _ in range(301)]
    assert {e["type"] for e in seen[:300]} == {"ADDED"} and seen[300]["type"] == "BOOKMARK"
    assert {e["object"]["apiVersion"] for e in seen} == {f"{GROUP}/v1"}
    assert all(e["object"]["spec"]["host"] for e in seen[:300])
    api.patch(path("v2", "s7"), {"spec": {"at": "new:1"}})
    api.patch(path("v2", "s7"), {"metadata": {"labels": {"x": "y"}}})
    api.delete(path("v2", "s8"))
    live = [next(events) for _ in range(3)]
    assert [(e["type"], e["object"]["metadata"]["name"], e["object"]["spec"]["host"]) for e in live] == [
        ("MODIFIED", "s7", "new"), ("MODIFIED", "s7", "new"), ("DELETED", "s8", "h8")]
    api.raw("DELETE", path("v1"))
    assert api.get(path("v2"))["items"] == []


def test_a_watch_ends_with_an_error(mine):
    api = mine.api
    api.post(path("v2"), spot("w", "v2", at="h:1"))
    rv = api.get(path("v2"))["metadata"]["resourceVersion"]
    events = api.watch(path("v1"), resourceVersion=rv, timeoutSeconds="60")
    with mine.behaving("failure"):
        api.patch(path("v2", "w"), {"spec": {"at": "i:1"}})
        [last] = list(events)
    assert last["type"] == "ERROR" and last["object"]["code"] == 500 and last["object"]["reason"] == "InternalError"
    assert last["object"]["message"] == (
        f"Internal error occurred: conversion webhook for {GROUP}/v2, Kind=Spot failed: not today")


# ---- away, slow, hostile ----

def test_what_needs_no_conversion_goes_on_without_the_webhook(mine):
    api = mine.api
    api.post(path("v1"), spot("a", host="h", port="1"))
    api.post(path("v2"), spot("f", "v2", at="h:1"))
    api.patch(path("v2", "f"), {"metadata": {"finalizers": ["x.dev/later"]}})
    mine.away()
    code, _, data = api.raw("GET", path("v1", "a"))
    assert code == 500 and json.loads(data)["message"].startswith(
        f'conversion webhook for {GROUP}/v2, Kind=Spot failed: Post "https://hook.{NS}.svc:{mine.port.number}/convert?timeout=30s": ')
    for method, where, body in [("GET", path("v1"), None), ("POST", path("v1"), spot("b", host="x")),
                                ("DELETE", path("v1", "a"), None)]:
        code, _, data = api.raw(method, where, body)
        assert code == 500 and "conversion webhook for " in json.loads(data)["message"], data
    assert api.get(path("v2", "a"))["spec"]["at"] == "h:1"
    api.post(path("v2"), spot("c", "v2", at="x:1"))
    api.patch(path("v2", "c"), {"spec": {"at": "y:1"}})
    api.delete(path("v2", "c"))
    api.delete(path("v2", "f"))
    api.patch(path("v2", "f"), {"metadata": {"finalizers": None}})
    assert [o["metadata"]["name"] for o in api.get(path("v2"))["items"]] == ["a"]
    assert api.get(f"/api/v1/namespaces/{NS}")["status"]["phase"] == "Active"
    api.delete(f"{CRDS}/spots.{GROUP}")
    eventually(lambda: api.raw("GET", f"{CRDS}/spots.{GROUP}")[0] == 404, 60, "the end of the definition")
    mine.start()


def test_a_namespace_ends_without_the_webhook(mine):
    api = mine.api
    api.post(path("v1"), spot("a", host="h", port="1"))
    mine.away()
    api.delete(f"/api/v1/namespaces/{NS}")
    eventually(lambda: api.raw("GET", f"/api/v1/namespaces/{NS}")[0] == 404, 60, "the end of the namespace")
    mine.start()


def test_nothing_waits_for_a_slow_webhook_and_calls_are_bounded(mine, release):
    api = mine.api
    api.post(path("v2"), spot("slow", "v2", at="h:1"))
    with mine.behaving("hang"), concurrent.futures.ThreadPoolExecutor(40) as pool:
        waits = [pool.submit(Api(mine.vc.kubeconfig).raw, "GET", path("v1", "slow")) for _ in range(40)]
        eventually(lambda: len(mine.reviews) == 16, 30, "the reviews to be sent")
        start = time.monotonic()
        for i in range(20):
            api.post(path("v2"), spot(f"f{i}", "v2", at="h:1"))
        assert time.monotonic() - start < 5 and len(mine.reviews) == 16 and not any(w.done() for w in waits)
        release.set()
        assert [w.result()[0] for w in waits] == [200] * 40
    release.clear()


def test_a_watcher_that_leaves_and_a_definition_that_is_removed_end_what_waits(mine, release):
    api = mine.api
    api.post(path("v2"), spot("slow", "v2", at="h:1"))
    with mine.behaving("hang"):
        other = Api(mine.vc.kubeconfig, 30)
        other.open("GET", path("v1"), query={"watch": "1"})
        eventually(lambda: len(mine.reviews) == 1, 30, "the review")
        other.close()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waits = pool.submit(Api(mine.vc.kubeconfig).raw, "PATCH", path("v1", "slow"), {"spec": {"port": "2"}}, MERGE)
            eventually(lambda: len(mine.reviews) == 2, 30, "the review")
            api.delete(f"{CRDS}/spots.{GROUP}")
            eventually(lambda: api.raw("GET", f"{CRDS}/spots.{GROUP}")[0] == 404, 60, "the end of the definition")
            release.set()
            assert waits.result()[0] == 404
    release.clear()
    assert mine.api.get("/api/v1/namespaces")["items"]


def test_the_process_ends_with_conversions_under_way(mine, release):
    mine.api.post(path("v2"), spot("slow", "v2", at="h:1"))
    with mine.behaving("hang"), concurrent.futures.ThreadPoolExecutor(2) as pool:
        def watch():
            return list(Api(mine.vc.kubeconfig, 30).watch(path("v1")))
        waits = [pool.submit(Api(mine.vc.kubeconfig).raw, "GET", path("v1", "slow")), pool.submit(watch)]
        eventually(lambda: len(mine.reviews) == 2, 30, "the reviews")
        code = mine.vc.process.stop()
        release.set()
        for w in waits:
            with contextlib.suppress(Exception):  # as the end of a server looks to a client
                w.result()
    release.clear()
    assert code == 0


@pytest.mark.parametrize("mode", ["text", "array", "big", "close"])
def test_an_answer_that_is_none_is_refused(mine, mode):
    mine.api.post(path("v2"), spot("a", "v2", at="h:1"))
    with mine.behaving(mode):
        code, _, data = mine.api.raw("GET", path("v1", "a"))
    assert code == 500 and json.loads(data)["message"].startswith(f"conversion webhook for {GROUP}/v2, Kind=Spot failed: ")
    assert mine.api.get(path("v1", "a"))["spec"]["host"] == "h"


def test_a_url_that_is_not_listed_is_refused(mine):
    """A listed one is called: test_webhook_urls.py."""
    url = f"https://127.0.0.1:{mine.port.number}/convert"
    code, _, data = mine.api.raw("POST", CRDS, mine.crd("lots", "Lot", url=url))
    said = f"spec.conversion.webhook.clientConfig.url: {url} is not among the URLs that webhooks of this virtual cluster may be at"
    assert code == 403 and said in json.loads(data)["message"], data
    code, _, data = mine.api.raw("PATCH", f"{CRDS}/spots.{GROUP}", {"spec": {"conversion": {"webhook": {"clientConfig": {
        "service": None, "url": url}}}}}, content_type="application/merge-patch+json")
    assert code == 403 and said in json.loads(data)["message"], data


def test_beta_reviews_are_sent_where_they_come_first(mine):
    mine.define("lots", kind="Lot", reviews=("v9", "v1beta1", "v1"))
    mine.reviews.clear()
    lot = {"apiVersion": f"{GROUP}/v1", "kind": "Lot", "metadata": {"name": "a"}, "spec": {"host": "h", "port": "1"}}
    assert mine.api.post(path("v1", plural="lots"), lot)["spec"] == {"host": "h", "port": "1", "size": 1}
    assert {r["apiVersion"] for r in mine.reviews} == {"apiextensions.k8s.io/v1beta1"}


def test_another_stored_version_migrates_objects_one_by_one(mine):
    api = mine.api
    api.post(path("v2"), spot("a", "v2", at="h:1"))
    api.post(path("v2"), spot("b", "v2", at="i:2"))
    crd = api.get(f"{CRDS}/spots.{GROUP}")
    for version in crd["spec"]["versions"]:
        version["storage"] = version["name"] == "v1"
    crd = api.put(f"{CRDS}/spots.{GROUP}", crd)
    assert crd["status"]["storedVersions"] == ["v2", "v1"]
    eventually(lambda: api.get(path("v1", "a"))["spec"].get("host") == "h", 30, "the objects")
    before = api.get(path("v1", "a"))
    after = api.put(path("v1", "a"), before)
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"] and (
        after["spec"] == {"host": "h", "port": "1", "size": 1})
    again = api.put(path("v1", "a"), after)
    assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    mine.away()
    assert api.get(path("v1", "a"))["spec"]["host"] == "h"
    assert api.raw("GET", path("v1", "b"))[0] == 500 and api.get(path("v2", "b"))["spec"]["at"] == "i:2"
    assert api.raw("DELETE", path("v2", "b"))[0] == 200
    mine.start()
