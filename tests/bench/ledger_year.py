# SPDX-License-Identifier: Apache-2.0
"""A year of holds in a ledger: the generator that fleet.py's reports are made of.

    tenants     teams with names of their own, each in the pool of its number
    nodes       of eight GPUs, so many in each pool; each fails MONTHLY times a month for two hours, all at its own times
    holds       on each node one after the other in eight lanes of one GPU, until the year is over: they last from a minute
                to what makes their number right, with no time between them in half of the cases
    guarantees  of each team in its pool, changed CHANGES times in the year
    names       of pods, owners and namespaces as ReplicaSets and Jobs make them

Deterministic: the same numbers make the same rows. The rows go into a ledger that `sublet fleet` made and that is closed.
"""
import random
import sqlite3

SECOND = 1_000_000
YEAR = 365 * 86400 * SECOND
BEGIN = 1_735_689_600 * SECOND  # 2025-01-01
LANES = 8
MONTHLY = 1
OUTAGE = 2 * 3600 * SECOND
CHANGES = 12
POOLS = ("a100", "h100", "l40s", "l4")
HOLD = ("INSERT INTO hold(id, pod_uid, tenant, cluster, ns, name, owner, node, pool, product, resources, gpu_num, gpu_den, begin_us)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
CAPACITY = ("INSERT INTO capacity(node, pool, product, from_us, total_num, total_den, unhealthy_num, unhealthy_den, down, estimated)"
            " VALUES(?,?,?,?,8,1,0,1,?,0)")
GUARANTEE = ("INSERT INTO guarantee(tenant, pool, from_us, bound, num, den, granted_num, granted_den, labels)"
             " VALUES(?,?,?,1,?,1,?,1,?)")


def outages(rng):
    return sorted(rng.randrange(YEAR - OUTAGE) // SECOND * SECOND for _ in range(12 * MONTHLY))


def capacities(rng, node, pool):
    yield (node, pool, "NVIDIA-" + pool.upper(), BEGIN, 0)
    for at in outages(rng):
        yield (node, pool, "NVIDIA-" + pool.upper(), BEGIN + at, 1)
        yield (node, pool, "NVIDIA-" + pool.upper(), BEGIN + at + OUTAGE, 0)


def guarantees(rng, tenants):
    for n in range(tenants):
        for at in sorted(rng.randrange(YEAR) // SECOND * SECOND for _ in range(CHANGES)):
            gpus = rng.randrange(20)
            yield (f"team-{n}", POOLS[n % len(POOLS)], BEGIN + at, gpus, gpus + 2, f"cost-center={n % 10}\n")


def holds(rng, mean, node, pool, teams):
    """(tenant, name, owner, begin, end) of one lane after the other."""
    for lane in range(LANES):
        at, number = rng.randrange(2 * mean), 0
        while at < YEAR:
            end = at + 60 * SECOND + rng.randrange(2 * mean)
            team = teams[rng.randrange(len(teams))]
            job = f"train-{rng.randrange(1000)}"
            yield (team, f"{job}-{node}-{lane}-{number}", "Job/" + job, node, pool, BEGIN + at, BEGIN + min(end, YEAR))
            at, number = end + (0 if rng.random() < 0.5 else rng.randrange(mean // 4)), number + 1


def fill(path, tenants, nodes, count):
    """Writes about `count` holds into the ledger file; returns how many."""
    rng = random.Random(7)
    db = sqlite3.connect(path)
    mean = YEAR * nodes * LANES // count * 8 // 9
    made = 0
    with db:
        db.executemany(GUARANTEE, guarantees(random.Random(11), tenants))
        db.execute("UPDATE meta SET value = ? WHERE key = 'begin'", (BEGIN,))
        db.execute("UPDATE meta SET value = ? WHERE key = 'seen'", (BEGIN + YEAR,))
        for number, pool in enumerate(POOLS):
            db.execute("INSERT INTO price(pool, from_us, num, den, currency) VALUES(?,?,?,10,'USD')", (pool, BEGIN, 6 + 9 * number))
        for n in range(nodes):
            pool = POOLS[n % len(POOLS)]
            teams = [f"team-{i}" for i in range(n % len(POOLS), tenants, len(POOLS))] or ["team-0"]
            db.executemany(CAPACITY, capacities(rng, f"gpu-{n}", pool))
            rows, ends = [], []
            for team, name, owner, node, of, begin, end in holds(rng, mean, f"gpu-{n}", pool, teams):
                made += 1
                uid = f"{made:08x}-1111-4222-8333-{made:012x}"
                rows.append((made, uid, team, f"c-{team}", "default", name, owner, node, of, "NVIDIA-" + of.upper(),
                             "nvidia.com/gpu=1", 1, 1, begin))
                ends.append((made, end))
            db.executemany(HOLD, rows)
            db.executemany("INSERT INTO hold_end VALUES(?,?,'Succeeded',0)", ends)
    db.close()
    return made
