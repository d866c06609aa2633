# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition: the only place of the test suite that sleeps."""
import os
import time

import pytest

# A loaded machine may ask for more patience; a test never asserts a time, so this changes no result.
PATIENCE = float(os.environ.get("SUBLET_TEST_PATIENCE", "1"))
# A wait ends with what it waits for: a short limit proves nothing, and fails where others take the processor.
LEAST = 180


def eventually(fn, timeout=30.0, what=None, interval=0.05):
    """Calls fn until it returns something true and returns that.

    An exception of fn counts as "not yet", and so does pytest.raises that saw none. After `timeout` seconds, and never before LEAST, an AssertionError says
    what was waited for and what the last attempt answered. The pause grows from `interval` to one second.
    """
    what = what or getattr(fn, "__name__", "condition")
    patience = max(timeout, LEAST) * PATIENCE
    deadline = time.monotonic() + patience
    pause = interval
    while True:
        last = None
        try:
            value = fn()
            if value:
                return value
            last = f"last answer: {value!r}"
        except (Exception, pytest.fail.Exception) as e:  # noqa: BLE001 - whatever fn raises is an attempt that failed
            last = f"last error: {type(e).__name__}: {e}"
            if getattr(e, "fatal", False):
                raise
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {patience:.0f} s for {what}; {last}")
        time.sleep(pause)
        pause = min(pause * 1.5, 1.0)


def never(fn, duration, what, interval=0.1):
    """Asserts that fn returns nothing true for `duration` seconds (for what must not happen)."""
    deadline = time.monotonic() + duration
    while time.monotonic() < deadline:
        value = fn()
        assert not value, f"{what}: {value!r}"
        time.sleep(interval)
