"""What part of a partition a scan looks at, once the parameters are known."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from secateur.engine.sql import DirectSearch, KeyEnd, KeyOperand, KeySearch
from secateur.partitioning.pruning import (
    Box,
    Choice,
    Comparison,
    Constant,
    Constraint,
    KeyBoundary,
    KeyBounds,
    KeyPrefix,
    KeyRange,
    KeyRanges,
    KeySlice,
    Operand,
    Parameter,
    ParameterComparison,
    points,
)
from secateur.partitioning.types import SqlType, parse_type
from secateur.protocol import decode, encode

BIGINT = parse_type("BIGINT")
VARCHAR = parse_type("VARCHAR")
COLUMNS = (("customer", VARCHAR), ("id", BIGINT))


def compared(comparison: Comparison, *operands: Operand) -> Constraint:
    return Constraint((Choice(tests=(ParameterComparison(comparison, operands),)),))


def bounds(**constraints: Constraint) -> KeyBounds | None:
    return KeyBounds.of(COLUMNS, [[Box.of(constraints)]])


def key(operand: Operand, column_type: SqlType = BIGINT) -> KeyOperand:
    return KeyOperand(operand, column_type)


C2 = Constraint((Choice(points(["C2"])),))
ONE = KeySearch(
    bounds(customer=C2, id=compared(Comparison.IN, Parameter(0))),
    DirectSearch((key(Constant("C2"), VARCHAR), key(Parameter(0))), decides=True),
)
SPAN = KeySearch(
    bounds(customer=C2, id=compared(Comparison.BETWEEN, Parameter(0), Constant(9))),
    DirectSearch(
        (key(Constant("C2"), VARCHAR),), KeyEnd(key(Parameter(0)), closed=True), KeyEnd(key(Constant(9)), closed=False)
    ),
)
ABOVE = KeySearch(
    bounds(customer=compared(Comparison.GREATER, Parameter(0))),
    DirectSearch((), lower=KeyEnd(key(Parameter(0), VARCHAR), closed=False), decides=True),
)
BELOW = KeySearch(
    bounds(customer=C2, id=compared(Comparison.LESS_EQUAL, Parameter(0))),
    DirectSearch((key(Constant("C2"), VARCHAR),), upper=KeyEnd(key(Parameter(0)), closed=True)),
)
GENERAL = KeySearch(bounds(customer=compared(Comparison.IN, Parameter(0), Parameter(1))))


def span(lower: tuple[Any, ...], after_lower: bool, upper: tuple[Any, ...], after_upper: bool) -> KeyRanges:
    return KeyRanges((KeyRange(KeyBoundary(lower, after_lower), KeyBoundary(upper, after_upper)),))


@pytest.mark.parametrize(
    ("search", "params", "expected"),
    [
        pytest.param(KeySearch(), [], None, id="nothing known"),
        pytest.param(ONE, [7], KeyPrefix(("C2", 7)), id="whole"),
        pytest.param(ONE, ["7"], KeyPrefix(("C2", 7)), id="converted"),
        pytest.param(ONE, [b"7"], KeyPrefix(("C2",)), id="a value that does not compare"),
        pytest.param(ONE, [1.5], KeyRanges(()), id="equals no key"),
        pytest.param(ONE, [None], KeyRanges(()), id="NULL"),
        pytest.param(SPAN, [7], span(("C2", 7), False, ("C2", 9), False), id="span"),
        pytest.param(SPAN, [9], KeyRanges(()), id="span of nothing"),
        pytest.param(SPAN, ["7"], span(("C2", 7), False, ("C2", 9), True), id="span, converted"),
        pytest.param(SPAN, [None], KeyRanges(()), id="span from NULL"),
        pytest.param(ABOVE, ["C2"], span(("C2",), True, (), True), id="above"),
        pytest.param(ABOVE, [7], None, id="above what does not compare"),
        pytest.param(BELOW, [7], span(("C2",), False, ("C2", 7), True), id="below"),
        pytest.param(GENERAL, ["C3", "C3"], KeyPrefix(("C3",)), id="one range is a prefix"),
        pytest.param(GENERAL, ["C3", 7], None, id="no value compares"),
    ],
)
def test_binding(search: KeySearch, params: list[Any], expected: KeySlice | None) -> None:
    assert search.bind(params) == expected
    again = decode(encode(search), KeySearch)
    assert again == search
    assert again.bind(params) == expected


@pytest.mark.parametrize("search", [ONE, SPAN, GENERAL], ids=["key", "span", "general"])
def test_too_few_parameters(search: KeySearch) -> None:
    assert not search.is_constant
    with pytest.raises(IndexError):
        search.bind([])


def test_the_search_decides_only_for_values_that_are_keys_as_they_stand() -> None:
    def decides(search: KeySearch, *params: Any) -> bool:
        part, is_decided = search.search(params)
        assert part == search.bind(params)
        return is_decided

    assert decides(ONE, 7)
    assert not decides(ONE, "7")
    assert not decides(SPAN, 7)
    assert decides(ABOVE, "C2")
    assert not GENERAL.decides
    assert not decides(GENERAL, "C3", "C4")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("INTEGER", 2**31 - 1, True),
        ("INTEGER", 2**31, False),
        ("INTEGER", True, False),
        ("VARCHAR", "x", True),
        ("BOOLEAN", True, True),
        ("BOOLEAN", 1, False),
        ("DATE", date(2024, 1, 1), True),
        ("DATE", datetime(2024, 1, 1), False),
        ("TIMESTAMP", datetime(2024, 1, 1), True),
        ("TIMESTAMP", datetime(2024, 1, 1, tzinfo=UTC), False),
        ("TIMESTAMP", date(2024, 1, 1), False),
        ("TIMESTAMPTZ", datetime(2024, 1, 1, tzinfo=UTC), False),
        ("UUID", UUID(int=1), True),
        ("BLOB", b"x", True),
        ("DECIMAL(5,2)", Decimal("1.5"), False),
        ("VARCHAR", None, False),
    ],
)
def test_what_is_a_key_as_it_stands(text: str, value: Any, expected: bool) -> None:
    bound = key(Parameter(0), parse_type(text)).bind([value])
    assert bound is value if expected else bound is None


LISTED = KeySearch(
    bounds(customer=C2, id=compared(Comparison.IN, Parameter(0), Parameter(1), Constant(9))),
    DirectSearch(
        (key(Constant("C2"), VARCHAR),), decides=True, choices=(key(Parameter(0)), key(Parameter(1)), key(Constant(9)))
    ),
)


@pytest.mark.parametrize(
    ("search", "params", "expected"),
    [
        pytest.param(ONE, [7], [("C2", 7)], id="whole"),
        pytest.param(ONE, [7.5], None, id="not of the type"),
        pytest.param(ONE, [None], None, id="NULL"),
        pytest.param(SPAN, [1], None, id="span"),
        pytest.param(LISTED, [7, 8], [("C2", 7), ("C2", 8), ("C2", 9)], id="list"),
        pytest.param(LISTED, [9, 9], [("C2", 9)], id="each once"),
        pytest.param(LISTED, [7, None], None, id="NULL in a list"),
        pytest.param(LISTED, [7, True], None, id="a boolean is no integer"),
        pytest.param(LISTED, [7, 2**63], None, id="beyond the type"),
    ],
)
def test_prefixes_are_the_values_with_which_keys_begin(
    search: KeySearch, params: list[Any], expected: list[tuple[Any, ...]] | None
) -> None:
    assert search.direct is not None
    found = search.direct.prefixes(params)
    assert (None if found is None else list(found)) == expected


def test_a_list_is_put_in_order_by_the_bounds() -> None:
    part, decided = LISTED.search([8, 7])
    assert isinstance(part, KeyRanges)
    assert [keys.lower.values for keys in part.ranges] == [("C2", 7), ("C2", 8), ("C2", 9)]
    assert not decided
    assert decode(encode(LISTED), KeySearch) == LISTED
