"""Every sentence of docs/guarantees.md names tests, and these exist, as do the files that ARCHITECTURE.md names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROMISED, NOT_PROMISED = (TESTS.parent / "docs" / "guarantees.md").read_text().split("## What is not guaranteed")
POINTS = re.findall(r"^- (.*?)(?=^- |^#|\Z)", PROMISED, re.MULTILINE | re.DOTALL)
IN_ARCHITECTURE = sorted(set(re.findall(r"`([\w/]+\.py)`", (TESTS.parent / "ARCHITECTURE.md").read_text())))
FILES = [
    path.as_posix()
    for folder in ("secateur", "tests", "benchmarks")
    for path in TESTS.parent.joinpath(folder).rglob("*.py")
]
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", PROMISED)))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_it_exists(file: str, test: str) -> None:
    text = (TESTS / file).read_text()
    assert not test or re.search(rf"^ *def {test}\(", text, re.MULTILINE)


@pytest.mark.parametrize("file", IN_ARCHITECTURE)
def test_the_architecture_names_files_that_exist(file: str) -> None:
    assert any(path.endswith(f"/{file}") for path in FILES)


@pytest.mark.parametrize("point", POINTS)
def test_it_names_a_test(point: str) -> None:
    assert re.search(r"\(`[\w/]+\.py", point), point


def test_there_are_guarantees() -> None:
    assert len(POINTS) > 10
