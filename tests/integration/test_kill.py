# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any instant, a hundred times, under load, with and without the host: nothing that was answered
is lost, what was not answered happened once or not at all, nothing is doubled, and both sides converge."""
import http.client
import json
import os
import random
import ssl
import threading
import time

from testenv import eventually

from test_tenant import pod

KILLS = 100
FLOOR = 10  # answered writes before each kill
SEED = int(os.environ.get("SEED", "20261121"))
CMS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
AWAY = (http.client.HTTPException, ConnectionError, OSError, ssl.SSLError)


class Writer(threading.Thread):
    """Writes objects of its own. `known`: name -> the value that must be there, None where nothing must be. A write
    without an answer may have happened or not: until it is looked at, `open` has both values its name may have."""

    def __init__(self, vc, index, known):
        super().__init__()
        self.api = vc.api.clone()
        self.rng = random.Random(SEED * 1000 + index + len(known) * 7)
        self.index = index
        self.known = known
        self.open = {}
        self.answered = 0
        self.stopping = False
        self.failure = None

    def run(self):
        try:
            while not self.stopping:
                try:
                    self.write()
                except AWAY:
                    self.api.close()
                    time.sleep(0.005)
        except BaseException as e:  # pylint: disable=broad-except
            self.failure = e

    def end(self):
        """Waits until it has stopped; what it did not expect fails the test."""
        self.stopping = True
        self.join(600)
        if self.failure:
            raise self.failure

    def alive(self):
        return [n for n, v in self.known.items() if v is not None and n not in self.open]

    def write(self):
        alive = self.alive()
        roll = self.rng.random()
        if roll < 0.5 or not alive:
            name = f"w{self.index}-{len(self.known)}"
            self.attempt(name, "1", "POST", CMS, config_map(name, "1"), 201)
        elif roll < 0.8:
            name = self.rng.choice(alive)
            value = str(int(self.known[name]) + 1)
            self.attempt(name, value, "PUT", f"{CMS}/{name}", config_map(name, value), 200)
        else:
            name = self.rng.choice(alive)
            self.attempt(name, None, "DELETE", f"{CMS}/{name}", None, 200)

    def attempt(self, name, value, method, path, body, expected):
        self.open[name] = (self.known.setdefault(name, None), value)
        code = self.api.raw(method, path, body)[0]
        if code == expected:
            self.known[name] = value
            del self.open[name]
            self.answered += 1
        else:
            assert code >= 429, (code, method, path)


class PodWriter(Writer):
    """The same with bare pods, which also live on the host."""

    def write(self):
        alive = self.alive()
        if len(alive) < 8 and self.rng.random() < 0.7:
            name = f"p{self.index}-{len(self.known)}"
            self.attempt(name, "1", "POST", PODS, pod(name), 201)
        elif alive:
            name = self.rng.choice(alive)
            self.attempt(name, None, "DELETE", f"{PODS}/{name}?gracePeriodSeconds=1", None, 200)
        time.sleep(0.01)


def config_map(name, value):
    """Its value in three places: half a write would show."""
    return {"metadata": {"name": name, "labels": {"v": value}}, "data": {"v": value, "long": value * 1000}}


def named(items):
    """{name: object}; a name that is there twice fails."""
    found = {o["metadata"]["name"]: o for o in items}
    assert len(found) == len(items), "a name is there twice"
    return found


def values_of(objects):
    """{name: value} of the writers' ConfigMaps, each of them whole."""
    found = {}
    for name, o in objects.items():
        value = o["data"]["v"]
        want = config_map(name, value)
        assert (o["data"], o["metadata"]["labels"]) == (want["data"], want["metadata"]["labels"]), f"half a write: {o}"
        found[name] = value
    return found


def settle(known, still_open, there, tell):
    """Every answered write is there, every answered removal is done, and a write without an answer happened wholly or
    not at all; which of both is known from now on."""
    assert set(there) <= set(known), f"never asked for: {set(there) - set(known)}"
    for name, value in known.items():
        may_be = still_open.get(name, (value,))
        assert there.get(name) in may_be, f"{name} is {there.get(name)}, and not of {may_be}: {tell(name)}"
    for name in still_open:
        known[name] = there.get(name)


def story(vc, name, found):
    """What is known of a pod that ought to be there."""
    events = [e["message"] for e in vc.api.get("/api/v1/namespaces/default/events")["items"]
              if e["involvedObject"]["name"] == name]
    return json.dumps({"pod": found.get(name), "events": events})


def test_a_hundred_kills_lose_nothing(tenant, host, capsys):
    vc = tenant("kill", config={"log": {"level": "error"}})
    rng = random.Random(SEED)
    known, pods = [{} for _ in range(4)], {}
    answered, unanswered, started, without_host = 0, 0, [], 0
    revision = 0
    for kill in range(KILLS):
        host_down = kill % 25 == 24
        if host_down:
            host.stop_component("kube-apiserver")
            without_host += 1
        writers = [Writer(vc, i, known[i]) for i in range(4)] + [PodWriter(vc, 9, pods)]
        for w in writers:
            w.start()
        eventually(lambda ws=writers: sum(w.answered for w in ws) >= FLOOR or any(w.failure for w in ws), 30,
                   f"{FLOOR} answered writes")
        time.sleep(rng.uniform(0, 0.4))
        vc.kill()
        for w in writers:
            w.end()
        answered += sum(w.answered for w in writers)
        unanswered += sum(len(w.open) for w in writers)
        begin = time.monotonic()
        vc.start()
        started.append(time.monotonic() - begin)
        listed = vc.api.get(CMS)
        there = values_of({n: o for n, o in named(listed["items"]).items() if n.startswith("w")})
        for w in writers[:-1]:
            settle(w.known, w.open, {n: v for n, v in there.items() if n.startswith(f"w{w.index}-")}, str)
        assert set(there) <= {n for k in known for n in k}
        now = int(listed["metadata"]["resourceVersion"])
        assert now >= revision, "revisions go back"
        revision = now
        found = named(vc.api.get(PODS)["items"])
        assert set(found) <= set(pods)
        # A removal that was stored: the pod is still seen until the host let it go.
        staying = {n: "1" for n, p in found.items() if "deletionTimestamp" not in p["metadata"]}
        settle(pods, writers[-1].open, staying, lambda name, f=found: story(vc, name, f))
        if host_down:
            host.start_component("kube-apiserver")
            host.wait_ready("kube-apiserver")

    def converged():
        virtual = {p["metadata"]["uid"]: p for p in vc.api.get(PODS)["items"]}
        seen = [p["metadata"]["annotations"]["sublet.dev/uid"] for p in vc.host_pods()]
        return (sorted(seen) == sorted(virtual) and
                all(p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]
                    for p in virtual.values()))

    eventually(converged, 120, "both sides to hold the same pods")
    wanted = {n for n, v in pods.items() if v}
    assert set(named(vc.api.get(PODS)["items"])) == wanted
    vc.kubectl("delete", "pods", "--all", "--now")
    eventually(lambda: not vc.host_pods(), 60, "the host to be empty")
    with capsys.disabled():
        print(f"\n{KILLS} kills ({without_host} without the host): {answered} answered writes, 0 lost, "
              f"{unanswered} without an answer, each whole or not there, "
              f"{len(pods)} pods, 0 doubled; started again in {sorted(started)[len(started) // 2]:.2f} s "
              f"(median), {max(started):.2f} s (longest)")
