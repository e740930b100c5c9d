"""What operands stand for once the parameters are known."""

from __future__ import annotations

import uuid
from datetime import date
from typing import Any

import pytest

from secateur.partitioning.pruning import (
    EVERYTHING,
    NOTHING,
    UNKNOWN,
    Box,
    Choice,
    Comparison,
    Constant,
    Constraint,
    Domain,
    Parameter,
    ParameterComparison,
    ParameterList,
    points,
)
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode

DAY = date(2024, 1, 1)


@pytest.mark.parametrize(
    ("column_type", "value", "expected"),
    [
        pytest.param("VARCHAR", ["a", "b", "a"], points(["a", "b"]), id="elements"),
        pytest.param("VARCHAR", ["a", None], points(["a"]), id="NULL equals nothing"),
        pytest.param("VARCHAR", [None], NOTHING, id="only NULL"),
        pytest.param("VARCHAR", [], NOTHING, id="no element"),
        pytest.param("VARCHAR", None, NOTHING, id="a NULL list has no element"),
        pytest.param("VARCHAR", "abc", EVERYTHING, id="a text is no list: IN finds substrings"),
        pytest.param("VARCHAR", {"a": 1}, EVERYTHING, id="a map is no list"),
        pytest.param("VARCHAR", ["a", 1], EVERYTHING, id="a number among texts"),
        pytest.param("VARCHAR", [["a"]], EVERYTHING, id="a list of lists"),
        pytest.param("BIGINT", [1, 2.0, 2.5], points([1, 2]), id="numbers of two kinds"),
        pytest.param("BIGINT", [1, 2**53, 0.5], EVERYTHING, id="a DOUBLE in the list rounds the others"),
        pytest.param("SMALLINT", [1, 70_000], points([1]), id="out of the column's range"),
        pytest.param("BIGINT", ["1"], EVERYTHING, id="text in a list stays text"),
        pytest.param("DATE", ["2024-01-01"], EVERYTHING, id="a date as text"),
        pytest.param("DATE", [DAY], points([DAY]), id="dates"),
        pytest.param("UUID", [str(uuid.UUID(int=5))], EVERYTHING, id="a UUID as text"),
        pytest.param("UUID", [uuid.UUID(int=5)], points([uuid.UUID(int=5)]), id="UUIDs"),
    ],
)
def test_a_list_parameter_stands_for_its_elements(column_type: str, value: Any, expected: Domain) -> None:
    assert ParameterComparison(Comparison.IN, (ParameterList(0),)).resolve([value], parse_type(column_type)) == expected


def test_a_list_beside_other_operands_is_unknown() -> None:
    test = ParameterComparison(Comparison.IN, (ParameterList(0), Constant(1)))
    assert list(test.values([[5]], parse_type("BIGINT"))) == [UNKNOWN, 1]
    assert test.resolve([[5]], parse_type("BIGINT")) == EVERYTHING


def test_what_is_unknown_says_so() -> None:
    assert str(UNKNOWN) == "a value that only DuckDB knows"


def test_boxes_survive_msgpack() -> None:
    tests = (
        ParameterComparison(Comparison.IN, (ParameterList(2),)),
        ParameterComparison(Comparison.BETWEEN, (Parameter(0), Constant(DAY))),
    )
    box = Box.of({"a": Constraint((Choice(points([DAY]), tests),))})
    assert decode(encode(box), Box) == box


def test_a_box_travels_in_the_same_bytes_whatever_the_order_in_which_its_values_were_found() -> None:
    """The order of a set differs with its history, and that of texts from process to process."""
    found = [Domain(frozenset(values)) for values in ([0, 8, 16], [16, 8, 0])]
    assert len({tuple(domain.points) for domain in found}) == 2
    boxes = [Box.of({"a": Constraint((Choice(domain),))}) for domain in found]
    assert len({encode(box) for box in boxes}) == 1
