# SPDX-License-Identifier: Apache-2.0
"""What a process costs, read from /proc, and the rows of a table."""
import os
import re
import statistics


def memory_mb(pid):
    """resident; proportional (its share of every page); private (pages of this process alone, and that no
    file could give back: what one more process like it costs); and what is mapped by it alone."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        kb = {k: int(v) for k, v in re.findall(r"(\w+): +(\d+) kB", f.read())}
    return {"resident": kb["Rss"] / 1024, "proportional": kb["Pss"] / 1024,
            "private": kb["Anonymous"] / 1024}


def memory_of(pids):
    """The sum of memory_mb() over processes."""
    each = [memory_mb(pid) for pid in pids]
    return {k: sum(m[k] for m in each) for k in each[0]}


def cpu_seconds(pid):
    """Of all its threads, to a nanosecond: an idle process uses less than a clock tick."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        except FileNotFoundError:
            pass  # a thread that ended meanwhile
    return total / 1e9


def switches(pid):
    """How often it went to sleep: an idle process is not woken."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as f:
                total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M).group(1))
        except FileNotFoundError:
            pass
    return total


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))]


def number(value):
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


class Table:
    """Rows of `what, ours, the peer's, the machine's limit`, each a list of one value per round.

    The ratio says how many times better Sublet is: `more` rows by more, the others by less.
    """

    def __init__(self, peer):
        self.rows = []
        self.peer = peer

    def add(self, what, ours, peer=(), limit=(), more=False):
        self.rows.append((what, list(ours), list(peer), list(limit), more))

    @staticmethod
    def _ratio(ours, peer, more):
        pairs = [(a / b if more else b / a) for a, b in zip(ours, peer) if a and b]
        if not pairs:
            return f"{'':>8}"
        spread = f"  {min(pairs):.1f} to {max(pairs):.1f}" if len(pairs) > 1 else ""
        return f"{statistics.median(pairs):7.1f}x{spread}"

    def print(self):
        print(f"{'':38}{'sublet':>10}{self.peer:>10}{'limit':>10}{'ratio':>9}  spread")
        for what, ours, peer, limit, more in self.rows:
            cells = "".join(f"{number(statistics.median(v) if v else None):>10}" for v in (ours, peer, limit))
            print(f"{what:38}{cells} {self._ratio(ours, peer, more)}".rstrip())
