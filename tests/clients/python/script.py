# SPDX-License-Identifier: Apache-2.0
"""A scenario as steps: each prints one line, `NAME: what the client saw` in JSON, and none ends the program.

What differs between two runs of one server (uids, revisions, times, addresses) is left to compare.py.
"""
import json
import os
import time
import traceback

NAMESPACE = os.environ["CLIENT_NAMESPACE"]
WAIT = float(os.environ["CLIENT_WAIT"])  # seconds, of everything that is waited for


class Script:
    def __init__(self):
        self.steps = []

    def step(self, fn):
        """Decorator: a step of the scenario, in the order of the file."""
        self.steps.append(fn)
        return fn

    def run(self, *args):
        for fn in self.steps:
            name = fn.__name__.replace("_", "-")
            try:
                result = fn(*args)
            except Exception as e:  # pylint: disable=broad-except - an unexpected answer is an outcome
                traceback.print_exc()
                result = f"UNEXPECTED {type(e).__name__}: {' '.join(str(e).split())}"
            print(f"{name}: {show(result)}", flush=True)
        print(f"end: {len(self.steps)} steps", flush=True)
        os._exit(0)  # a thread that a failed step left behind would keep the program


def show(value):
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def eventually(fn, what):
    """Calls fn until it returns something true, and returns that."""
    begin = time.monotonic()
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() - begin > WAIT:
            raise TimeoutError(f"waited for {what}; last answer: {value!r}")
        time.sleep(0.05)
