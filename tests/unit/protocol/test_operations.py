"""The operations by name: what docstrings say that a class answers is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from secateur.protocol import Operation

CLUSTER = Path(__file__).parents[3] / "secateur" / "cluster"
NAMES = {operation.name.lower() for operation in Operation}


def operations_in(docstring: str) -> list[str]:
    """The words in code font of a sentence that says what is answered."""
    return [
        word for said in re.findall(r"\b[Aa]nswers\b([^.]*)\.", docstring) for word in re.findall(r"``(.+?)``", said)
    ]


def answered() -> Iterator[tuple[str, str]]:
    """Class -> an operation that its docstring says it answers."""
    for path in sorted(CLUSTER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield from ((node.name, word) for word in operations_in(ast.get_docstring(node) or ""))


@pytest.mark.parametrize(
    ("docstring", "words"),
    [
        pytest.param("Answers ``get_members``. Lives on ``m1``.", ["get_members"], id="one"),
        pytest.param("Collects, and answers ``a`` and\n``b_*`` requests.", ["a", "b_*"], id="over a line"),
        pytest.param("Answers the requests.", [], id="none"),
    ],
)
def test_the_rule_finds_what_it_looks_up(docstring: str, words: list[str]) -> None:
    assert operations_in(docstring) == words


def test_docstrings_name_operations_that_there_are() -> None:
    found = list(answered())
    assert found
    assert [(owner, word) for owner, word in found if word not in NAMES] == []


def test_each_operation_has_a_number_of_its_own() -> None:
    codes = [operation.code for operation in Operation]
    assert sorted(codes) == sorted(set(codes))
