# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition: the only place of the test suite that sleeps.

A deadline is what the condition takes at most on a machine with a processor to spare. Where more threads want to run
than there are processors, it grows with them, at most MOST_CROWDED times: what never happens, or takes minutes where
it ought to take seconds, still fails.
"""
import http.client
import os
import ssl
import time

import pytest

# A slow machine may need more patience; a test never asserts a time, so this changes no result.
PATIENCE = float(os.environ.get("SUBLET_TEST_PATIENCE", "1"))
MOST_CROWDED = 4.0

# For `also`: what reading a field raises before its author has written it ...
UNSET = (KeyError, IndexError, StopIteration)
# ... and what a server that stops or starts does to a connection.
AWAY = (ConnectionError, http.client.HTTPException, ssl.SSLError)


def crowd():
    """How many threads want each processor, by the load of the last minute: from 1 to MOST_CROWDED."""
    return min(max(os.getloadavg()[0] / os.cpu_count(), 1.0), MOST_CROWDED)


def not_yet(e, also=()):
    """Whether an exception means that the condition may still come.

    It does when it is one of `also` (exception types, and HTTP codes of an ApiError), a refused connection, an
    assertion or what pytest.raises says when nothing was raised. Errors of the API and of kubectl are assertions and
    say for themselves: 404, 409 and 503 may pass, all others will not.
    """
    if isinstance(e, tuple(k for k in also if isinstance(k, type))) or getattr(e, "code", None) in also:
        return True
    return isinstance(e, (AssertionError, ConnectionRefusedError, pytest.fail.Exception)) and \
        getattr(e, "may_pass", True)


def eventually(fn, timeout=30.0, what=None, interval=0.05, also=()):
    """Calls fn until it returns something true and returns that.

    An exception that is not_yet() is an attempt that failed; any other ends the wait. After `timeout` seconds, more on
    a crowded machine, an AssertionError says what was waited for and what the last attempt answered. The pause grows
    from `interval` to one second.
    """
    what = what or getattr(fn, "__name__", "condition")
    begin = time.monotonic()
    pause, crowded = interval, 1.0
    while True:
        try:
            value = fn()
            if value:
                return value
            last = f"last answer: {value!r}"
        except (Exception, pytest.fail.Exception) as e:
            if not not_yet(e, also):
                raise
            last = f"last error: {type(e).__name__}: {e}"
        crowded = max(crowded, crowd())
        waited = time.monotonic() - begin
        if waited >= timeout * PATIENCE * crowded:
            raise AssertionError(f"waited {waited:.0f} s for {what}; {last}")
        time.sleep(pause)
        pause = min(pause * 1.5, 1.0)


def never(fn, duration, what, interval=0.1):
    """Asserts that fn returns nothing true for `duration` seconds (for what must not happen)."""
    deadline = time.monotonic() + duration
    while time.monotonic() < deadline:
        value = fn()
        assert not value, f"{what}: {value!r}"
        time.sleep(interval)
