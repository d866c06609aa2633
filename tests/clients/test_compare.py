# SPDX-License-Identifier: Apache-2.0
"""What makes a client's run a failure."""
import pytest

import compare

ROWS = "- {why: said otherwise, clients: [c], match: '^step: .*other'}\n"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "HERE", str(tmp_path))
    return (tmp_path / "accepted.yaml").write_text


def test_alike_but_for_what_no_two_runs_share(rows):
    rows("[]")
    real = compare.steps('step: {"uid": "01234567-89ab-cdef-0123-456789abcdef", "at": "2026-01-02T03:04:05Z", "b": 1}\nend: 1 steps\n')
    ours = compare.steps('step: {"b": 1, "at": "2026-01-02T03:04:06Z", "uid": "11234567-89ab-cdef-0123-456789abcdef"}\nend: 1 steps\n')
    assert compare.verdict("c", real, ours) == []


def test_a_difference(rows):
    rows("[]")
    assert len(compare.verdict("c", {"step": "[1]"}, {"step": "[2]"})) == 1


def test_a_row_explains_it_once_it_is_there(rows):
    rows(ROWS)
    assert compare.verdict("c", {"step": "one"}, {"step": "other"}) == []
    assert compare.verdict("c", {"step": "one"}, {"step": "one"}) == ["no longer needed: said otherwise"]
    assert len(compare.verdict("d", {"step": "one"}, {"step": "other"})) == 1


def test_an_unexpected_exception_on_both(rows):
    rows("[]")
    assert len(compare.verdict("c", {"step": "UNEXPECTED x"}, {"step": "UNEXPECTED x"})) == 1


@pytest.mark.parametrize("output", ["", "step: 1\n", "step: 1\nend: 2 steps\n"])
def test_a_client_that_did_not_reach_its_end(output):
    with pytest.raises(AssertionError):
        compare.steps(output)
