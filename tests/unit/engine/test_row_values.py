"""Expressions over one row of plain values give what the arrow kernel gives for that row, or are declined."""

from __future__ import annotations

import itertools
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels.arrow import (
    ArrowFragment,
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    DeclinedError,
    Expression,
    ParameterExpression,
    ScalarFunction,
    compile_over_row,
    compile_row_filter,
    compile_row_tuples,
)
from secateur.engine.kernels.arrow import kernel as arrow_kernel
from secateur.partitioning.types import SqlType, parse_type

BIGINT, TINYINT, VARCHAR = parse_type("BIGINT"), parse_type("TINYINT"), parse_type("VARCHAR")
MONEY = parse_type("DECIMAL(8, 2)")
BOOLEAN, DATE, DOUBLE = parse_type("BOOLEAN"), parse_type("DATE"), parse_type("DOUBLE")
COLUMNS = {"k": BIGINT, "n": BIGINT, "t": TINYINT, "s": VARCHAR, "d": DATE, "f": DOUBLE}
ROWS: list[list[Any]] = [
    [1, None, 100, "b", date(2024, 2, 29), 0.5],
    [2**63 - 1, 7, -128, "é", None, float("nan")],
    [-5, -5, None, None, date(1, 1, 1), None],
]


def column(name: str) -> ColumnExpression:
    return ColumnExpression(name, COLUMNS[name])


def call(function: ScalarFunction, type_: SqlType, *arguments: Expression) -> CallExpression:
    return CallExpression(function, arguments, type_)


K, N, T, S, D, F = map(column, COLUMNS)
ONE, SEVEN = ConstantExpression(1, BIGINT), ConstantExpression(7, BIGINT)
B = ConstantExpression("b", VARCHAR)
LESS = call(ScalarFunction.LESS, BOOLEAN, N, K)
EQUAL = call(ScalarFunction.EQUAL, BOOLEAN, S, B)

EXPRESSIONS: dict[str, Expression] = {
    "column": F,
    "constant": ONE,
    "parameter": ParameterExpression(1, BIGINT),
    "text parameter": ParameterExpression(2, VARCHAR),
    "add": call(ScalarFunction.ADD, BIGINT, K, ONE),
    "subtract": call(ScalarFunction.SUBTRACT, BIGINT, N, ParameterExpression(1, BIGINT)),
    "multiply": call(ScalarFunction.MULTIPLY, BIGINT, K, SEVEN),
    "negate": call(ScalarFunction.NEGATE, TINYINT, T),
    "cast up": call(ScalarFunction.CAST, BIGINT, T),
    "cast down": call(ScalarFunction.CAST, TINYINT, K),
    "less": LESS,
    "text equal": EQUAL,
    "text greater": call(ScalarFunction.GREATER, BOOLEAN, S, B),
    "date": call(ScalarFunction.GREATER_EQUAL, BOOLEAN, D, ConstantExpression(date(2024, 2, 29), DATE)),
    "and": call(ScalarFunction.AND, BOOLEAN, LESS, EQUAL),
    "or": call(ScalarFunction.OR, BOOLEAN, LESS, EQUAL),
    "not": call(ScalarFunction.NOT, BOOLEAN, LESS),
    "is null": call(ScalarFunction.IS_NULL, BOOLEAN, N),
    "coalesce": call(ScalarFunction.COALESCE, BIGINT, N, SEVEN),
    "case": call(ScalarFunction.CASE, BIGINT, LESS, K, EQUAL, ONE, SEVEN),
    "case without else": call(ScalarFunction.CASE, BIGINT, LESS, K),
    "in": call(ScalarFunction.IN, BOOLEAN, N, ONE, SEVEN),
}
PARAMS = [5, "x"]


@pytest.mark.parametrize("row", ROWS, ids=["first", "second", "third"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_row_gives_what_the_arrow_kernel_gives(name: str, row: list[Any]) -> None:
    expression = EXPRESSIONS[name]
    evaluate = compile_over_row(expression, {column: at for at, column in enumerate(COLUMNS)})
    table = pa.table({name: pa.array([value], COLUMNS[name].arrow) for name, value in zip(COLUMNS, row, strict=True)})
    expected = arrow_kernel.run(ArrowFragment((("x", expression),)), table, PARAMS)
    if expected is None:
        with pytest.raises(DeclinedError):
            evaluate(row, PARAMS)
    else:
        (answer,) = expected.column("x").to_pylist()
        assert repr(evaluate(row, PARAMS)) == repr(answer)


CONDITIONS: dict[str, Expression] = {
    "one of a column": call(ScalarFunction.GREATER, BOOLEAN, K, ConstantExpression(0, BIGINT)),
    "some of columns": call(
        ScalarFunction.AND,
        BOOLEAN,
        call(ScalarFunction.LESS_EQUAL, BOOLEAN, K, ParameterExpression(1, BIGINT)),
        call(
            ScalarFunction.AND,
            BOOLEAN,
            EQUAL,
            call(ScalarFunction.NOT_EQUAL, BOOLEAN, T, ConstantExpression(3, TINYINT)),
        ),
    ),
    "of no row": call(ScalarFunction.EQUAL, BOOLEAN, N, ConstantExpression(None, BIGINT)),
    "of two columns": LESS,
    "in parts": call(ScalarFunction.AND, BOOLEAN, EQUAL, LESS),
    "either": call(ScalarFunction.OR, BOOLEAN, EQUAL, LESS),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_filter_keeps_the_rows_for_which_the_condition_is_true(name: str) -> None:
    positions = {column: at for at, column in enumerate(COLUMNS)}
    rows, condition = [tuple(row) for row in ROWS] * 2, CONDITIONS[name]
    evaluate, passing = compile_over_row(condition, positions), compile_row_filter(condition, positions)
    kept = [row for row in rows if evaluate(row, PARAMS) is True]
    assert list(map(repr, passing(rows, PARAMS))) == list(map(repr, kept))
    assert list(passing([], PARAMS)) == []


def test_a_filter_declines_a_parameter_that_no_row_would_reach() -> None:
    condition = call(
        ScalarFunction.AND,
        BOOLEAN,
        call(ScalarFunction.EQUAL, BOOLEAN, K, ConstantExpression(99, BIGINT)),
        call(ScalarFunction.EQUAL, BOOLEAN, N, ParameterExpression(1, BIGINT)),
    )
    passing = compile_row_filter(condition, {column: at for at, column in enumerate(COLUMNS)})
    with pytest.raises(DeclinedError):
        passing([tuple(row) for row in ROWS], ["5"])


@pytest.mark.parametrize("expressions", [(), (S,), (S, K), (S, EXPRESSIONS["add"])], ids=len)
def test_tuples_have_the_values_of_each_row(expressions: tuple[Expression, ...]) -> None:
    positions = {column: at for at, column in enumerate(COLUMNS)}
    rows = [(1, None, 3, "b", None, None), (2, None, 3, None, None, None)]
    evaluators = [compile_over_row(expression, positions) for expression in expressions]
    expected = [tuple(evaluate(row, PARAMS) for evaluate in evaluators) for row in rows]
    assert compile_row_tuples(expressions, positions)(rows, PARAMS) == expected


@pytest.mark.parametrize(
    "expression",
    [
        call(ScalarFunction.CAST, DOUBLE, K),
        call(ScalarFunction.MULTIPLY, MONEY, ColumnExpression("m", MONEY), ColumnExpression("m", MONEY)),
    ],
    ids=["cast to a float", "a product of decimals"],
)
def test_what_python_computes_in_another_way_is_declined(expression: Expression) -> None:
    with pytest.raises(DeclinedError):
        compile_over_row(expression, {name: at for at, name in enumerate([*COLUMNS, "m"])})


def test_decimals_are_added_as_long_as_they_have_room() -> None:
    money, given = ColumnExpression("d", MONEY), ParameterExpression(1, MONEY)
    add, subtract = (
        compile_over_row(call(function, MONEY, money, given), {"d": 0})
        for function in (ScalarFunction.ADD, ScalarFunction.SUBTRACT)
    )
    value = Decimal("123456.70")
    assert str(add((value,), (Decimal("0.300"),))) == "123457.00"
    assert str(subtract((value,), (123457,))) == "-0.30"
    assert str(subtract((value,), (value,))) == "0.00"
    assert add((None,), (Decimal(1),)) is None
    for declined in (Decimal("0.001"), Decimal("NaN"), Decimal(10**6), 10**6, 876543.3, True, None):
        with pytest.raises(DeclinedError):
            add((value,), (declined,))
    with pytest.raises(DeclinedError):
        add((value,), (Decimal("876543.30"),))


def test_doubles_are_added_as_long_as_they_are_finite() -> None:
    add = compile_over_row(call(ScalarFunction.ADD, DOUBLE, F, F), {"f": 0})
    assert [add((value,), ()) for value in (0.1, -0.0, None)] == [0.2, -0.0, None]
    for value in (1e308, float("inf"), float("nan")):
        with pytest.raises(DeclinedError):
            add((value,), ())


DOUBLES = [0.0, -0.0, 1.5, -1.5, 2.0**53, float("inf"), float("-inf"), float("nan"), None]
COMPARISONS = [
    ScalarFunction.EQUAL,
    ScalarFunction.NOT_EQUAL,
    ScalarFunction.LESS,
    ScalarFunction.LESS_EQUAL,
    ScalarFunction.GREATER,
    ScalarFunction.GREATER_EQUAL,
]


@pytest.mark.parametrize("function", COMPARISONS)
def test_doubles_are_compared_as_duckdb_compares_them(function: ScalarFunction) -> None:
    positions = {"f": 0, "g": 1}
    of_two = compile_over_row(call(function, BOOLEAN, F, ColumnExpression("g", DOUBLE)), positions)
    with duckdb.connect() as other:
        for one, two in itertools.product(DOUBLES, DOUBLES):
            sql = f"SELECT ?::DOUBLE {function.value} ?::DOUBLE"
            expected = other.execute(sql, [one, two]).fetchall()[0][0]
            assert of_two((one, two), ()) is expected, (one, two)
            constant = compile_row_filter(call(function, BOOLEAN, F, ConstantExpression(two, DOUBLE)), positions)
            assert len(constant([(one,)], ())) == (expected is True), (one, two)


def test_an_integer_is_a_parameter_of_doubles_that_have_it_exactly() -> None:
    more = compile_row_filter(call(ScalarFunction.GREATER, BOOLEAN, F, ParameterExpression(1, DOUBLE)), {"f": 0})
    assert more([(1.0,), (1.5,), (None,)], [1]) == [(1.5,)]
    assert more([(-(2.0**53),), (float("nan"),)], [-(2**53)]) != []


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, BIGINT),
        (True, BIGINT),
        (1.0, BIGINT),
        (2**63, BIGINT),
        (128, TINYINT),
        ("\ud800", VARCHAR),
        (2**53 + 1, DOUBLE),
        (True, DOUBLE),
        (float("nan"), DOUBLE),
        (Decimal(1), DOUBLE),
    ],
    ids=str,
)
def test_a_parameter_of_another_type_is_declined(value: Any, type_: SqlType) -> None:
    evaluate = compile_over_row(ParameterExpression(1, type_), {})
    with pytest.raises(DeclinedError):
        evaluate((), [value])
