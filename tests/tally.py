# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of one suite and counts them one by one; the last line is `N passed, N failed`.

  tally.py meson BUILD SUITE        the test programs meson knows under tests/SUITE (TAP where they speak it)
  tally.py pytest DIRECTORY [ARG..] a pytest suite
  tally.py scripts FILE...          executables: one test each

A skip fails: a tool that ought to exist is missing. So does a program that stops before its plan's end,
one that ends with an error after its last test (a leak), and one that does not end.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
_RESULT = re.compile(r"^\s*(ok|not ok)\b[ \t]*\d*[ \t]*-?[ \t]*(.*)$", re.M)
_PLAN = re.compile(r"^\s*1\.\.(\d+)\s*$", re.M)
_SKIP = re.compile(r"#\s*skip", re.I)


def run(argv, timeout, cwd=None, env=None):
    """(exit code, output) of a program; the code is None when it had to be ended."""
    p = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, env={**SANITIZERS, **os.environ, **(env or {})},
                         start_new_session=True)
    try:
        out, _ = p.communicate(timeout=timeout)
        code = p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, _ = p.communicate()
        code = None
    return code, out.decode("utf-8", "replace")


def count_tap(code, out):
    """(passed, failures) of one program's output; a program without a plan is one test."""
    plan = sum(int(n) for n in _PLAN.findall(out))
    results = _RESULT.findall(out)
    ended = "did not end in time" if code is None else f"ended with {code}"
    if not plan and not results:
        return (1, []) if code == 0 else (0, [ended])
    good = [name for word, name in results if word == "ok" and not _SKIP.search(name)]
    bad = [name.strip() for word, name in results if word == "not ok"]
    bad += [f"skipped: {name.strip()}" for word, name in results if word == "ok" and _SKIP.search(name)]
    bad += [f"never reached, {ended}"] * (plan - len(results))
    if code != 0 and not bad:
        bad.append(ended)
    return len(good), bad


def meson_suite(build, suite):
    listing = subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True,
                             check=True).stdout
    folder = os.path.join(os.path.abspath(build), "tests", suite) + os.sep
    tests = [test for test in json.loads(listing) if os.path.abspath(test["cmd"][0]).startswith(folder)]

    def run_one(test):
        return run(test["cmd"], (test.get("timeout") or 30) * 4, test.get("workdir") or build,
                   {**test.get("env", {}), "CMOCKA_MESSAGE_OUTPUT": "tap"})

    passed = failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for test, (code, out) in zip(tests, pool.map(run_one, tests)):
            good, bad = count_tap(code, out)
            passed, failed = passed + good, failed + len(bad)
            print("".join(f"{line}\n" for line in out.splitlines() if line.startswith("escape: ")), end="")
            if bad:
                print(f"--- {test['name']} ({' '.join(test['cmd'])})\n{out.rstrip()}")
                print("\n".join(f"FAILED {test['name']}: {b}" for b in bad))
    return passed, failed


def pytest_suite(directory, *args):
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        code = subprocess.run([sys.executable, "-m", "pytest", "-q", "-ra", "--tb=short", "-c",
                               os.path.join(HERE, "pytest.ini"), "--rootdir", HERE,
                               "--junitxml", report.name, directory, *args], check=False).returncode
        report.seek(0)
        text = report.read()
    if not text:
        return 0, 1
    passed = failed = 0
    for case in ElementTree.fromstring(text).iter("testcase"):
        wrong = any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
        passed, failed = passed + (not wrong), failed + wrong
    if code not in (0, 5) and not failed:
        failed = 1
    return passed, failed


def scripts(*paths):
    passed = failed = 0
    for path in paths:
        code, out = run([path], 1200)
        if code == 0:
            passed += 1
        else:
            failed += 1
            print(f"--- {os.path.basename(path)}\n{out.rstrip()}")
    return passed, failed


def main():
    passed, failed = {"meson": meson_suite, "pytest": pytest_suite,
                      "scripts": scripts}[sys.argv[1]](*sys.argv[2:])
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
