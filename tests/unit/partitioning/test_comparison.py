"""``compare`` against DuckDB: where it names a domain, the domain holds exactly the column values that DuckDB finds."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.errors import DatabaseError
from secateur.partitioning.pruning import EVERYTHING, NOTHING, Comparison, Domain, Span, compare, points
from secateur.partitioning.pruning.comparison import OPERATORS, Basis
from secateur.partitioning.types import SqlType, parse_type

SOME_UUID = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
NOON = datetime(2024, 1, 2, 12)

COLUMNS: dict[str, list[Any]] = {
    "TINYINT": [-128, -1, 0, 1, 2, 127],
    "INTEGER": [-(2**31), -2, -1, 0, 1, 2, 2**31 - 1],
    "BIGINT": [-(2**63), 0, 1, 2, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1],
    "UBIGINT": [0, 1, 2**63, 2**64 - 1],
    "BOOLEAN": [False, True],
    "VARCHAR": ["", "1", "01", "1.0", "a", "A", "é", "true", "2024-01-02"],
    "BLOB": [b"", b"1", b"\xff"],
    "DATE": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)],
    "TIMESTAMP": [datetime(2024, 1, 2), NOON, datetime(2024, 1, 3)],
    "TIMESTAMP WITH TIME ZONE": [datetime(2024, 1, 2, tzinfo=UTC), NOON.replace(tzinfo=UTC)],
    "DECIMAL(10,2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("2.00")],
    "DECIMAL(38,10)": [Decimal("1.5000000000"), Decimal("2.0000000000")],
    "UUID": [SOME_UUID, UUID(int=0)],
}
VALUES: list[Any] = [
    True,
    False,
    0,
    1,
    2,
    -1,
    127,
    128,
    2**31,
    2**53,
    2**53 + 1,
    2**63,
    2**64,
    2**100,
    -(2**63) - 1,
    1.0,
    1.5,
    -1.5,
    2.0**53,
    float("nan"),
    float("inf"),
    "1",
    "01",
    "+1",
    "-0",
    "-1.5",
    "+1.50",
    " 1",
    "1.5",
    "1e0",
    "x",
    "",
    "true",
    "yes",
    "2024-01-02",
    "2024-1-2",
    "2024-01-02 12:00:00",
    "2024-01-02T12:00:00.000001",
    "2024-01-02 12:00:00.5",
    "2024-01-02 24:00:00",
    "2024-02-30",
    "0001-01-01",
    "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
    "300",
    b"1",
    b"\xff",
    Decimal("1"),
    Decimal("1.50"),
    Decimal("-1.5"),
    Decimal("1.505"),
    Decimal("1E+30"),
    Decimal("1." + "0" * 36 + "1"),
    date(2024, 1, 2),
    date(1999, 1, 1),
    datetime(2024, 1, 2),
    NOON,
    NOON.replace(tzinfo=UTC),
    NOON.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=14))),
    datetime(2024, 1, 2, tzinfo=UTC) + timedelta(microseconds=1),
    SOME_UUID,
]
PAIRED = [
    True,
    0,
    2,
    2**53 + 1,
    2**63,
    1.0,
    1.5,
    2.0**53,
    "1",
    "1.5",
    "a",
    "2024-01-02",
    b"1",
    Decimal("1.50"),
    Decimal("1E+30"),
    date(2024, 1, 2),
    NOON,
    SOME_UUID,
]
COMPARED = [
    Comparison.NOT_IN,
    Comparison.DISTINCT,
    Comparison.IN,
    Comparison.LESS,
    Comparison.LESS_EQUAL,
    Comparison.GREATER,
    Comparison.GREATER_EQUAL,
]


def _table(column_type: SqlType, values: list[Any]) -> pa.Table:
    if column_type.arrow == pa.uuid():
        return pa.table(
            {"k": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([value.bytes for value in values], pa.binary(16)))}
        )
    return pa.table({"k": pa.array(values, column_type.arrow)})


def _found(column_type: SqlType, values: list[Any], condition: str, params: list[Any]) -> list[Any] | None:
    """What DuckDB finds among the values, or None when it refuses."""
    try:
        answer = default_kernel().run(
            f"SELECT k FROM s0 WHERE {condition}", {"s0": _table(column_type, values)}, params
        )
    except DatabaseError:
        return None
    return answer.column("k").to_pylist()


@pytest.mark.parametrize("type_text", COLUMNS)
@pytest.mark.sampled(one_in=2)
def test_a_comparison_with_one_value_finds_what_duckdb_finds(type_text: str) -> None:
    column_type, values = parse_type(type_text), COLUMNS[type_text]
    decided = 0
    for comparison, value in itertools.product(COMPARED, VALUES):
        domain = compare(comparison, [value], column_type)
        if domain is None:
            continue
        operator = {Comparison.IN: "=", Comparison.NOT_IN: "<>"}.get(comparison, comparison.value)
        found = _found(column_type, values, f"k {operator} $1", [value])
        assert found is not None, f"{type_text} {operator} {value!r}: DuckDB refuses, so nothing may be said"
        assert sorted(found) == sorted(v for v in values if v in domain), f"{type_text} {operator} {value!r}: {domain}"
        decided += 1
    assert decided >= len(COMPARED), "the table of values must hold some that compare exactly"


@pytest.mark.parametrize("type_text", COLUMNS)
@pytest.mark.sampled(one_in=2)
def test_lists_and_betweens_find_what_duckdb_finds(type_text: str) -> None:
    column_type, values = parse_type(type_text), COLUMNS[type_text]
    forms = [
        (Comparison.IN, "k IN ($1, $2)"),
        (Comparison.NOT_IN, "k NOT IN ($1, $2)"),
        (Comparison.BETWEEN, "k BETWEEN $1 AND $2"),
        (Comparison.NOT_BETWEEN, "k NOT BETWEEN $1 AND $2"),
    ]
    for pair in itertools.product([*PAIRED, None], [*PAIRED, None]):
        for comparison, condition in forms:
            domain = compare(comparison, pair, column_type)
            if domain is not None:
                found = _found(column_type, values, condition, list(pair))
                assert found is not None, f"{type_text} {condition} {pair!r}: DuckDB refuses, so nothing may be said"
                assert sorted(found) == sorted(v for v in values if v in domain), (
                    f"{type_text} {condition} {pair!r}: {domain}"
                )


@pytest.mark.parametrize(
    ("comparison", "values", "type_text", "expected"),
    [
        pytest.param(Comparison.IN, [1.5], "INTEGER", NOTHING, id="a fraction equals no integer"),
        pytest.param(
            Comparison.LESS, [1.5], "INTEGER", Domain(spans=(Span(upper=1),)), id="below a fraction is up to its floor"
        ),
        pytest.param(
            Comparison.GREATER_EQUAL,
            [-1.5],
            "INTEGER",
            Domain(spans=(Span(lower=-2, lower_closed=False),)),
            id="from a negative fraction",
        ),
        pytest.param(Comparison.IN, ["1"], "INTEGER", points([1]), id="text is cast to the integer column"),
        pytest.param(Comparison.IN, [1], "VARCHAR", None, id="a text column would be cast: 01 equals 1"),
        pytest.param(Comparison.IN, ["1", 1], "VARCHAR", None, id="one number in the list casts the column"),
        pytest.param(Comparison.IN, [2.0**53], "BIGINT", None, id="doubles past 2**53 equal their neighbours"),
        pytest.param(Comparison.IN, [2**53 + 1, 1.0], "BIGINT", None, id="one double in the list makes all doubles"),
        pytest.param(Comparison.IN, [None], "INTEGER", NOTHING, id="NULL equals nothing"),
        pytest.param(Comparison.IN, [None, 3], "INTEGER", points([3]), id="NULL in a list never makes it TRUE"),
        pytest.param(Comparison.BETWEEN, [None, 3], "INTEGER", NOTHING, id="BETWEEN with NULL is never TRUE"),
        pytest.param(Comparison.BETWEEN, [3, 1], "INTEGER", NOTHING, id="BETWEEN the wrong way round"),
        pytest.param(Comparison.IN, [300], "TINYINT", NOTHING, id="a value that the type cannot hold"),
        pytest.param(
            Comparison.IN, ["300"], "TINYINT", None, id="a text that the type cannot hold is DuckDB's error to raise"
        ),
        pytest.param(Comparison.IN, [NOON], "DATE", NOTHING, id="noon is no date"),
        pytest.param(
            Comparison.LESS,
            [NOON],
            "DATE",
            Domain(spans=(Span(upper=date(2024, 1, 2)),)),
            id="a day begins before its noon",
        ),
        pytest.param(Comparison.IN, [Decimal("1.505")], "DECIMAL(10,2)", NOTHING, id="more digits than the scale"),
        pytest.param(Comparison.IN, [0.5], "DECIMAL(10,2)", None, id="decimals and doubles compare as doubles"),
        pytest.param(Comparison.IN, ["\ud800"], "VARCHAR", None, id="a lone surrogate is no text"),
        pytest.param(Comparison.IN, [object()], "INTEGER", None, id="any object"),
        pytest.param(Comparison.IN, [1], "HUGEINT", None, id="a type that does not partition"),
        pytest.param(Comparison.NOT_IN, [1, None], "INTEGER", NOTHING, id="NOT IN with NULL is never TRUE"),
        pytest.param(Comparison.NOT_IN, [1.5], "INTEGER", EVERYTHING, id="every integer differs from a fraction"),
        pytest.param(Comparison.NOT_IN, [1], "VARCHAR", None, id="not equal to a number casts the text column"),
        pytest.param(Comparison.DISTINCT, [None], "INTEGER", EVERYTHING, id="every value is distinct from NULL"),
        pytest.param(
            Comparison.NOT_BETWEEN,
            [None, 3],
            "INTEGER",
            Domain(spans=(Span(lower=3, lower_closed=False),)),
            id="NOT BETWEEN is decided by one side",
        ),
        pytest.param(Comparison.NOT_BETWEEN, [3, 1], "INTEGER", EVERYTHING, id="NOT BETWEEN the wrong way round"),
        pytest.param(
            Comparison.LIKE,
            ["a%"],
            "VARCHAR",
            Domain(spans=(Span("a", "b", upper_closed=False),)),
            id="a prefix is a span",
        ),
        pytest.param(
            Comparison.LIKE,
            ["a%b"],
            "VARCHAR",
            Domain(spans=(Span("a", "b", upper_closed=False),)),
            id="a pattern is bounded by its prefix",
        ),
        pytest.param(Comparison.NOT_LIKE, ["a%b"], "VARCHAR", None, id="and what does not match it is not"),
        pytest.param(
            Comparison.NOT_LIKE,
            ["ab"],
            "VARCHAR",
            points(["ab"]).complement(),
            id="a pattern without wildcards is a value",
        ),
        pytest.param(Comparison.LIKE, ["a!%", "!"], "VARCHAR", points(["a%"]), id="an escaped wildcard is a character"),
        pytest.param(Comparison.LIKE, [None], "VARCHAR", NOTHING, id="LIKE NULL is never TRUE"),
        pytest.param(Comparison.LIKE, ["1%"], "INTEGER", None, id="a pattern for a number"),
        pytest.param(Comparison.LIKE, [1], "VARCHAR", None, id="a number for a pattern"),
        pytest.param(Comparison.STARTS_WITH, [""], "VARCHAR", EVERYTHING, id="everything begins with nothing"),
        pytest.param(Comparison.NOT_STARTS_WITH, [None], "VARCHAR", NOTHING, id="a prefix that is NULL"),
    ],
)
def test_named_cases(comparison: Comparison, values: list[Any], type_text: str, expected: Domain | None) -> None:
    assert compare(comparison, values, parse_type(type_text)) == expected


def test_every_comparison_has_a_negation_but_distinct() -> None:
    assert set(OPERATORS) == set(Comparison)
    twice = {comparison: OPERATORS[operator.negated].negated for comparison, operator in OPERATORS.items()}
    assert {comparison for comparison, other in twice.items() if other is not comparison} == {Comparison.DISTINCT}


@pytest.mark.parametrize(
    "comparison",
    [form for form in Comparison if form is not Comparison.DISTINCT],
    ids=lambda comparison: comparison.value,
)
def test_a_value_passes_a_comparison_or_its_negation(comparison: Comparison) -> None:
    ordered = comparison in (Comparison.BETWEEN, Comparison.NOT_BETWEEN)
    matched = comparison in (Comparison.MATCHES, Comparison.NOT_MATCHES)
    values = ["b", "d"] if ordered else ["^b$"] if matched else ["b"]
    forms = (comparison, OPERATORS[comparison].negated)
    passing, negated = (compare(form, values, parse_type("VARCHAR")) for form in forms)
    assert passing is not None
    assert negated == passing.complement()


def test_the_comparisons_that_exclude_are_the_negations_of_those_that_name_values() -> None:
    by_order = {comparison for comparison, operator in OPERATORS.items() if operator.basis is Basis.ORDER}
    assert {comparison for comparison, operator in OPERATORS.items() if operator.mirrored} == by_order
    excluding = {comparison for comparison, operator in OPERATORS.items() if operator.excludes}
    naming = set(Comparison) - by_order - excluding
    assert {OPERATORS[comparison].negated for comparison in naming} | {Comparison.DISTINCT} == excluding
