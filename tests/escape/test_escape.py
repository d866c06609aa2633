# SPDX-License-Identifier: Apache-2.0
"""Every case of cases/*.yaml; see escape.py."""
import glob
import os

import pytest
import yaml

from escape import run_case

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = 27


def load():
    out = []
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.yaml"))):
        with open(path, encoding="utf-8") as f:
            document = yaml.safe_load(f)
        for case in document["cases"]:
            out.append(pytest.param(case, id=f"{os.path.basename(path)[:-5]}: {case['name']}"))
    return out


@pytest.mark.parametrize("case", load())
def test_case(field, case):
    run_case(field, case)


def test_every_class_has_cases():
    numbers = [os.path.basename(p).split("-")[0] for p in glob.glob(os.path.join(HERE, "cases", "*.yaml"))]
    assert sorted(int(n) for n in numbers if n.isdigit()) == list(range(1, CLASSES + 1))
