# SPDX-License-Identifier: Apache-2.0
"""PriorityClasses of a tenant as classes of the host, by sync.toHost.priorityClasses."""
import pytest

from testenv import ApiError, eventually

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/namespaces/default/pods"
CONFIG = {"sync": {"toHost": {"priorityClasses": {
    "enabled": True, "mappings": {"byName": {"urgent": "mapped-high"}},
    "ranges": [{"upTo": 0, "class": "mapped-low"}, {"upTo": 1000, "class": "mapped-normal"}]}}}}


@pytest.fixture(scope="module")
def classes(real_host):
    made = {"mapped-low": -10, "mapped-normal": 10, "mapped-high": 1000}
    for name, value in made.items():
        real_host.api.post(CLASSES, {"metadata": {"name": name}, "value": value})
    yield made
    for name in made:
        real_host.api.delete(f"{CLASSES}/{name}")


@pytest.fixture
def vc(tenant, classes):
    made = tenant("research", config=CONFIG)
    for name, value in {"urgent": 900000, "small": -3, "usual": 1000, "huge": 1001}.items():
        made.api.post(CLASSES, {"metadata": {"name": name}, "value": value})
    return made


def run(vc, name, priority_class=None):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return vc.api.post(PODS, {"metadata": {"name": name}, "spec": spec})


def host_pod(vc, name):
    return next((p for p in vc.host_pods() if p["metadata"]["annotations"]["sublet.dev/name"] == name), None)


def on_host(vc, name):
    return eventually(lambda: host_pod(vc, name), 60, f"{name} on the host")["spec"]


def test_pods_have_the_class_of_the_host(vc, classes):
    for own, there in {"urgent": "mapped-high", "small": "mapped-low", "usual": "mapped-normal"}.items():
        assert run(vc, own, own)["spec"]["priorityClassName"] == own
        spec = on_host(vc, own)
        assert (spec["priorityClassName"], spec["priority"]) == (there, classes[there])
    run(vc, "without")
    assert "priorityClassName" not in on_host(vc, "without")
    # What is mapped is decided when a pod is created: a restart, and another mapping, change no pod that is there.
    uid = host_pod(vc, "usual")["metadata"]["uid"]
    vc.stop()
    vc.write_config({"sync": {"toHost": {"priorityClasses": {"ranges": [{"upTo": 1000, "class": "mapped-low"}]}}}})
    vc.start()
    run(vc, "later", "usual")
    assert on_host(vc, "later")["priorityClassName"] == "mapped-low"
    now = host_pod(vc, "usual")
    assert now["metadata"]["uid"] == uid and now["spec"]["priorityClassName"] == "mapped-normal"
    vc.api.delete(f"{CLASSES}/usual")
    vc.api.delete(f"{PODS}/usual")
    eventually(lambda: not host_pod(vc, "usual"), 60, "the pod gone")
    assert not {"urgent", "small", "usual", "huge"} & {c["metadata"]["name"] for c in vc.host.api.get(CLASSES)["items"]}


def test_a_class_above_the_cap_is_refused(vc):
    with pytest.raises(ApiError) as e:
        run(vc, "p", "huge")
    assert e.value.code == 403 and "the most that sync.toHost.priorityClasses grants is 1000" in str(e.value)
    with pytest.raises(ApiError) as e:
        run(vc, "p", "mapped-high")  # the host's own name is none of the tenant's
    assert e.value.code == 403 and "no PriorityClass with name mapped-high was found" in str(e.value)
    assert not vc.host_pods()
