# SPDX-License-Identifier: Apache-2.0
"""Lists and watches as informers use them: consistent chunks, bookmarks, initial events, selectors, 410."""
import threading
import time

import pytest

from testenv import eventually
from testenv.api import ApiError

CMS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def vc(tenant):
    """Once its controllers have made what they make of themselves: watches are to see what the tests do."""
    made = tenant("alone", on=False)
    for ns in ("default", "kube-public"):
        eventually(lambda n=ns: made.api.get(f"/api/v1/namespaces/{n}/configmaps/kube-root-ca.crt"), 60, "the root's certificate")
    return made


def config_map(name, labels=None, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or {}},
            "data": data}


def collect(api, path, until, timeout=180):
    """Events of a watch until until(events) holds."""
    events = []
    deadline = time.monotonic() + timeout
    for event in api.watch(path):
        events.append(event)
        if until(events):
            return events
        assert time.monotonic() < deadline, f"only {events}"
    raise AssertionError(f"the watch ended: {events}")


def test_chunks_are_of_one_state(vc):
    for i in range(25):
        vc.api.post(CMS, config_map(f"c{i:02}", {"set": "a"}))
    first = vc.api.get(f"{CMS}?limit=10&labelSelector=set%3Da")
    assert len(first["items"]) == 10 and first["metadata"]["continue"]
    vc.api.delete(f"{CMS}/c15")
    vc.api.post(CMS, config_map("c99", {"set": "a"}))
    names = [o["metadata"]["name"] for o in first["items"]]
    token = first["metadata"]["continue"]
    while token:
        part = vc.api.get(f"{CMS}?limit=10&labelSelector=set%3Da&continue={token}")
        assert part["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [o["metadata"]["name"] for o in part["items"]]
        token = part["metadata"].get("continue")
    assert names == [f"c{i:02}" for i in range(25)]


def test_remaining_items_are_counted_without_selectors(vc):
    for i in range(5):
        vc.api.post("/api/v1/namespaces/kube-public/configmaps", config_map(f"c{i}"))
    part = vc.api.get("/api/v1/namespaces/kube-public/configmaps?limit=2")
    total = len(vc.api.get("/api/v1/namespaces/kube-public/configmaps", resourceVersionMatch="Exact",
                           resourceVersion=part["metadata"]["resourceVersion"])["items"])
    assert part["metadata"]["remainingItemCount"] == total - 2


def test_watch_from_a_list_misses_nothing(vc):
    listed = vc.api.get(CMS)["metadata"]["resourceVersion"]
    for i in range(50):
        vc.api.post(CMS, config_map(f"w{i}"))
    events = collect(vc.api.clone(), f"{CMS}?resourceVersion={listed}", lambda e: len(e) == 50)
    assert [e["object"]["metadata"]["name"] for e in events] == [f"w{i}" for i in range(50)]
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(versions) and versions[0] > int(listed)


def test_initial_events_end_with_a_bookmark(vc):
    for i in range(3):
        vc.api.post(CMS, config_map(f"i{i}"))
    path = (f"{CMS}?sendInitialEvents=true&allowWatchBookmarks=true"
            "&resourceVersionMatch=NotOlderThan&resourceVersion=0")
    events = collect(vc.api.clone(), path, lambda e: e[-1]["type"] == "BOOKMARK")
    assert all(e["type"] == "ADDED" for e in events[:-1])
    assert {"i0", "i1", "i2"} <= {e["object"]["metadata"]["name"] for e in events[:-1]}
    mark = events[-1]["object"]["metadata"]
    assert mark["annotations"]["k8s.io/initial-events-end"] == "true"
    assert int(mark["resourceVersion"]) > 0


def test_a_selector_turns_leaving_into_deleted(vc):
    start = vc.api.get(CMS)["metadata"]["resourceVersion"]
    vc.api.post(CMS, config_map("s", {"in": "yes"}))
    vc.api.patch(f"{CMS}/s", {"metadata": {"labels": {"in": "no"}}}, "merge")
    vc.api.patch(f"{CMS}/s", {"metadata": {"labels": {"in": "yes"}}}, "merge")
    vc.api.patch(f"{CMS}/s", {"data": {"x": "y"}}, "merge")
    vc.api.delete(f"{CMS}/s")
    events = collect(vc.api.clone(), f"{CMS}?resourceVersion={start}&labelSelector=in%3Dyes",
                     lambda e: len(e) == 5)
    assert [e["type"] for e in events] == ["ADDED", "DELETED", "ADDED", "MODIFIED", "DELETED"]
    assert events[1]["object"]["metadata"]["labels"]["in"] == "yes"
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))


def test_too_old_is_told_as_an_event(vc, tenant):
    small = tenant("small", on=False, config={"store": {"historyEvents": 200}})
    start = small.api.get(CMS)["metadata"]["resourceVersion"]
    small.api.post(CMS, config_map("o"))
    for i in range(400):
        small.api.patch(f"{CMS}/o", {"data": {"n": str(i)}}, "merge")
    events = collect(small.api.clone(), f"{CMS}?resourceVersion={start}", lambda e: len(e) == 1)
    assert events[0]["type"] == "ERROR"
    assert events[0]["object"]["code"] == 410 and events[0]["object"]["reason"] == "Expired"


def test_the_resource_version_matrix(vc):
    now = int(vc.api.get(CMS)["metadata"]["resourceVersion"])
    for query, code, reason in [
        ("resourceVersion=abc", 400, "BadRequest"),
        ("resourceVersionMatch=Exact", 422, "Invalid"),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, "Invalid"),
        ("resourceVersion=1&resourceVersionMatch=Nonsense", 422, "Invalid"),
        ("sendInitialEvents=true", 422, "Invalid"),
        (f"resourceVersion={now + 1000}", 504, "Timeout"),
        ("fieldSelector=spec.nothing%3Dx", 400, "BadRequest"),
        ("labelSelector=%3D%3D", 400, "BadRequest"),
        ("continue=nonsense", 400, "BadRequest"),
    ]:
        with pytest.raises(ApiError) as e:
            vc.api.get(f"{CMS}?{query}")
        assert (e.value.code, e.value.reason) == (code, reason), query
    assert vc.api.get(f"{CMS}?resourceVersion={now}&resourceVersionMatch=NotOlderThan")["items"] is not None


def test_a_hundred_watches_see_the_same(vc):
    counts = []

    def watch():
        api = vc.api.clone()
        events = collect(api, f"{CMS}?resourceVersion={start}", lambda e: len(e) == 20)
        counts.append([e["object"]["metadata"]["resourceVersion"] for e in events])

    start = vc.api.get(CMS)["metadata"]["resourceVersion"]
    threads = [threading.Thread(target=watch) for _ in range(100)]
    for t in threads:
        t.start()
    for i in range(20):
        vc.api.post(CMS, config_map(f"h{i}"))
    for t in threads:
        t.join(600)
    assert len(counts) == 100 and all(c == counts[0] for c in counts)


def test_racing_writers_of_one_object(vc):
    vc.api.post(CMS, config_map("race", n="0"))
    wins = []

    def bump():
        api = vc.api.clone()
        for _ in range(10):
            while True:
                o = api.get(f"{CMS}/race")
                o["data"]["n"] = str(int(o["data"]["n"]) + 1)
                try:
                    api.put(f"{CMS}/race", o)
                    wins.append(1)
                    break
                except ApiError as e:
                    assert e.code == 409 and e.reason == "Conflict"

    threads = [threading.Thread(target=bump) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
    assert len(wins) == 80
    assert vc.api.get(f"{CMS}/race")["data"]["n"] == "80"


def test_generated_names_and_preconditions(vc):
    names = {vc.api.post(CMS, {"metadata": {"generateName": "g-"}})["metadata"]["name"] for _ in range(50)}
    assert len(names) == 50
    o = vc.api.post(CMS, config_map("pre"))
    with pytest.raises(ApiError) as e:
        vc.api.request("DELETE", f"{CMS}/pre", {"preconditions": {"uid": "other"}})
    assert e.value.code == 409
    dry = vc.api.post(f"{CMS}?dryRun=All", config_map("ghost"))
    assert dry["metadata"]["uid"]
    with pytest.raises(ApiError):
        vc.api.get(f"{CMS}/ghost")
    vc.api.patch(f"{CMS}/pre", {"metadata": {"finalizers": ["example.com/wait"]}}, "merge")
    vc.api.delete(f"{CMS}/pre")
    waiting = vc.api.get(f"{CMS}/pre")
    assert waiting["metadata"]["deletionTimestamp"] and waiting["metadata"]["uid"] == o["metadata"]["uid"]
    vc.api.patch(f"{CMS}/pre", {"metadata": {"finalizers": None}}, "merge")
    eventually(lambda: "pre" not in [i["metadata"]["name"] for i in vc.api.get(CMS)["items"]], 30, "it to go")
