# SPDX-License-Identifier: Apache-2.0
"""The suite waits as long as it says, and only for what may still come."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from testenv import Api, ApiError, KubectlError, wait  # noqa: E402
from testenv.host import HostApi  # noqa: E402
from testenv.process import ProcessDied  # noqa: E402


class Clock:
    """Time that goes on only by sleeping, on two processors with so many threads that want to run."""

    def __init__(self, monkeypatch, load=0.5):
        self.now = 0.0
        monkeypatch.setattr(wait.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(wait.time, "sleep", self.sleep)
        monkeypatch.setattr(wait.os, "getloadavg", lambda: (load, 0, 0))
        monkeypatch.setattr(wait.os, "cpu_count", lambda: 2)
        monkeypatch.setattr(wait, "PATIENCE", 1.0)

    def sleep(self, seconds):
        self.now += seconds


def api_error(code):
    return ApiError("GET /x", code, {"message": "no"})


def kubectl_error(text):
    return KubectlError(("get", "x"), 1, "", text)


def attempts(first, also=()):
    """How often a function is called that raises `first` once and succeeds after it."""
    calls = []

    def fn():
        calls.append(1)
        if len(calls) == 1:
            raise first
        return True

    wait.eventually(fn, 30, "it", also=also)
    return len(calls)


MAY_PASS = [AssertionError("x"), ConnectionRefusedError(), api_error(404), api_error(409), api_error(503),
            kubectl_error("Error from server (NotFound): x"),
            kubectl_error("The connection to the server 127.0.0.1:1 was refused - did you specify the right host")]
ENDS = [KeyError("x"), TypeError(), TimeoutError(), ConnectionResetError(), api_error(400), api_error(403), api_error(429),
        api_error(500), kubectl_error("error: unknown flag: --x"), kubectl_error("Error from server (Forbidden): x"),
        ProcessDied("x")]


@pytest.mark.parametrize("error", MAY_PASS, ids=repr)
def test_what_may_pass_is_tried_again(monkeypatch, error):
    Clock(monkeypatch)
    assert attempts(error) == 2


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_all_else_ends_the_wait_at_once(monkeypatch, error):
    clock = Clock(monkeypatch)
    with pytest.raises(type(error)):
        attempts(error)
    assert clock.now == 0


def test_a_call_names_what_else_may_pass(monkeypatch):
    Clock(monkeypatch)
    assert attempts(KeyError("x"), wait.UNSET) == 2
    assert attempts(ConnectionResetError(), wait.AWAY) == 2
    assert attempts(api_error(429), (429,)) == 2
    with pytest.raises(ApiError):
        attempts(api_error(500), (429, *wait.AWAY))


def test_nothing_raised_is_an_attempt_that_failed(monkeypatch):
    Clock(monkeypatch)
    calls = []

    def refused():
        calls.append(1)
        with pytest.raises(ApiError):
            if len(calls) == 2:
                raise api_error(403)
        return True

    assert wait.eventually(refused)
    assert len(calls) == 2


@pytest.mark.parametrize("load,most", [(0.5, 31), (6, 92), (1000, 122)])
def test_the_deadline_is_the_one_named_and_grows_with_the_crowd(monkeypatch, load, most):
    clock = Clock(monkeypatch, load)
    with pytest.raises(AssertionError, match="for the pod; last answer: None"):
        wait.eventually(lambda: None, 30, "the pod")
    assert most - 2 <= clock.now <= most


@pytest.mark.parametrize("method,codes,asked", [("GET", [504, 504], 3), ("GET", [504, 504, 504], None), ("GET", [500], None),
                                                ("POST", [504], None)])
def test_a_read_that_a_starved_host_gave_up_is_made_again(monkeypatch, method, codes, asked):
    left, calls = list(codes), []

    def request(_self, *_args, **_kw):
        calls.append(1)
        if left:
            raise api_error(left.pop(0))
        return "answer"

    monkeypatch.setattr(Api, "request", request)
    host = object.__new__(HostApi)  # without a kubeconfig
    if asked is None:
        with pytest.raises(ApiError):
            host.request(method, "/x")
        assert len(calls) == len(codes)
    else:
        assert host.request(method, "/x") == "answer" and len(calls) == asked
