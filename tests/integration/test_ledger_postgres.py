# SPDX-License-Identifier: Apache-2.0
"""The ledger in PostgreSQL: the bill is that of a ledger in a file beside it, whatever is killed meanwhile."""
import os
import re
import secrets
import subprocess
from datetime import datetime, timezone
from fractions import Fraction

import pytest

from testenv import binaries, eventually
from testenv.fleet import Fleet, sublet_report
from testenv.postgres import PASSWORD, PostgresServer
from testenv.virtual import sanitizer_env

from test_fleet import LOCAL, check_sums, finish, gpu_pod, host_seconds, priced, seconds  # noqa: F401 (priced is a fixture)
from test_tenant import host_pod, running


@pytest.fixture
def server():
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def fleets(workdir, host, priced, server):  # noqa: F811
    """fleets(**kw) -> a Fleet in a namespace of its own, so that each acts."""
    made = []

    def make(**kw):
        tag = secrets.token_hex(3)
        host.create_namespace(f"fleet-p{tag}")
        made.append(Fleet(os.path.join(workdir, "fleet", f"p{tag}"), host, f"fleet-p{tag}", priced["pools"], args=LOCAL, **kw))
        return made[-1]

    yield make
    for fleet in made:
        if not server.process.alive:
            server.start()
        fleet.close()
        host.delete_namespace(fleet.config["host"]["namespace"])


def metric(fleet, name):
    return fleet.metrics()[f"sublet_fleet_{name}"][frozenset()]


def test_the_bill_is_that_of_a_file(host, tenant, priced, fleets, server, tmp_path):  # noqa: F811
    pods = ("stays", "ends", "fleet-away", "server-away")
    file = fleets().start()
    # The server is away at the start: the fleet waits for it, and says so.
    there = server.location("ledger", create=False)
    fleet = fleets(postgres=there, lease="10s").start(wait=False)
    eventually(lambda: "the ledger cannot be written" in fleet.process.tail(), 30, "the trouble in the log")
    assert (metric(fleet, "leader"), metric(fleet, "ledger_trouble")) == (1, 1)
    server.start()
    server.sql("CREATE SCHEMA ledger")
    fleet.wait_ready()
    eventually(lambda: metric(fleet, "ledger_trouble") == 0, 30, "the end of the trouble")

    a = tenant("alpha", config=priced)
    for name in pods:
        a.kubectl.apply(gpu_pod(name, 1, "a100"))
    for name in pods:
        running(a.kubectl, name)
    want = {"ends": host_seconds(finish(host, host_pod(a, "ends")))}

    fleet.kill()
    want["fleet-away"] = host_seconds(finish(host, host_pod(a, "fleet-away")))
    fleet.start()
    server.kill()
    want["server-away"] = host_seconds(finish(host, host_pod(a, "server-away")))
    eventually(lambda: metric(fleet, "ledger_waiting_rows") > 0 and metric(fleet, "ledger_trouble") == 1, 30, "rows that wait")
    server.start()
    eventually(lambda: metric(fleet, "ledger_waiting_rows") == 0 and metric(fleet, "ledger_trouble") == 0, 30, "all rows to be there")

    def lines(f):
        return {x["pod"]: x for x in f.lines("tenant,pod,pool", tenant=a.namespace)}
    eventually(lambda: all(n in lines(f) and not lines(f)[n]["running"] for n in want for f in (file, fleet)), 30, "the ends on record")
    eventually(lambda: all(seconds(lines(f)[n]) == want[n] for n in want for f in (file, fleet)), 30, "the whole of them to be seen")
    for name, s in want.items():
        ours, theirs = lines(fleet)[name], lines(file)[name]
        assert ours["costExact"] == theirs["costExact"] and Fraction(ours["costExact"]) == Fraction(s, 3600) * Fraction("2.50")
        assert (ours["pods"], ours["estimated"]) == (theirs["pods"], theirs["estimated"]) == (1, 0)
    assert lines(fleet)["stays"]["running"] == 1
    report = fleet.report()
    check_sums(report)

    # A statement, twice the same, and the rows of the table as the documentation shows them.
    def statement():
        until = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        r = sublet_report("statement", *fleet.ledger, "--from", report["from"], "--to", until, "--key", str(tmp_path / "key"))
        return r.returncode == 0 and (r.stdout, until)
    key = sublet_report("key", "--key", str(tmp_path / "key"), "--new")
    (tmp_path / "pub").write_text(key.stdout)
    issued, issued_until = eventually(statement, 60, "a statement of what was observed")
    again = sublet_report("statement", *fleet.ledger, "--from", report["from"], "--to", issued_until)
    assert again.stdout == issued
    (tmp_path / "1.json").write_text(issued)
    verified = sublet_report("verify", "--public-key", str(tmp_path / "pub"), str(tmp_path / "1.json"))
    assert verified.returncode == 0, verified.stderr
    assert server.sql("SELECT count(*) FROM ledger.hold JOIN ledger.hold_end ON hold = id"
                      f" WHERE tenant = '{a.namespace}'") == str(len(want))

    # Into a file, and back into another schema; not over what is there, nor while it is written.
    def copy(*where):
        return subprocess.run([binaries.sublet(), "ledger", "copy", *where], text=True, capture_output=True, timeout=120,
                              env={**os.environ, **sanitizer_env()}, check=False)
    copied, back = str(tmp_path / "copied"), server.location("back")
    refused = copy("--from-postgres", there, "--to", copied)
    assert refused.returncode == 1 and "another process has it open" in refused.stderr
    fleet.stop()
    for where in (("--from-postgres", there, "--to", copied), ("--from", copied, "--to-postgres", back)):
        done = copy(*where)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^statement +1 rows, the same in both$", done.stdout, re.M)
        assert "there is something already" in copy(*where).stderr
    until = fleet.report()["until"]
    reports = [sublet_report(*where, "--by", "tenant,pod,pool,reason", "--format", "json", "--to", until).stdout
               for where in (fleet.ledger, ("--data-dir", copied), ("--postgres", back))]
    assert reports[0] and reports[0] == reports[1] == reports[2]
    assert sublet_report("statement", "--postgres", back, "--from", report["from"], "--to", issued_until).stdout == issued
    assert copy("--from", str(tmp_path / "none"), "--to", str(tmp_path / "more")).returncode == 1
    assert not os.path.exists(tmp_path / "none")
    server.sql("INSERT INTO back.gap(from_us, until_us) VALUES (1, 2)")  # the next id is a free one
    fleet.start()

    # A second fleet of the same ledger waits for its lock.
    second = fleets(postgres=there).start(wait=False)
    eventually(lambda: "another process has it open" in second.process.tail(), 30, "the second to wait")
    assert "ready" not in second.process.output()
    fleet.stop()
    second.wait_ready()
    assert lines(second)["ends"] == {**lines(second)["ends"], "costExact": lines(file)["ends"]["costExact"]}
    for f in (fleet, second):
        assert not any(part in f.process.output() + f.process.tail(10000) for part in (PASSWORD, "t0p", "secret of"))
