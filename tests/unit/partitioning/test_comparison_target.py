"""Expressions of a column that turn round exactly, against DuckDB: where a domain is named, it holds exactly the column
values that DuckDB finds.
"""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.errors import DatabaseError, ProtocolError
from secateur.partitioning.pruning import (
    BARE,
    NOTHING,
    AbsoluteColumn,
    Comparison,
    ComparisonTarget,
    Domain,
    LinearColumn,
    RowField,
    Span,
    TruncatedColumn,
    WidenedColumn,
    allowed,
    points,
)
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode, pack

DAY = date(2024, 2, 29)
NOON = datetime(2024, 2, 29, 12)
INTEGERS = [-128, -3, -1, 0, 1, 2, 127]
DATES = [DAY + timedelta(days=days) for days in (-60, -31, -1, 0, 1, 2, 31, 307)]
INSTANTS = [
    datetime.combine(day, datetime.min.time()) + offset
    for day in DATES
    for offset in (timedelta(0), timedelta(hours=12), timedelta(microseconds=-1))
]
NUMBERS: list[Any] = [-1, 0, 2, 5, 127, 128, 300, -(2**40), 1.5, 2.0, Decimal("2"), Decimal("1.5"), "2", True, None]
MOMENTS: list[Any] = [
    DAY,
    DAY + timedelta(days=1),
    NOON,
    datetime(2024, 2, 1),
    datetime(2024, 1, 1),
    datetime(2023, 12, 31),
    "2024-02-29",
    "2024-03-01",
    None,
    5,
]
FLOATS: list[Any] = [
    *(-1, 0, 2, 127, 128, 2**53 - 1, 2**53, 2**53 + 1, 1.5, 2.0, -0.0, -0.5, 9007199254740991.0, 2.0**53, 1e300),
    *(float("nan"), float("inf"), float("-inf"), Decimal("2"), Decimal("1.9999999999999999999999"), "2", True, None),
]
NUMERALS = ["0", "1", "-1", "127", "-128", "128", "01", "+1", "-0", " 1", "1 ", "1.0", "1e0", "", "one", "\u0661", None]
CASES: list[tuple[str, list[Any], str, ComparisonTarget, list[Any]]] = [
    ("TINYINT", INTEGERS, "CAST(k AS BIGINT)", WidenedColumn(parse_type("BIGINT")), NUMBERS),
    ("TINYINT", INTEGERS, "CAST(k AS SMALLINT)", WidenedColumn(parse_type("SMALLINT")), NUMBERS),
    ("TINYINT", INTEGERS, "CAST(k AS VARCHAR)", WidenedColumn(parse_type("VARCHAR")), NUMERALS),
    ("UTINYINT", [0, 1, 255], "CAST(k AS INTEGER)", WidenedColumn(parse_type("INTEGER")), NUMBERS),
    ("INTEGER", INTEGERS, "k + 1", LinearColumn(1), NUMBERS),
    ("TINYINT", INTEGERS[:-1], "k + 1", LinearColumn(1), NUMBERS),
    ("INTEGER", INTEGERS, "k - 3", LinearColumn(-3), NUMBERS),
    ("INTEGER", INTEGERS, "-k", LinearColumn(0, -1), NUMBERS),
    ("BIGINT", [*INTEGERS, 2**53, 2**53 + 1], "4 - k", LinearColumn(4, -1), NUMBERS),
    ("INTEGER", INTEGERS, "k * 2", LinearColumn(0, 2), NUMBERS),
    ("INTEGER", INTEGERS, "3 - 2 * k", LinearColumn(3, -2), NUMBERS),
    ("BIGINT", [*INTEGERS, -(2**60), 2**60], "k * -7 + 5", LinearColumn(5, -7), [*NUMBERS, 7 * 2**60 + 5, -2, 3, -9]),
    ("TINYINT", INTEGERS[1:], "abs(k)", AbsoluteColumn(parse_type("TINYINT")), NUMBERS),
    ("TINYINT", INTEGERS, "abs(k::INTEGER)", AbsoluteColumn(parse_type("INTEGER")), NUMBERS),
    ("UTINYINT", [0, 1, 2, 255], "abs(k)", AbsoluteColumn(parse_type("UTINYINT")), NUMBERS),
    ("BIGINT", [*INTEGERS, 2**53, 2**53 + 1], "abs(k)", AbsoluteColumn(parse_type("BIGINT")), NUMBERS),
    ("INTEGER", INTEGERS, "2 + abs(k)", AbsoluteColumn(parse_type("INTEGER"), 2), NUMBERS),
    ("INTEGER", INTEGERS, "5 - 3 * abs(k)", AbsoluteColumn(parse_type("INTEGER"), 5, -3), [*NUMBERS, -1, -4]),
    ("TINYINT", INTEGERS, "CAST(k AS DOUBLE)", WidenedColumn(parse_type("DOUBLE")), FLOATS),
    ("BIGINT", [*INTEGERS, 2**53 - 1, 2**53, 2**53 + 1], "k::DOUBLE", WidenedColumn(parse_type("DOUBLE")), FLOATS),
    ("DATE", DATES, "k + 1", LinearColumn(1), MOMENTS),
    ("DATE", DATES, "k - 31", LinearColumn(-31), MOMENTS),
    ("TIMESTAMP", INSTANTS, "CAST(k AS DATE)", TruncatedColumn("day", as_date=True), MOMENTS),
    *(
        ("TIMESTAMP", INSTANTS, f"date_trunc('{unit}', k)", TruncatedColumn(unit), MOMENTS)
        for unit in ("hour", "day", "week", "month", "quarter", "year")
    ),
    *(
        ("DATE", DATES, f"date_trunc('{unit}', k)", TruncatedColumn(unit), MOMENTS)
        for unit in ("day", "week", "month", "quarter", "year")
    ),
]
ONE = {Comparison.IN: "=", Comparison.NOT_IN: "<>"} | {
    form: form.value
    for form in (
        Comparison.DISTINCT,
        Comparison.LESS,
        Comparison.LESS_EQUAL,
        Comparison.GREATER,
        Comparison.GREATER_EQUAL,
    )
}
TWO = {
    Comparison.IN: "{} IN ($1, $2)",
    Comparison.NOT_IN: "{} NOT IN ($1, $2)",
    Comparison.BETWEEN: "{} BETWEEN $1 AND $2",
    Comparison.NOT_BETWEEN: "{} NOT BETWEEN $1 AND $2",
}


def _found(type_text: str, values: list[Any], condition: str, params: list[Any]) -> list[Any] | None:
    try:
        answer = default_kernel().run(
            f"SELECT k FROM s0 WHERE {condition}",
            {"s0": pa.table({"k": pa.array(values, parse_type(type_text).arrow)})},
            params,
        )
    except DatabaseError:
        return None
    return answer.column("k").to_pylist()


@pytest.mark.parametrize(
    ("type_text", "values", "expression", "comparison_target", "operands"),
    CASES,
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.sampled(one_in=4)
def test_an_expression_passes_what_duckdb_finds(
    type_text: str, values: list[Any], expression: str, comparison_target: ComparisonTarget, operands: list[Any]
) -> None:
    forms = [
        (comparison, f"{expression} {operator} $1", [value])
        for (comparison, operator), value in itertools.product(ONE.items(), operands)
    ]
    forms += [
        (comparison, condition.format(expression), list(pair))
        for (comparison, condition), pair in itertools.product(TWO.items(), itertools.product(operands, operands))
    ]
    decided = 0
    for comparison, condition, params in forms:
        domain = allowed(comparison_target, comparison, params, parse_type(type_text))
        if domain is not None:
            found = _found(type_text, values, condition, params)
            assert found is not None, f"{condition} with {params!r}: DuckDB refuses, so nothing may be said"
            assert sorted(found) == sorted(value for value in values if value in domain), (
                f"{condition} with {params!r}: {domain}"
            )
            decided += 1
    assert decided >= 20, "the operands must hold some that compare exactly"


@pytest.mark.parametrize(
    ("comparison_target", "comparison", "values", "type_text", "expected"),
    [
        pytest.param(
            WidenedColumn(parse_type("BIGINT")),
            Comparison.IN,
            [300, 5],
            "TINYINT",
            points([5]),
            id="values that the column cannot hold",
        ),
        pytest.param(
            WidenedColumn(parse_type("HUGEINT")),
            Comparison.IN,
            [5],
            "BIGINT",
            None,
            id="a type in which nothing is compared",
        ),
        pytest.param(LinearColumn(1), Comparison.IN, [1.5], "INTEGER", None, id="a fraction"),
        pytest.param(LinearColumn(1), Comparison.LESS, [date.min], "DATE", None, id="a date before the first one"),
        pytest.param(LinearColumn(1), Comparison.LIKE, ["a%"], "INTEGER", None, id="a pattern of a number"),
        pytest.param(TruncatedColumn("day"), Comparison.IN, [NOON], "TIMESTAMP", NOTHING, id="no day starts at noon"),
        pytest.param(
            TruncatedColumn("day", as_date=True),
            Comparison.GREATER,
            [date.max],
            "TIMESTAMP",
            None,
            id="behind the last day of Python",
        ),
        pytest.param(
            TruncatedColumn("day", as_date=True),
            Comparison.IN,
            [DAY],
            "TIMESTAMP",
            Domain(spans=(Span(datetime(2024, 2, 29), datetime(2024, 3, 1), upper_closed=False),)),
            id="a day of instants",
        ),
        pytest.param(RowField(1), Comparison.IN, [5], "INTEGER", points([5]), id="a field of the column's own type"),
        pytest.param(RowField(1), Comparison.IN, ["5"], "INTEGER", None, id="a text makes the field a text"),
        pytest.param(RowField(1), Comparison.IN, [5, "5"], "INTEGER", None, id="so does a text in the row beside"),
        pytest.param(RowField(1), Comparison.IN, [5, 7], "INTEGER", points([5]), id="the row beside is not compared"),
        pytest.param(RowField(1), Comparison.LESS, [None], "INTEGER", None, id="NULL is greater than all"),
        pytest.param(RowField(1), Comparison.IN, [Decimal("1.5")], "DECIMAL(10,2)", None, id="another scale"),
        pytest.param(
            RowField(1),
            Comparison.IN,
            [Decimal("1.50")],
            "DECIMAL(10,2)",
            points([Decimal("1.50")]),
            id="the column's scale",
        ),
        pytest.param(
            RowField(1), Comparison.IN, [NOON.replace(tzinfo=UTC)], "TIMESTAMP", None, id="an instant with a zone"
        ),
        pytest.param(RowField(1), Comparison.IN, [NOON], "DATE", None, id="an instant for a date"),
    ],
)
def test_named_cases(
    comparison_target: ComparisonTarget,
    comparison: Comparison,
    values: list[Any],
    type_text: str,
    expected: Domain | None,
) -> None:
    assert allowed(comparison_target, comparison, values, parse_type(type_text)) == expected


@pytest.mark.parametrize(
    "comparison_target",
    [
        BARE,
        WidenedColumn(parse_type("BIGINT")),
        LinearColumn(-3, -2),
        AbsoluteColumn(parse_type("INTEGER")),
        TruncatedColumn("week"),
        RowField(2),
    ],
    ids=repr,
)
def test_subjects_travel(comparison_target: ComparisonTarget) -> None:
    assert decode(encode(comparison_target), ComparisonTarget) == comparison_target


def test_a_subject_of_another_version_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="'fortnight' is no unit"):
        decode(pack(["truncated", "fortnight", False]), ComparisonTarget)
