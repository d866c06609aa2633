# SPDX-License-Identifier: Apache-2.0
"""The acts of the tour, in order. Each shows what its administrator or a team would type, then checks it on the host's objects."""
import collections
import contextlib
import datetime
import json
from fractions import Fraction

from testenv import eventually

from .cluster import objects, team_names

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
# team: workload, pods, pool, resource of the host, units a pod
WORK = {
    "fraud": ("scorer", 2, "h100-fraud", GPU, 4), "research": ("sweep", 4, "a100", GPU, 1), "vision": ("trainer", 4, "a100", GPU, 1),
    "robotics": ("planner", 1, "a100", GPU, 2), "notebooks": ("notebook", 16, "l4-sliced", SHARED, 1),
    "support": ("assistant", 6, "l4-sliced", SHARED, 1), "education": ("classroom", 2, "l4-sliced", SHARED, 1),
    "search": ("ranker", 8, "l4-mps", SHARED, 1), "ads": ("bidder", 6, "l4-mps", SHARED, 1)}
MAIN = {team: work[2] for team, work in WORK.items()} | {"speech": "a100"}
GRANTS = "kubectl get gbind -A"


def machines():
    """{machine of the example: its pool, or None}"""
    return {n["metadata"]["name"]: n["metadata"]["labels"].get("sublet.dev/pool") for n in objects("nodes.yaml")}


def held(pod):
    """Units of each device resource that the host's pod requests."""
    out = collections.Counter()
    for c in pod["spec"]["containers"]:
        out.update({k: int(v) for k, v in c.get("resources", {}).get("limits", {}).items() if k.startswith("nvidia.com/")})
    return dict(out)


def on(pods):
    return sorted({p["spec"].get("nodeName", "none") for p in pods})


# --- who runs where -------------------------------------------------------------------------------------

def where(c, t):
    c.title("Nine teams are bound, and run where their pool is")
    c.claim("each team's pods with GPUs run on the machines of its pool", lambda: placed(t))
    c.claim("pods without GPUs run on the machines without", lambda: plain(t))
    c.show("host", GRANTS)
    c.show("host", "kubectl get pods -A -l sublet.dev/pool --no-headers "
                   "-o custom-columns=NODE:.spec.nodeName,TEAM:.metadata.namespace | sort | uniq -c")
    c.show("notebooks", "kubectl get pods", 4)
    c.show("notebooks", "kubectl get deployment notebook -o jsonpath='{.spec.template.spec.containers[0].resources}{\"\\n\"}'")
    c.claim("a team writes nvidia.com/gpu, the host has the pool's resource", lambda: resources(t))
    c.claim("each team sees its own pods and no others", lambda: own(t))


def placed(t):
    pools, seen = machines(), []
    for team, (work, count, pool, _, _) in WORK.items():
        pods = t.running(team, work)
        assert len(pods) == count, f"{team}: {len(pods)} of {count} run"
        assert {pools[n] for n in on(pods)} == {pool}, f"{team}: {on(pods)}"
        seen.append(len(pods))
    return f"{sum(seen)} pods of {len(seen)} teams on {sum(p is not None for p in pools.values())} machines"


def plain(t):
    nodes = set()
    for team in team_names():
        pods = t.running(team, "web")
        assert len(pods) == 1 and not held(pods[0]), team
        nodes |= set(on(pods))
    assert nodes <= {n for n, pool in machines().items() if not pool}, nodes
    return f"10 pods on {', '.join(sorted(nodes))}"


def resources(t):
    for team, (work, count, _, resource, units) in WORK.items():
        for pod in t.running(team, work):
            assert held(pod) == {resource: units}, (team, held(pod))
        template = t.teams[team].kubectl.json("get", "deployment", work)["spec"]["template"]["spec"]
        assert held({"spec": template}) == {GPU: units}, team
        assert count
    return "slices of time and MPS are nvidia.com/gpu.shared there, whole GPUs nvidia.com/gpu"


def own(t):
    total = 0
    for team, vc in t.teams.items():
        names = {p["metadata"]["name"] for p in vc.kubectl.items("pods", "-A")}
        assert names == set(t.pods(team)), team
        total += len(names)
    return f"{total} pods, each in one virtual cluster"


# --- refusals -------------------------------------------------------------------------------------------

REFUSED = [
    ("more GPUs than a pod may have", "vision", "huge",
     'pods "huge" is forbidden: guardrail max-gpus-per-pod: requested nvidia.com/gpu=8, pool "a100" allows 4'),
    ("more GPUs than the team may have", "robotics", "more",
     'pods "more" is forbidden: exceeded quota: gpu/a100, requested: gpu=1, used: gpu=2, limited: gpu=2'),
    ("two slices for one container", "support", "double", "a shared GPU request must be 1 per container, got 2"),
    ("a pool of another team", "research", "foreign", 'pool "h100-fraud" is not bound to this virtual cluster: bound a100'),
    ("a product that the pool has not", "vision", "other", 'contradicts pool "a100": allowed [NVIDIA-A100-SXM4-80GB]'),
]


def refusals(c, t):
    c.title("What a team may not have is refused at apply time, with the reason")
    for what, team, name, want in REFUSED:
        c.claim(f"refused: {what}", once(lambda x=(team, name, want): refused(c, t, *x)))
    out = c.show("ads", "kubectl scale deployment bidder --replicas=20")
    c.claim("a workload beyond the limit is warned of", lambda: warned(t, out))
    c.do("ads", "kubectl scale deployment bidder --replicas=6")
    c.title("What the host's administrator gets wrong is refused with a condition")
    c.show("host", "kubectl apply -f refused/second-team.yaml -f refused/overcommitted.yaml")
    c.claim("refused: a second team in a dedicated pool", lambda: not_ready(t, "research", "h100-fraud", "PoolDedicated"))
    c.claim("refused: a guarantee that the pool cannot hold", lambda: not_ready(t, "ads", "a100", "Overcommitted"))
    c.show("host", "kubectl get gbind -A -o wide | grep -w False")
    c.do("host", "kubectl delete -f refused/second-team.yaml -f refused/overcommitted.yaml")
    c.title("A team's process that went wrong is refused by the host itself")
    c.claim("refused by the host: a pod that the process must not create", once(lambda: fenced(c)))


def once(check):
    """A check that has to hold the first time: a command that was refused is refused once, and said aloud once."""
    def run():
        try:
            return check()
        except AssertionError as e:
            raise ValueError(e) from e
    return run


def refused(c, t, team, name, want):
    before = set(t.pods(team))
    out = c.refused(team, f"kubectl create -f refused/{name}.yaml")
    assert want in out, f"{want!r} is not in {out!r}"
    assert set(t.pods(team)) == before, "the host got a pod"
    return want.split(" is forbidden: ")[-1]


def warned(t, out):
    assert 'exceed the limit of pool "l4-mps"' in out, out
    assert len(t.running("ads", "bidder")) == WORK["ads"][1]
    return 'Warning: ... exceed the limit of pool "l4-mps"; its six pods run on'


def not_ready(t, team, name, reason):
    ready = t.condition(team, name)
    assert (ready["status"], ready["reason"]) == ("False", reason), ready
    assert t.binding(team, name)["status"].get("grant", "0") == "0"
    return f"{reason}: {ready['message']}"


def fenced(c):
    out = c.refused("host", "kubectl create -n team-ads --as=system:serviceaccount:team-ads:ads -f refused/rogue.yaml")
    assert "ValidatingAdmissionPolicy" in out, out
    return "by a ValidatingAdmissionPolicy of the chart"


# --- borrowing and reclaim ------------------------------------------------------------------------------

def borrowing(c, t):
    c.title("Research borrows what is idle in pool a100, until the tenth team gets its guarantee")
    c.do("research", "kubectl scale deployment sweep --replicas=8")
    c.claim("a team borrows what is idle, beyond its guarantee", lambda: borrowed(t))
    c.show("host", "kubectl get gbind -n team-research")
    c.show("host", "kubectl apply -f speech.yaml")
    c.claim("the pods that will end are announced, with the time", lambda: announced(t))
    c.show("host", GRANTS + " -o wide | grep -wE 'NAME|a100'")
    c.show("research", "kubectl get events --field-selector reason=ReclaimedByFleet -o custom-columns=POD:.involvedObject.name,WHY:.message", 4)
    c.show("speech", "kubectl get pods -l app=transcribe")
    c.claim("the guarantee is there after the notice", lambda: guaranteed(t), 90)
    c.claim("no pod within a guarantee was ended for it", lambda: kept(t))
    c.show("speech", "kubectl get pods -l app=transcribe")
    c.show("host", GRANTS + " | grep -wE 'NAME|a100'")


def borrowed(t):
    pods = t.running("research", "sweep")
    grant = Fraction(t.binding("research", "a100")["status"]["grant"])
    assert len(pods) == 8 and grant >= 8, (len(pods), grant)
    return f"8 GPUs held, 4 of them guaranteed, granted {grant}"


def announced(t):
    reclaim = t.binding("research", "a100")["status"]["reclaim"]
    marked = [p for p in t.teams["research"].kubectl.items("pods", "-l", "app=sweep") for x in p["status"].get("conditions", [])
              if (x["type"], x["status"], x.get("reason")) == ("DisruptionTarget", "True", "ReclaimedByFleet")]
    assert len(marked) == int(reclaim["gpus"]) and reclaim["notBefore"], (len(marked), reclaim)
    return f"{reclaim['gpus']} pods of research end from {reclaim['notBefore']} on"


def guaranteed(t):
    pods = t.running("speech", "transcribe")
    assert len(pods) == 4, f"{len(pods)} of 4 run"
    assert t.binding("speech", "a100")["status"]["grant"] == "4"
    return "4 pods of speech run, granted 4"


def kept(t):
    counts = {team: len(t.running(team, WORK[team][0])) for team in ("research", "vision", "robotics")}
    assert counts["research"] >= 4 and counts["vision"] == 4 and counts["robotics"] == 1, counts
    return f"research keeps {counts['research']}, vision 4, robotics 2 GPUs"


# --- a machine dies -------------------------------------------------------------------------------------

def death(c, t):
    c.title("A machine with eight GPUs dies")
    c.do("research", "kubectl scale deployment sweep --replicas=1")
    lost = on(t.running("vision", "trainer"))[0]
    names = [n for n, p in t.pods("vision").items() if n.startswith("trainer-") and p["spec"].get("nodeName") == lost]
    with silence(t, lost):
        c.claim("the team sees its pods lost, and its machine not Ready", lambda: shown_lost(t, names, lost))
        c.show("vision", "kubectl get pods -l app=trainer")
        c.show("host", "kubectl get gpool a100")
        c.claim("the time of a dead machine is billed to no team", lambda: unbilled(t, lost))
        c.say("  Its administrator is sure that it is off:")
        c.show("host", "kubectl patch gpool a100 --type=merge -p '{\"spec\":{\"release\":{\"onNodeLossAfter\":\"1s\"}}}'")
        c.claim("lost pods leave by the pool's rule, replacements take their place", lambda: replaced(t, names, lost))
    c.show("host", "kubectl delete node " + lost)
    c.do("host", f"echo '{json.dumps(spare(lost))}' | kubectl apply -f -")
    c.claim("with another machine everything runs again", lambda: recovered(t, names))
    c.show("vision", "kubectl get pods -l app=trainer -o wide")


@contextlib.contextmanager
def silence(t, node):
    """The machine does not answer, and its pods are not ended: kwok, which plays all kubelets, stands still, for less than the
    host gives the others."""
    t.host.pause_component("kwok")
    try:
        t.host.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}})
        t.host.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}]}})
        yield
    finally:
        t.host.resume_component("kwok")


def spare(lost):
    node = next(n for n in objects("nodes.yaml") if n["metadata"]["name"] == lost)
    node["metadata"]["name"] = node["metadata"]["labels"]["kubernetes.io/hostname"] = "gpu-a100-3"
    return node


def shown_lost(t, names, lost):
    k = t.teams["vision"].kubectl
    status = {n: k.json("get", "pod", n)["status"] for n in names}
    assert all(s.get("reason") == "NodeLost" for s in status.values()), {n: (s["phase"], s.get("reason")) for n, s in status.items()}
    ready = next(x for x in k.json("get", "node", lost)["status"]["conditions"] if x["type"] == "Ready")
    assert ready["status"] == "Unknown", ready
    return f"{len(names)} pods with reason NodeLost on {lost}"


def seconds_on(t, node, kind):
    return sum(Fraction(x["gpuHoursExact"]) * 3600 for x in t.fleet.lines("node", node=node, kind=kind))


def unbilled(t, lost):
    before = seconds_on(t, lost, "held"), seconds_on(t, lost, "unhealthy"), t.fleet.report()["until"]
    assert before[1] > 0

    def later():
        held_now, unhealthy = seconds_on(t, lost, "held"), seconds_on(t, lost, "unhealthy")
        return unhealthy >= before[1] + 24 and (held_now, unhealthy)
    held_now, unhealthy = eventually(later, 60, "three seconds of eight GPUs")
    assert held_now == before[0], f"held grew from {before[0]} to {held_now}"
    return f"held {float(held_now):.0f} GPU-seconds on {lost} and no more; unhealthy {float(unhealthy):.0f} and counting"


def replaced(t, names, lost):
    pods = t.pods("vision")
    assert not set(names) & set(pods), "lost pods are still on the host"
    now = [p for n, p in pods.items() if n.startswith("trainer-")]
    assert len(now) == 4 and lost not in on(now), on(now)
    return f"{len(names)} replacements, none on {lost}"


def recovered(t, names):
    for team in ("vision", "speech", "robotics"):
        work, count = ("transcribe", 4) if team == "speech" else WORK[team][:2]
        pods = t.running(team, work)
        assert len(pods) == count, f"{team}: {len(pods)} of {count} run"
    assert not set(names) & set(t.pods("vision"))
    return f"vision runs on {', '.join(on(t.running('vision', 'trainer')))}"


# --- 200 of 640 -----------------------------------------------------------------------------------------

OTHERS = {"fraud": 7, "vision": 7, "robotics": 7, "notebooks": 7, "support": 7, "education": 7, "search": 7, "ads": 6}


def hoarding(c, t):
    c.title("One team holds 200 of 640 GPUs, another one starves")
    t.add_machines("train", "h100", 80)
    c.show("host", "kubectl apply -f 640.yaml", 1)
    for team in team_names():
        c.do(team, "kubectl apply -f 640-work.yaml")
    c.claim("what no guarantee covers is granted to the one who may borrow", lambda: granted(t, "research", "200"))
    for team, machines_ in {**OTHERS, "research": 25}.items():
        c.do(team, f"kubectl scale deployment training --replicas={machines_}")
    c.do("speech", "kubectl scale deployment training --replicas=12")
    c.claim("one team holds 200 of 640 GPUs, the others hold 440", lambda: hoarded(t), 90)
    c.show("host", "kubectl get gpool train")
    c.show("speech", "kubectl get deployment training")
    c.show("host", "kubectl apply -f 640-speech.yaml")
    c.claim("its guarantee of 96 is taken from what is borrowed", lambda: announced_200(t))
    c.show("host", "kubectl get gbind -n team-research train -o wide")
    c.claim("after the notice the team that starved has its 96 GPUs", lambda: fed(t), 90)
    c.show("speech", "kubectl get deployment training")
    c.show("host", GRANTS + " | grep -wE 'NAME|train'")


def granted(t, team, gpus):
    grant = t.binding(team, "train")["status"]["grant"]
    assert grant == gpus, grant
    return f"granted {grant}: 104 guaranteed, 96 borrowed"


def training(t, team):
    return 8 * len(t.running(team, "training"))


def hoarded(t):
    counts = {team: training(t, team) for team in team_names()}
    assert counts["research"] == 200 and counts["speech"] == 0 and sum(counts.values()) == 640, counts
    return "research 200, speech 0, the others 440"


def announced_200(t):
    status = t.binding("research", "train")["status"]
    assert status["grant"] == "104" and status["reclaim"]["gpus"] == "96", status
    return f"research is granted 104 now, 96 are to be given up from {status['reclaim']['notBefore']} on"


def fed(t):
    counts = {team: training(t, team) for team in team_names()}
    assert counts["speech"] == 96 and counts["research"] == 104 and sum(counts.values()) == 640, counts
    return "speech 96, research 104, the others 440: none idle"


# --- the report -----------------------------------------------------------------------------------------

def report(c, t):
    c.title("Who used what, and what it costs")
    c.show("host", f"sublet report --data-dir {t.fleet.store} --by tenant,pool")
    c.claim("sum of tenants + idle + unhealthy = capacity x time", lambda: adds_up(t))
    c.claim("a team is billed what the host shows of its pods", lambda: billed(t))


def adds_up(t):
    made = t.fleet.report("tenant,pool")
    for b in made["balances"]:
        lines = [x for x in made["lines"] if x["pool"] == b["pool"]]
        parts = {k: sum(Fraction(x["gpuHoursExact"]) for x in lines if x["kind"] == k) for k in ("held", "idle", "unhealthy")}
        assert sum(parts.values()) == Fraction(b["capacity"]) + Fraction(b["unmatched"]), b
        assert {x["tenant"] for x in lines if x["kind"] == "held"} <= {f"team-{n}" for n in team_names()}
    whole = sum(Fraction(b["capacity"]) for b in made["balances"])
    tenants = sum(Fraction(x["gpuHoursExact"]) for x in made["lines"] if x["kind"] == "held")
    return f"{float(tenants):.4f} held by tenants, {float(whole):.4f} GPU-hours of capacity, {len(made['balances'])} pools, exactly"


def moment(stamp):
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00"))


def billed(t):
    """Fraud's two pods ran from the first act on: eight GPUs, from their PodScheduled to the end of the report."""
    made = t.fleet.report("tenant,pool")
    until = moment(made["until"])
    line, = (x for x in made["lines"] if (x["kind"], x["tenant"], x["pool"]) == ("held", "team-fraud", "h100-fraud"))
    want = Fraction(0)
    for p in t.running("fraud", "scorer"):
        begin = next(x["lastTransitionTime"] for x in p["status"]["conditions"] if x["type"] == "PodScheduled")
        want += 4 * Fraction((until - moment(begin)).total_seconds())
    got = Fraction(line["gpuHoursExact"]) * 3600
    assert abs(got - want) < 8, (float(got), float(want))
    return f"fraud: {float(got):.0f} GPU-seconds by the ledger, {float(want):.0f} by its pods' PodScheduled"


ACTS = [("where", where), ("refusals", refusals), ("borrowing", borrowing), ("death", death), ("hoarding", hoarding), ("report", report)]
