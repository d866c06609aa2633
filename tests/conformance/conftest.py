# SPDX-License-Identifier: Apache-2.0
"""Options of the suite, one test per name of a rung, and the one run of e2e.test they all read."""
import os

import pytest

from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name

import ladder


def pytest_addoption(parser):
    parser.addoption("--rung", default="r0", choices=ladder.RUNGS,
                     help="the highest rung that is run; those below are run with it")
    parser.addoption("--alone", action="store_true", help="that rung without those below")
    parser.addoption("--all", action="store_true", help="the slow ones too")
    parser.addoption("--company", default="native", choices=[*sorted(ladder.COMPANIES), ladder.HOST_COMPANY],
                     help="who runs the controllers: the process itself, or upstream's manager; or `sublet host`")
    parser.addoption("--processes", type=int, default=4, help="how many runs of e2e.test at a time")
    parser.addoption("--later", action="store_true", help="what later.txt names too")


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        option = metafunc.config.getoption
        names = ladder.names(option("rung"), option("all"), option("later"), option("company"),
                              option("alone"))
        metafunc.parametrize("name", names, ids=ladder.short)


@pytest.fixture(scope="session")
def outcomes(request, workdir):
    """{name: None when it passed, else why not} of the tests that were selected."""
    wanted = [item.callspec.params["name"] for item in request.session.items if hasattr(item, "callspec")]
    option = request.config.getoption
    host = None if option("company") == ladder.HOST_COMPANY else request.getfixturevalue(
        "node_host" if option("rung") == ladder.ON_NODE else "host")
    if host and option("rung") in ("r0", "r1"):  # below it pods stay pending: some tests want them not to end
        host.stop_component("kube-scheduler")
    return ladder.run_all(host, os.path.join(workdir, "conformance"), wanted, option("company"),
                          option("processes"), option("rung"))
