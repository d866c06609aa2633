# SPDX-License-Identifier: Apache-2.0
"""Every command in README.md and docs/ is run: blocks marked `sh demo` here, against the demo; those marked
`sh by=FILE` by FILE, which must exist. A block of sh without a mark is an error: it would rot unseen."""
import json
import os
import re
import subprocess

import pytest
import yaml

from testenv import binaries
from testenv.binaries import TREE
from testenv.demo import demo  # noqa: F401 - a fixture

BLOCK = re.compile(r"^```(\S+)?(?: ([^\n]*))?\n(.*?)^```$", re.M | re.S)
SHELLS = {"sh", "bash", "shell", "console"}


def pages():
    docs = sorted(f for f in os.listdir(os.path.join(TREE, "docs")) if f.endswith(".md"))
    return ["README.md", *(os.path.join("docs", f) for f in docs)]


def blocks(page):
    """(language, mark, content) of each fenced block."""
    with open(os.path.join(TREE, page), encoding="utf-8") as f:
        return [(m.group(1) or "", m.group(2) or "", m.group(3)) for m in BLOCK.finditer(f.read())]


@pytest.mark.parametrize("page", pages())
def test_every_block_has_a_runner(page):
    for language, mark, text in blocks(page):
        if language not in SHELLS:
            continue
        assert mark == "demo" or mark.startswith("by="), f"{page}: who runs this?\n{text}"
        if mark.startswith("by="):
            assert os.path.exists(os.path.join(TREE, mark[3:])), f"{page}: {mark} is not there"


@pytest.mark.parametrize("page", [p for p in pages() if any(b[:2] == ("sh", "demo") for b in blocks(p))])
def test_commands_work(page, demo):  # noqa: F811
    for language, mark, text in blocks(page):
        if language == "sh" and mark == "demo":
            run(demo, text)


def run(demo, text):  # noqa: F811
    """The block as it stands, but for where this session's demo is."""
    programs = os.path.join(demo.dir, "programs")
    os.makedirs(programs, exist_ok=True)
    for name, target in (("kubectl", demo.kubectl_path), ("sublet", demo.env["SUBLET_BIN"])):
        if not os.path.lexists(os.path.join(programs, name)):
            os.symlink(os.path.abspath(target), os.path.join(programs, name))
    # `set -e` would not see a command that was to fail and did not.
    text = re.sub(r"^! (.*)$", r"if \1; then exit 1; fi", text.replace("build/demo", demo.dir), flags=re.M)
    r = subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", text], text=True, capture_output=True, timeout=600,
                       check=False, cwd=TREE, env={**demo.env, "PATH": programs + ":" + os.environ["PATH"]})
    assert r.returncode == 0, text + r.stdout + r.stderr


POOLS = "docs/pools-and-quota.md"
BASE = """pools:
- name: a100
  nodeSelector: {sublet.dev/pool: a100}
"""
BOUND = "bindings:\n- {pool: a100, guarantee: \"8\"}\n"


def pools_file(text):
    """The pools and bindings of a configuration file with this example."""
    if text.startswith("apiVersion:"):
        pool = yaml.safe_load(text)
        item = {"name": pool["metadata"]["name"], **pool["spec"]}
        return f"pools: {json.dumps([item])}\nbindings: [{{pool: {item['name']}, guarantee: 1}}]\n"
    if text.startswith("pools:"):
        return text
    return BASE + "bindings:\n" + text if text.startswith("-") else BASE + text + BOUND


@pytest.mark.parametrize("text", [b[2] for b in blocks(POOLS) if b[0] == "yaml"], ids=lambda t: t.split("\n")[-2].strip()[:40])
def test_every_example_of_pools_is_valid(text, tmp_path):
    """A whole file, a GPUPool, a binding of pool a100, or keys of a pool; `sublet check` reads it, and reports what is
    misspelt in it."""
    whole = pools_file(text)
    for suffix, good in (("", True), ("nonsense: true\n", False)):
        file = tmp_path / "config.yaml"
        file.write_text("name: research\nhost: {namespace: team-research}\n" + whole + suffix, encoding="utf-8")
        r = subprocess.run([binaries.sublet(), "check", "--config", file], text=True, capture_output=True, timeout=60,
                           check=False)
        assert (r.returncode == 0) == good, whole + r.stdout + r.stderr


def test_links_lead_somewhere():
    for page in pages():
        with open(os.path.join(TREE, page), encoding="utf-8") as f:
            text = f.read()
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert os.path.exists(os.path.normpath(os.path.join(TREE, os.path.dirname(page), target))), \
                f"{page}: {target}"


def rows_of(page):
    """The cells of each row of its tables, but for heads and rules."""
    with open(os.path.join(TREE, page), encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.startswith("|")]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return [r for r in rows if r[0] != "what" and not set(r[0]) <= {"-"}]


def proofs():
    """By its name the source of each file of tests; some have the same name."""
    found = {}
    for folder, _, names in os.walk(os.path.join(TREE, "tests")):
        for name in names:
            if name.startswith("test_") or os.path.basename(folder) == "cases":
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    found.setdefault(name, []).append(f.read())
    return found


def test_what_is_served_is_shown():
    """docs/gpu-contracts.md names for each row that is served, or partly, a test or a page; the tests are there."""
    files, rows = proofs(), rows_of("docs/gpu-contracts.md")
    assert len(rows) > 100
    for row in rows:
        assert len(row) == 3, row
        verdict = re.match(r"(served|partly|not)\b", row[1])
        assert verdict, row
        named = re.findall(r"`(?:cases/)?([\w-]+\.(?:py|c|yaml))(?:::(\w+))?`", row[2])
        assert named or "](" in row[2] or verdict[1] == "not", row
        for file, function in named:
            assert any(re.search(rf"\b{function}\(", text) if function else text for text in files[file]), (file, function)
