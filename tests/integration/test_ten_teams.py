# SPDX-License-Identifier: Apache-2.0
"""The tour of ten teams runs to its end; between its acts everything it claims is read from the host, not from what it says."""
import contextlib
import datetime
import os
import re
import subprocess
import sys
from fractions import Fraction

import yaml

from testenv import binaries
from testenv.binaries import TREE
from testenv.fleet import sublet_report
from testenv.helm import Helm
from testenv.host import HostApi
from testenv.kubectl import Kubectl

from tour.acts import ACTS, MAIN, WORK, held
from tour.cluster import EXAMPLE, GROUP, example, objects, team_names
from tour.console import Console

from test_fleet import check_sums


class Tour:
    """`tests/demo teams --step`: next_act() lets it go on until the next act is over; .host, .report(), .finish()."""

    def __init__(self, directory):
        self.dir = directory
        self.said = []
        env = {**os.environ, "SUBLET_BIN": binaries.sublet(), "SUBLET_DEMO": os.path.join(directory, "demo"), "ASAN_OPTIONS": "detect_leaks=0"}
        self.process = subprocess.Popen([os.path.join(TREE, "tests", "demo"), "teams", "--step", "--directory", directory], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def until_pause(self):
        """The name of the act that is over; None: the tour is."""
        for line in self.process.stdout:
            self.said.append(line)
            m = re.match(r"-- (\w+): Enter goes on", line)
            if m:
                return m.group(1)
        return None

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def kubeconfigs(self):
        return dict(reversed(m) for m in re.findall(r"export KUBECONFIG=(\S+)  # (\w+)", "".join(self.said)))

    def host(self):
        return HostApi(self.kubeconfigs["host"])

    def fleet_log(self):
        with open(os.path.join(self.dir, "fleet", "sublet-fleet.log"), encoding="utf-8", errors="replace") as f:
            return f"end of the fleet's log:\n{f.read()[-4000:]}"

    def report(self, by):
        r = sublet_report("--data-dir", os.path.join(self.dir, "fleet", "ledger"), "--by", by, "--format", "json")
        assert r.returncode == 0, r.stderr
        return yaml.safe_load(r.stdout)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(120)
        self.process.kill()


def pods_of(api, team, prefix=""):
    """The team's pods on the host that are not ending."""
    items = api.get(f"/api/v1/namespaces/team-{team}/pods", labelSelector="sublet.dev/cluster")["items"]
    return [p for p in items if p["metadata"]["annotations"]["sublet.dev/name"].startswith(prefix)
            and "deletionTimestamp" not in p["metadata"]]


def units(pods, resource="nvidia.com/gpu"):
    return sum(held(p).get(resource, 0) for p in pods)


def node_pools(api):
    return {n["metadata"]["name"]: n["metadata"]["labels"].get("sublet.dev/pool") for n in api.get("/api/v1/nodes")["items"]}


def promised(api):
    """Of each pool of whole GPUs: no more is granted than its machines have, and quotas are no more than what is granted."""
    bindings = api.get(f"{GROUP}/gpubindings")["items"]
    totals = {}
    for b in bindings:
        totals[b["spec"]["pool"]] = totals.get(b["spec"]["pool"], 0) + Fraction(b.get("status", {}).get("grant", "0"))
    for pool in api.get(f"{GROUP}/gpupools")["items"]:
        name = pool["metadata"]["name"]
        assert totals.get(name, 0) <= Fraction(pool["status"]["capacity"]), (name, totals)
    return {(b["metadata"]["namespace"].removeprefix("team-"), b["spec"]["pool"]): b for b in bindings}


def after_where(tour, api):
    pools = node_pools(api)
    for team in team_names():
        for p in pods_of(api, team):
            wanted = MAIN[team] if held(p) else None
            assert pools[p["spec"]["nodeName"]] == wanted, (team, p["metadata"]["name"], p["spec"]["nodeName"])
            assert p["status"]["phase"] == "Running"
    for team, (work, count, _, resource, each) in WORK.items():
        assert units(pods_of(api, team, work + "-"), resource) == count * each, team
        assert units(pods_of(api, team), "nvidia.com/gpu" if "shared" in resource else "nvidia.com/gpu.shared") == 0
    assert not pods_of(api, "speech", "transcribe"), "it has no binding yet"
    assert all(c["status"] == "True" for b in promised(api).values() for c in b["status"]["conditions"] if c["type"] == "Ready")


def after_refusals(tour, api):
    after_where(tour, api)
    names = {p["metadata"]["annotations"]["sublet.dev/name"] for t in team_names() for p in pods_of(api, t)}
    assert not names & {"huge", "more", "double", "foreign", "other", "rogue"}
    assert set(promised(api)) == {(t, w[2]) for t, w in WORK.items()}, "the bindings that were refused are deleted"


def after_borrowing(tour, api):
    bindings = promised(api)
    assert bindings["speech", "a100"]["status"]["grant"] == "4"
    assert units(pods_of(api, "speech")) == 4 and units(pods_of(api, "vision")) == 4 and units(pods_of(api, "robotics")) == 2
    assert 4 <= units(pods_of(api, "research")) <= 6
    assert "reclaim" not in bindings["research", "a100"]["status"]


def after_death(tour, api):
    pools = node_pools(api)
    machines = {n for n, pool in pools.items() if pool == "a100"}
    assert len(machines) == 2 and "gpu-a100-3" in machines
    assert units(pods_of(api, "vision")) == 4
    assert {p["spec"]["nodeName"] for p in pods_of(api, "vision", "trainer")} <= machines
    report = tour.report("node")
    check_sums(report_by_pool := tour.report("node,pool"))
    lost = {x["node"] for x in report["lines"] if x["kind"] == "unhealthy"} & {"gpu-a100-1", "gpu-a100-2"}
    assert len(lost) == 1, report_by_pool["lines"]


def after_hoarding(tour, api):
    pools, bindings = node_pools(api), promised(api)
    counts = {t: units(p for p in pods_of(api, t, "training-") if p["status"]["phase"] == "Running") for t in team_names()}
    assert counts["speech"] == 96 and counts["research"] == 104 and sum(counts.values()) == 640, counts
    assert all(pools[p["spec"]["nodeName"]] == "train" for t in team_names() for p in pods_of(api, t, "training-"))
    assert bindings["speech", "train"]["status"]["grant"] == "96" and bindings["research", "train"]["status"]["grant"] == "104"


def after_report(tour, api):
    report = tour.report("tenant,pool")
    capacity = check_sums(report)
    assert set(capacity) == {"h100-fraud", "a100", "l4-sliced", "l4-mps", "train"}
    tenants = {x["tenant"] for x in report["lines"] if x["kind"] == "held"}
    assert tenants == {f"team-{t}" for t in team_names()}
    until = datetime.datetime.fromisoformat(report["until"].replace("Z", "+00:00"))
    begins = [next(c["lastTransitionTime"] for c in p["status"]["conditions"] if c["type"] == "PodScheduled") for p in pods_of(api, "fraud", "scorer")]
    want = sum(4 * (until - datetime.datetime.fromisoformat(b.replace("Z", "+00:00"))).total_seconds() for b in begins)
    line, = (x for x in report["lines"] if (x["tenant"], x["pool"]) == ("team-fraud", "h100-fraud"))
    assert abs(float(Fraction(line["gpuHoursExact"]) * 3600) - want) < 8


def test_every_claim_holds_on_the_host(workdir):
    """One run: an act, then the host is looked at, then the next act."""
    tour = Tour(os.path.join(workdir, "ten-teams"))
    seen = []
    try:
        while (act := tour.until_pause()):
            api = tour.host()
            globals()[f"after_{act}"](tour, api)
            if act == "where":
                commands_of_the_readme(tour)
            api.close()
            seen.append(act)
            tour.go_on()
        code = tour.process.wait(120)
    except BaseException:
        print("".join(tour.said)[-8000:], tour.fleet_log(), sep="\n", file=sys.stderr)
        raise
    finally:
        tour.close()
    said = "".join(tour.said)
    assert seen == [name for name, _ in ACTS]
    assert code == 0 and "FAIL" not in said, said
    claims = re.search(r"(\d+) of (\d+) claims hold\n", said)
    assert claims and claims.group(1) == claims.group(2) == str(len(re.findall(r"^  ok   ", said, re.M)))
    for line in said.splitlines():
        assert len(line) <= 240 and "Traceback" not in line, line
    assert not left_behind(tour.dir), "processes that the tour started still run"


def left_behind(directory):
    """Processes whose command line has a path of the tour."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read().replace(b"\0", b" ").decode("utf-8", "replace")
            if directory in line and int(pid) != os.getpid():
                found.append(line)
    return found


def commands_of_the_readme(tour):
    """Each block of the README, in order; releases, which the tour has installed already, as a dry run of an upgrade."""
    with open(example("README.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```sh by=tests/integration/test_ten_teams.py\n(.*?)^```$", f.read(), re.M | re.S)
    assert len(blocks) == 4
    commands = [line for block in blocks for line in block.splitlines()]
    configs = tour.kubeconfigs
    here = {"vision.kubeconfig": configs["vision"], "/data": os.path.join(tour.dir, "fleet", "ledger")}
    k = Kubectl(binaries.host_program("kubectl"), configs["host"], tour.dir)
    for command in commands:
        words = [here.get(word, word) for word in command.split()]
        if words[0] == "kubectl":
            code, out, err = k.run(*[os.path.join(EXAMPLE, w) if w.endswith(".yaml") else w for w in words[1:]])
        elif words[0] == "helm":
            helm = Helm(os.path.join(tour.dir, "home"), configs["host"])
            words = [os.path.normpath(os.path.join(EXAMPLE, w)) if "/" in w or w.endswith(".yaml") else w for w in words]
            code, out, err = helm.run("upgrade", "--dry-run=server", *words[2:])  # the tour has installed them
        else:
            r = sublet_report(*words[2:])
            code, out, err = r.returncode, r.stdout, r.stderr
        assert code == 0, f"{command}\n{out}{err}"


def without(item, *keys):
    return {k: v for k, v in item.items() if k not in keys}


def test_a_pool_is_the_same_in_its_three_places():
    files = {name: objects(f"{name}.values.yaml")[0] for name in ("fleet", "team")}
    metered = [without(p, "metering") for p in files["fleet"]["config"]["pools"]]
    assert all(p["metering"]["price"] for p in files["fleet"]["config"]["pools"])
    assert files["team"]["hostFence"]["pools"] == metered
    shown = [{"name": o["metadata"]["name"], **o["spec"]} for f in ("pools.yaml", "640.yaml") for o in objects(f) if o["kind"] == "GPUPool"]
    assert shown == metered


def test_every_file_of_the_example_is_used():
    """And every binding is in a pool and a namespace that there are."""
    pools = {o["metadata"]["name"] for f in ("pools.yaml", "640.yaml") for o in objects(f) if o["kind"] == "GPUPool"}
    bindings = [o for f in ("bindings.yaml", "speech.yaml", "640.yaml", "640-speech.yaml") for o in objects(f) if o["kind"] == "GPUBinding"]
    assert {b["spec"]["pool"] for b in bindings} == pools
    assert {b["metadata"]["namespace"].removeprefix("team-") for b in bindings} == set(team_names())
    assert sorted(os.listdir(example("teams"))) == sorted(f"{t}.yaml" for t in team_names()) and len(team_names()) == 10
    with open(example("README.md"), encoding="utf-8") as f:
        readme = f.read()
    for name in os.listdir(EXAMPLE):
        assert name in ("README.md", "teams", "refused") or f"`{name}`" in readme, name


def test_the_chart_accepts_the_values(tmp_path):
    """What it makes of them is a configuration that `sublet check` accepts."""
    helm = Helm(tmp_path)
    made = helm.template("vision", "team-vision", None, "-f", example("team.values.yaml"), "--set", "namespaceCheck=false")
    config = next(o for o in made if o["kind"] == "ConfigMap")["data"]["config.yaml"]
    file = tmp_path / "config.yaml"
    file.write_text(config, encoding="utf-8")
    r = subprocess.run([binaries.sublet(), "check", "--config", file], text=True, capture_output=True, timeout=60, check=False)
    assert r.returncode == 0, r.stdout + r.stderr


def test_a_claim_that_fails_is_the_exit_code(tmp_path, capsys):
    """The last line says how many hold, and one that does not is an exit code of 1."""
    c = Console(str(tmp_path), str(tmp_path), str(tmp_path))
    assert c.claim("holds", lambda: "seen")

    def wrong():
        raise ValueError("what was seen instead")
    assert not c.claim("does not hold", wrong)
    assert c.summary() == 1
    said = capsys.readouterr().out
    assert "1 of 2 claims hold" in said and "what was seen instead" in said
    assert Console(str(tmp_path), str(tmp_path), str(tmp_path)).summary() == 1, "no claim at all is a failure"
