# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any instant, a hundred times, under load, with and without the host: nothing that was answered
is lost, nothing is doubled, and both sides converge."""
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
SEED = int(os.environ.get("SEED", "20261121"))
CMS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
AWAY = (http.client.HTTPException, ConnectionError, OSError, ssl.SSLError)


class Writer(threading.Thread):
    """Writes objects of its own and remembers every answer: name -> value that must be there, or None when
    it must not. A write without an answer may or may not have happened: its name is left open."""

    def __init__(self, vc, index, known):
        super().__init__()
        self.api = vc.api.clone()
        self.rng = random.Random(SEED * 1000 + index + len(known) * 7)
        self.index = index
        self.known = known
        self.open = set()
        self.answered = 0
        self.stopping = False

    def run(self):
        while not self.stopping:
            try:
                self.write()
            except AWAY:
                self.api.close()
                time.sleep(0.005)

    def call(self, method, path, body=None):
        return self.api.raw(method, path, body)[0]

    def write(self):
        alive = [n for n, v in self.known.items() if v is not None and n not in self.open]
        roll = self.rng.random()
        if roll < 0.5 or not alive:
            name = f"w{self.index}-{len(self.known)}"
            self.attempt(name, "1", "POST", CMS, {"metadata": {"name": name}, "data": {"v": "1"}}, 201)
        elif roll < 0.8:
            name = self.rng.choice(alive)
            value = str(int(self.known[name]) + 1)
            self.attempt(name, value, "PUT", f"{CMS}/{name}",
                         {"metadata": {"name": name}, "data": {"v": value}}, 200)
        else:
            name = self.rng.choice(alive)
            self.attempt(name, None, "DELETE", f"{CMS}/{name}", None, 200)

    def attempt(self, name, value, method, path, body, expected):
        self.open.add(name)
        before = self.known.get(name)
        self.known[name] = before if before is not None else value
        code = self.call(method, path, body)
        if code == expected:
            self.known[name] = value
            self.open.discard(name)
            self.answered += 1
        else:
            assert code >= 429, (code, method, path)


class PodWriter(Writer):
    """The same with bare pods, which also live on the host."""

    def write(self):
        alive = [n for n, v in self.known.items() if v is not None and n not in self.open]
        if len(alive) < 8 and self.rng.random() < 0.7:
            name = f"p{self.index}-{len(self.known)}"
            self.attempt(name, "1", "POST", PODS, pod(name), 201)
        elif alive:
            name = self.rng.choice(alive)
            self.attempt(name, None, "DELETE", f"{PODS}/{name}?gracePeriodSeconds=1", None, 200)
        time.sleep(0.01)


def check(vc, known, still_open):
    """Every answered write is there, every answered removal is done."""
    there = {o["metadata"]["name"]: o["data"]["v"] for o in vc.api.get(CMS)["items"]
             if o["metadata"]["name"].startswith("w")}
    for name, value in known.items():
        if name not in still_open:
            assert there.get(name) == value, (name, value, there.get(name))
    for name in set(there) - set(known):
        raise AssertionError(f"{name} was never asked for")
    return there


def story(vc, name, found):
    """What is known of a pod that ought to be there."""
    events = [e["message"] for e in vc.api.get("/api/v1/namespaces/default/events")["items"]
              if e["involvedObject"]["name"] == name]
    return json.dumps({"pod": found.get(name), "events": events})


def test_a_hundred_kills_lose_nothing(tenant, host, capsys):
    vc = tenant("kill", config={"log": {"level": "error"}})
    rng = random.Random(SEED)
    known, pods = [{} for _ in range(4)], {}
    still_open, answered, started, without_host = set(), 0, [], 0
    revision = 0
    for kill in range(KILLS):
        host_down = kill % 25 == 24
        if host_down:
            host.stop_component("kube-apiserver")
            without_host += 1
        writers = [Writer(vc, i, known[i]) for i in range(4)] + [PodWriter(vc, 9, pods)]
        for w in writers:
            w.open |= still_open & set(w.known)
            w.start()
        time.sleep(rng.uniform(0.05, 0.5))
        vc.kill()
        for w in writers:
            w.stopping = True
        for w in writers:
            w.join(600)
            still_open |= w.open
            answered += w.answered
        begin = time.monotonic()
        vc.start()
        started.append(time.monotonic() - begin)
        there = check(vc, {n: v for k in known for n, v in k.items()}, still_open)
        for k in known:  # what was left open is settled by what is found
            for name in set(k) & still_open:
                k[name] = there.get(name)
        now = int(vc.api.get(CMS)["metadata"]["resourceVersion"])
        assert now >= revision, "revisions go back"
        revision = now
        found = {p["metadata"]["name"]: p for p in vc.api.get(PODS)["items"]}
        # A removal without an answer may have been stored: the pod is still seen until the host let it go.
        staying = {n for n, p in found.items() if "deletionTimestamp" not in p["metadata"]}
        for name in pods:
            if name in still_open:
                pods[name] = "1" if name in staying else None
            elif pods[name]:
                assert name in staying, f"pod {name} was answered and is gone: {story(vc, name, found)}"
        still_open = set()
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
    gone = {n for n, v in pods.items() if not v}
    there = {p["metadata"]["name"] for p in vc.api.get(PODS)["items"]}
    assert wanted >= there and not there & (gone - wanted), (wanted, there)
    vc.kubectl("delete", "pods", "--all", "--now")
    eventually(lambda: not vc.host_pods(), 60, "the host to be empty")
    with capsys.disabled():
        print(f"\n{KILLS} kills ({without_host} without the host): {answered} answered writes, 0 lost, "
              f"{len(pods)} pods, 0 doubled; started again in {sorted(started)[len(started) // 2]:.2f} s "
              f"(median), {max(started):.2f} s (longest)")
