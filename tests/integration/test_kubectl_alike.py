# SPDX-License-Identifier: Apache-2.0
"""A day of kubectl, on a virtual cluster and on the real host: the same words on both, line by line.

Compared are exit codes and what is printed, less what no two clusters share: identities, times, addresses, the columns
that widen with them. The commands are in kubectl_cases.py.
"""
import difflib
import json
import re
import threading

import pytest

import kubectl_cases as cases

NAMESPACE = "day"
ORDER = [  # (what varies, what stands for it); longer things first, ages after the random names that look like them
    (r"-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----", "PEM"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)", "TIME"),
    (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
    (r"kube-api-access-[0-9a-z]{5}", "TOKENS"),
    (r"/tmp/(?:LIVE|MERGED)-\d+/\S+(?:\s+TIME)?(?:\s+\d{4}-\d\d-\d\d [\d:.]+ [+-]\d{4})?", "FILE"),
    (r"https?://127\.0\.0\.1:\d+", "SERVER"),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?!/\d)", "IP"),
    (r"\b(web|once|byhand|hourly|db|plainly)-[0-9a-z]{6,10}-[0-9a-z]{5}\b", r"\1-POD"),
    (r"\b(web|plainly|db)-(?=[0-9a-z]*\d)[0-9a-z]{6,10}\b", r"\1-HASH"),
    (r"\b(once|byhand|hourly|web-HASH)-[0-9a-z]{5}\b", r"\1-POD"),
    (r"(pod-template-hash=|pod-template-hash: |Controller Revision Hash: +)[0-9a-z]+", r"\1HASH"),
    (r'((?:resourceVersion\\*"?|Resource Version): *\\*)"?\d+\\*"?', r"\1RV"),
    (r"\b(?:cpu|gpu-\w+)-\d\b", "NODE"),
    (r"\bteam-day-[0-9a-f]+\b", "HOSTNS"),
    (r"\bdebugger-[0-9a-z]{5}\b", "DEBUGGER"),
    (r"/var/run/secrets/kubernetes.io/serviceaccount from \S+", "TOKENS"),
    (r"(?m)^[ \t]*topology\.kubernetes\.io/\w+[:=] ?\S+\n|,topology\.kubernetes\.io/\w+=[\w-]+", ""),
    (r"\b(plain|headless|node|single|web)-[0-9a-z]{5}\b", r"\1-SLICE"),
    (r"\b(?:\d+[ydhms])+\d*\b|<invalid>|<unknown>(?= *$)", "AGE"),
    (r"(NodePort: +\S+ +|80:)3\d{4}(/TCP)", r"\1PORT\2"),
    (r"nodePort: \d+", "nodePort: PORT"),
    (r"-{3,}", "---"),
    (r"[ \t]+", " "),
]
PATTERNS = [(re.compile(p, re.M), s) for p, s in ORDER]


def plain(text):
    for pattern, instead in PATTERNS:
        text = pattern.sub(instead, text)
    # What happened when is another's story, and so are conditions.
    text = re.sub(r"(?m)^Events:(?:.*\n(?:[ \t].*\n|---.*\n)*|.*\Z)", "Events: ...\n", text)
    return text.strip()


def in_order(text):
    """Managed fields are in the order of their times, which is chance where a controller is one of the managers."""
    shown = json.loads(text)
    shown["metadata"]["managedFields"].sort(key=lambda m: (m["manager"], m["operation"], m.get("subresource", "")))
    return json.dumps(shown, indent=1)


def run(k, line, manifest, arguments):
    arguments = [a.replace("NS", NAMESPACE).replace("\\n", "\n") for a in arguments]
    code, out, err = k.run(*arguments, stdin=manifest, timeout=900)
    if "--show-managed-fields" in arguments:
        out = in_order(out)
    return code, plain(out), "\n".join(sorted(plain(err).splitlines()))


def play(k, answers):
    for line, loose, manifest, arguments in cases.commands():
        code, out, err = run(k, line, manifest, arguments)
        answers.append((code, "", "") if loose else (code, out, err))


def told(line, theirs, mine):
    text = [[f"exit {a[0]}", *a[1].splitlines(), *a[2].splitlines()] for a in (theirs, mine)]
    return "\n".join([f"$ kubectl {line}", *difflib.unified_diff(*text, "real", "ours", lineterm="", n=0)])


def compare(real, ours):
    """Plays the day on both at once; returns (commands, differences)."""
    answers = [], []
    threads = [threading.Thread(target=play, args=a) for a in zip((real, ours), answers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    lines = [line for line, *_ in cases.commands()]
    said = set()
    for i, (code, out, err) in enumerate(answers[1]):
        said |= cases.NO_EFFECT & set(err.splitlines())
        answers[1][i] = code, out, "\n".join(w for w in err.splitlines() if w not in cases.NO_EFFECT)
    assert said == cases.NO_EFFECT
    assert len(answers[0]) == len(answers[1]) == len(lines)
    return len(lines), [told(line, a, b) for line, a, b in zip(lines, *answers)
                        if a != b and line not in cases.REVIEWED]


@pytest.fixture
def pair(real_host, tenant):
    vc = tenant("day", config={"policy": {"verdict": "off", "podSecurity": "privileged"}})
    for cluster in (real_host, vc):
        cluster.kubectl("create", "namespace", NAMESPACE)
    yield real_host.kubectl.within(NAMESPACE), vc.kubectl.within(NAMESPACE)
    real_host.delete_namespace(NAMESPACE)


def test_the_same_words(pair):
    compared, found = compare(*pair)
    print(f"{compared} commands, {len(found)} differences")
    assert not found, "\n\n".join(found)
