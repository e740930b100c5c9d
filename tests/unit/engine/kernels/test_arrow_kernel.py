"""Each stage of the arrow kernel with literal expectations, and each kind of value at which it leaves the answer to
DuckDB.
"""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.kernels.arrow import (
    SMALL_ROWS_MAX,
    AggregateFunction,
    ArrowAggregate,
    ArrowFragment,
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    OrderTerm,
    ParameterExpression,
    ParameterListExpression,
    ScalarFunction,
    slot_name,
    walk,
)
from secateur.engine.kernels.arrow import kernel as arrow_kernel
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode

TYPES = {
    "k": "VARCHAR",
    "v": "INTEGER",
    "b": "BIGINT",
    "d": "DOUBLE",
    "m": "DECIMAL(10,2)",
    "h": "HUGEINT",
    "u": "UUID",
    "ub": "UBIGINT",
    "t": "TINYINT",
}
BOOLEAN, BIGINT, DOUBLE, HUGEINT = (parse_type(text) for text in ("BOOLEAN", "BIGINT", "DOUBLE", "HUGEINT"))
UUIDS = [uuid.UUID(int=1), None, uuid.UUID(int=2**127), uuid.UUID(int=1)]
TABLE = pa.table(
    {
        "k": ["a", "b", None, "a"],
        "v": pa.array([1, 2, 3, None], pa.int32()),
        "b": pa.array([10, None, 30, 40], pa.int64()),
        "d": [1.5, -2.0, None, 0.25],
        "m": pa.array([Decimal("1.50"), None, Decimal("0.25"), Decimal("-2.00")], pa.decimal128(10, 2)),
        "h": pa.array([Decimal(5), Decimal(6), None, Decimal(7)], pa.decimal128(38, 0)),
        "u": pa.array([value and value.bytes for value in UUIDS], pa.uuid()),
        "ub": pa.array([1, 2**64 - 1, None, 3], pa.uint64()),
        "t": pa.array([1, 127, None, -128], pa.int8()),
    }
)


def column(name: str) -> ColumnExpression:
    return ColumnExpression(name, parse_type(TYPES[name]))


def constant(value: Any, name: str) -> ConstantExpression:
    return ConstantExpression(value, parse_type(TYPES[name]))


def holds(function: ScalarFunction, *arguments: Expression) -> CallExpression:
    return CallExpression(function, arguments, BOOLEAN)


def select(*names: str, **clauses: Any) -> ArrowFragment:
    return ArrowFragment(outputs=tuple((name, column(name)) for name in names), **clauses)


def answer(fragment: ArrowFragment, params: Any = (), table: pa.Table = TABLE) -> list[tuple[Any, ...]] | None:
    result = arrow_kernel.run(fragment, table, params)
    if result is None:
        return None
    result.validate(full=True)
    assert result.column_names == [name for name, _ in fragment.outputs]
    assert result.schema.types == [expression.type.arrow for _, expression in fragment.outputs]
    return [tuple(row.values()) for row in result.to_pylist()]


def where(condition: Expression) -> list[Any] | None:
    rows = answer(select("k", "b", where=condition))
    return None if rows is None else [b for _, b in rows]


CONDITIONS: list[tuple[str, Expression, list[Any]]] = [
    ("equal", holds(ScalarFunction.EQUAL, column("k"), constant("a", "k")), [10, 40]),
    ("not equal", holds(ScalarFunction.NOT_EQUAL, column("k"), constant("a", "k")), [None]),
    ("less", holds(ScalarFunction.LESS, column("d"), constant(0.25, "d")), [None]),
    ("greater equal", holds(ScalarFunction.GREATER_EQUAL, column("d"), constant(0.25, "d")), [10, 40]),
    ("decimal", holds(ScalarFunction.GREATER, column("m"), constant(Decimal("0.25"), "m")), [10]),
    ("hugeint", holds(ScalarFunction.GREATER, column("h"), constant(5, "h")), [None, 40]),
    ("uuid", holds(ScalarFunction.EQUAL, column("u"), constant(uuid.UUID(int=1), "u")), [10, 40]),
    ("uuids order by their bytes", holds(ScalarFunction.GREATER, column("u"), constant(uuid.UUID(int=1), "u")), [30]),
    ("null", holds(ScalarFunction.IS_NULL, column("k")), [30]),
    ("not null", holds(ScalarFunction.NOT, holds(ScalarFunction.IS_NULL, column("k"))), [10, None, 40]),
    ("in", holds(ScalarFunction.IN, column("v"), constant(1, "v"), constant(3, "v")), [10, 30]),
    (
        "not in leaves nulls out",
        holds(ScalarFunction.NOT, holds(ScalarFunction.IN, column("v"), constant(1, "v"))),
        [None, 30],
    ),
    (
        "or is true beside null",
        holds(
            ScalarFunction.OR,
            holds(ScalarFunction.EQUAL, column("v"), constant(9, "v")),
            holds(ScalarFunction.EQUAL, column("k"), constant("a", "k")),
        ),
        [10, 40],
    ),
    (
        "not of and with null",
        holds(
            ScalarFunction.NOT,
            holds(
                ScalarFunction.AND,
                holds(ScalarFunction.EQUAL, column("v"), constant(9, "v")),
                holds(ScalarFunction.IS_NULL, column("b")),
            ),
        ),
        [10, None, 30, 40],
    ),
    (
        "two columns",
        holds(ScalarFunction.LESS, CallExpression(ScalarFunction.CAST, (column("v"),), BIGINT), column("b")),
        [10, 30],
    ),
    ("starts with", holds(ScalarFunction.STARTS_WITH, column("k"), constant("a", "k")), [10, 40]),
    ("ends with", holds(ScalarFunction.ENDS_WITH, column("k"), constant("b", "k")), [None]),
    ("contains", holds(ScalarFunction.CONTAINS, column("k"), constant("a", "k")), [10, 40]),
    (
        "arithmetic",
        holds(
            ScalarFunction.EQUAL,
            CallExpression(ScalarFunction.ADD, (column("v"), constant(1, "v")), parse_type("INTEGER")),
            constant(3, "v"),
        ),
        [None],
    ),
    (
        "division",
        holds(
            ScalarFunction.LESS,
            CallExpression(ScalarFunction.DIVIDE, (column("d"), constant(0.0, "d")), DOUBLE),
            constant(0.0, "d"),
        ),
        [None],
    ),
    (
        "coalesce",
        holds(
            ScalarFunction.EQUAL,
            CallExpression(ScalarFunction.COALESCE, (column("v"), constant(7, "v")), parse_type("INTEGER")),
            constant(7, "v"),
        ),
        [40],
    ),
    (
        "cast",
        holds(ScalarFunction.EQUAL, CallExpression(ScalarFunction.CAST, (column("h"),), BIGINT), constant(6, "b")),
        [None],
    ),
    (
        "negation",
        holds(
            ScalarFunction.EQUAL,
            CallExpression(ScalarFunction.NEGATE, (column("v"),), parse_type("INTEGER")),
            constant(-2, "v"),
        ),
        [None],
    ),
]


@pytest.mark.parametrize(("condition", "kept"), [case[1:] for case in CONDITIONS], ids=[case[0] for case in CONDITIONS])
def test_where_keeps_the_rows_for_which_it_is_true(condition: Expression, kept: list[Any]) -> None:
    assert where(condition) == kept


NAN_TABLE = pa.table({"k": ["x", "y", "z"], "d": [math.nan, 1.0, None]})
NAN_CONDITIONS = [
    (ScalarFunction.GREATER, ["x"]),
    (ScalarFunction.GREATER_EQUAL, ["x", "y"]),
    (ScalarFunction.LESS, []),
    (ScalarFunction.LESS_EQUAL, ["y"]),
    (ScalarFunction.EQUAL, ["y"]),
    (ScalarFunction.NOT_EQUAL, ["x"]),
]


@pytest.mark.parametrize(("function", "kept"), NAN_CONDITIONS, ids=[case[0].value for case in NAN_CONDITIONS])
def test_nan_is_greater_than_every_number(function: ScalarFunction, kept: list[str]) -> None:
    assert answer(select("k", where=holds(function, column("d"), constant(1.0, "d"))), table=NAN_TABLE) == [
        (name,) for name in kept
    ]


def test_columns_come_in_the_order_asked_for_and_uuids_as_uuids() -> None:
    assert answer(select("u", "v")) == list(zip(UUIDS, [1, 2, 3, None], strict=True))


def test_a_parameter_is_taken_as_it_is() -> None:
    fragment = select(
        "v",
        where=holds(ScalarFunction.IN, column("k"), ParameterExpression(2, parse_type("VARCHAR")), constant("z", "k")),
    )
    assert answer(fragment, [None, "b"]) == [(2,)]
    assert answer(fragment, [None, "a"]) == [(1,), (None,)]


@pytest.mark.parametrize(
    ("name", "values", "rows"),
    [("k", ["a", "z"], [(1,), (None,)]), ("b", [10, 30, 10], [(1,), (3,)]), ("t", [-128], [(None,)])],
)
def test_a_list_is_looked_up(name: str, values: list[Any], rows: list[tuple[Any, ...]]) -> None:
    condition = holds(ScalarFunction.IN, column(name), ParameterListExpression(2, column(name).type))
    assert decode(encode(condition), type(condition)) == condition
    assert answer(select("v", where=condition), [None, values]) == rows
    others = [
        row
        for row, value in zip([(1,), (2,), (3,), (None,)], TABLE[name].to_pylist(), strict=True)
        if value is not None and value not in values
    ]
    assert answer(select("v", where=holds(ScalarFunction.NOT, condition)), [None, values]) == others


@pytest.mark.parametrize(
    ("name", "values", "rows"),
    [("k", ["a", "z"], [(1,), (None,)]), ("b", [10, 30], [(1,), (3,)]), ("t", [-128, 0], [(None,)])],
)
def test_parameters_and_constants_in_a_list_are_looked_up(
    name: str, values: list[Any], rows: list[tuple[Any, ...]]
) -> None:
    kind = column(name).type
    first, second = values
    items = (ParameterExpression(2, kind), ConstantExpression(second, kind), ParameterExpression(3, kind))
    condition = holds(ScalarFunction.IN, column(name), *items)
    assert answer(select("v", where=condition), [None, first, first]) == rows
    for other in (None, 3.5, b"a", True, 2**70, "\ud800"):
        assert answer(select("v", where=condition), [None, first, other]) is None


@pytest.mark.parametrize("value", [None, [], ["a", None], ["a", 1], "a", {"a": 1}, ["\ud800"], [["a"]]], ids=repr)
def test_another_list_is_left_to_duckdb(value: Any) -> None:
    assert (
        answer(
            select("v", where=holds(ScalarFunction.IN, column("k"), ParameterListExpression(1, parse_type("VARCHAR")))),
            [value],
        )
        is None
    )


def test_a_list_with_a_number_out_of_range_is_left_to_duckdb() -> None:
    assert (
        answer(
            select("v", where=holds(ScalarFunction.IN, column("t"), ParameterListExpression(1, parse_type("TINYINT")))),
            [[1, 128]],
        )
        is None
    )


@pytest.mark.parametrize("value", [None, 5, b"a", "\ud800"], ids=repr)
def test_another_parameter_is_left_to_duckdb(value: Any) -> None:
    assert (
        answer(
            select("v", where=holds(ScalarFunction.EQUAL, column("k"), ParameterExpression(1, parse_type("VARCHAR")))),
            [value],
        )
        is None
    )


def test_a_missing_parameter_is_left_to_duckdb() -> None:
    assert (
        answer(
            select("v", where=holds(ScalarFunction.EQUAL, column("k"), ParameterExpression(1, parse_type("VARCHAR"))))
        )
        is None
    )


@pytest.mark.parametrize("name", ["v", "t"])
def test_an_overflow_is_left_to_duckdb(name: str) -> None:
    high = parse_type(TYPES[name]).integer_range[1]
    doubled = CallExpression(ScalarFunction.ADD, (column(name), constant(high, name)), parse_type(TYPES[name]))
    assert answer(ArrowFragment(outputs=(("x", doubled),))) is None


def test_a_cast_out_of_range_is_left_to_duckdb() -> None:
    assert answer(
        ArrowFragment(outputs=(("x", CallExpression(ScalarFunction.CAST, (column("b"),), parse_type("TINYINT"))),))
    ) == [(10,), (None,), (30,), (40,)]
    assert answer(ArrowFragment(outputs=(("x", CallExpression(ScalarFunction.CAST, (column("ub"),), BIGINT)),))) is None


def test_distinct_merges_equal_rows_and_nulls() -> None:
    rows = answer(select("k", distinct=True, order=(OrderTerm(ColumnExpression(slot_name(0), parse_type("VARCHAR"))),)))
    assert rows == [("a",), ("b",), (None,)]


def test_distinct_of_uuids() -> None:
    rows = answer(select("u", distinct=True))
    assert rows is not None
    assert set(rows) == {(value,) for value in UUIDS}
    assert len(rows) == 3


ORDERS = [
    (OrderTerm(column("v")), [1, 2, 3, None]),
    (OrderTerm(column("v"), descending=True), [3, 2, 1, None]),
    (OrderTerm(column("v"), nulls_first=True), [None, 1, 2, 3]),
    (OrderTerm(column("v"), descending=True, nulls_first=True), [None, 3, 2, 1]),
]


@pytest.mark.parametrize(("key", "expected"), ORDERS, ids=["asc", "desc", "asc nulls first", "desc nulls first"])
def test_order_by(key: OrderTerm, expected: list[Any]) -> None:
    assert answer(select("v", order=(key,))) == [(value,) for value in expected]


def test_order_by_several_keys_that_need_not_be_shown() -> None:
    assert answer(
        select("b", order=(OrderTerm(column("k"), nulls_first=True), OrderTerm(column("d"), descending=True)))
    ) == [(30,), (10,), (40,), (None,)]


def test_nan_to_be_sorted_is_left_to_duckdb() -> None:
    assert answer(select("k", order=(OrderTerm(column("d")),)), table=NAN_TABLE) is None


def test_many_rows_to_be_sorted_are_left_to_duckdb() -> None:
    table = pa.table({"b": range(arrow_kernel._SORTED_ROWS_MAX + 1)})
    assert answer(select("b", order=(OrderTerm(column("b")),)), table=table) is None


WINDOWS = [
    ((None, 2), [10, None]),
    ((1, 2), [None, 30]),
    ((3, None), [40]),
    ((9, 1), []),
    ((0, 0), []),
    ((2, 9), [30, 40]),
]


@pytest.mark.parametrize(("window", "expected"), WINDOWS, ids=[str(case[0]) for case in WINDOWS])
@pytest.mark.parametrize("is_ordered", [False, True], ids=["as it comes", "ordered"])
def test_offset_and_limit(window: tuple[int | None, int | None], expected: list[Any], is_ordered: bool) -> None:
    offset, limit = (None if count is None else ConstantExpression(count, BIGINT) for count in window)
    table = TABLE.append_column("n", pa.array(range(4)))
    order = (OrderTerm(ColumnExpression("n", BIGINT)),) if is_ordered else ()
    assert answer(select("b", offset=offset, limit=limit, order=order), table=table) == [(value,) for value in expected]


def test_limit_may_be_a_parameter() -> None:
    fragment = select("b", limit=ParameterExpression(1, BIGINT))
    assert answer(fragment, [1]) == [(10,)]
    assert answer(fragment, [-1]) is None
    assert answer(fragment, [None]) is None


# --- aggregation ------------------------------------------------------------------------------------------------------


def aggregate(*aggregates: ArrowAggregate, keys: tuple[Expression, ...] = (), **clauses: Any) -> ArrowFragment:
    types = [*(key.type for key in keys), *(some.type for some in aggregates)]
    outputs = tuple(
        (f"c{position}", ColumnExpression(slot_name(position), type_)) for position, type_ in enumerate(types)
    )
    return ArrowFragment(outputs=outputs, keys=keys, aggregates=aggregates, **clauses)


def of(function: AggregateFunction, name: str, type_text: str) -> ArrowAggregate:
    return ArrowAggregate(function, column(name), parse_type(type_text))


COUNT_ROWS = ArrowAggregate(AggregateFunction.COUNT_ROWS, None, BIGINT)
NOTHING = holds(ScalarFunction.EQUAL, column("k"), constant("nobody", "k"))
AGGREGATES = [
    (COUNT_ROWS, 4, 0),
    (of(AggregateFunction.COUNT, "b", "BIGINT"), 3, 0),
    (of(AggregateFunction.SUM, "v", "HUGEINT"), Decimal(6), None),
    (of(AggregateFunction.SUM, "b", "HUGEINT"), Decimal(80), None),
    (of(AggregateFunction.SUM, "t", "HUGEINT"), Decimal(0), None),
    (of(AggregateFunction.SUM, "d", "DOUBLE"), -0.25, None),
    (of(AggregateFunction.SUM, "m", "DECIMAL(38,2)"), Decimal("-0.25"), None),
    (of(AggregateFunction.SUM, "h", "HUGEINT"), Decimal(18), None),
    (of(AggregateFunction.MIN, "k", "VARCHAR"), "a", None),
    (of(AggregateFunction.MAX, "d", "DOUBLE"), 1.5, None),
    (of(AggregateFunction.MAX, "u", "UUID"), uuid.UUID(int=2**127), None),
    (of(AggregateFunction.MIN, "m", "DECIMAL(10,2)"), Decimal("-2.00"), None),
    (of(AggregateFunction.AVG, "v", "DOUBLE"), 2.0, None),
    (of(AggregateFunction.AVG, "d", "DOUBLE"), -0.25 / 3, None),
    (of(AggregateFunction.AVG, "m", "DOUBLE"), -0.25 / 3, None),
    (of(AggregateFunction.AVG, "h", "DOUBLE"), 6.0, None),
]
IDS = [f"{case[0].function.value} {'' if case[0].argument is None else case[0].argument.type}" for case in AGGREGATES]


@pytest.mark.parametrize(("some", "expected", "of_nothing"), AGGREGATES, ids=IDS)
def test_an_aggregate_of_all_rows_and_of_none(some: ArrowAggregate, expected: Any, of_nothing: Any) -> None:
    assert answer(aggregate(some)) == [(expected,)]
    assert answer(aggregate(some, where=NOTHING)) == [(of_nothing,)]
    assert answer(aggregate(some), table=TABLE.slice(0, 0)) == [(of_nothing,)]


@pytest.mark.parametrize(("some", "expected", "of_nothing"), AGGREGATES, ids=IDS)
def test_the_same_for_each_group(some: ArrowAggregate, expected: Any, of_nothing: Any) -> None:
    table = pa.concat_tables(
        [TABLE.append_column("g", pa.array([1] * 4)), TABLE.slice(0, 1).append_column("g", pa.array([2]))]
    )
    nulls = pa.table({name: pa.nulls(1, parse_type(text).arrow) for name, text in TYPES.items()} | {"g": [3]})
    rows = answer(aggregate(some, keys=(ColumnExpression("g", BIGINT),)), table=pa.concat_tables([table, nulls]))
    assert rows is not None
    assert sorted(rows)[0] == (1, expected)
    assert sorted(rows)[2] == (3, 1 if some is COUNT_ROWS else of_nothing)
    assert answer(aggregate(some, keys=(ColumnExpression("g", BIGINT),)), table=table.slice(0, 0)) == []


def test_null_is_a_group() -> None:
    rows = answer(
        aggregate(
            COUNT_ROWS, keys=(column("k"),), order=(OrderTerm(ColumnExpression(slot_name(0), parse_type("VARCHAR"))),)
        )
    )
    assert rows == [("a", 2), ("b", 1), (None, 1)]


def test_groups_by_an_expression_and_by_uuid() -> None:
    parity = CallExpression(ScalarFunction.MULTIPLY, (column("v"), constant(0, "v")), parse_type("INTEGER"))
    rows = answer(aggregate(COUNT_ROWS, keys=(parity, column("u"))))
    assert rows is not None
    assert set(rows) == {(0, UUIDS[0], 1), (0, None, 1), (0, UUIDS[2], 1), (None, UUIDS[0], 1)}


def test_having_sees_keys_and_aggregates() -> None:
    having = holds(ScalarFunction.GREATER, ColumnExpression(slot_name(1), BIGINT), ConstantExpression(1, BIGINT))
    assert answer(aggregate(COUNT_ROWS, keys=(column("k"),), having=having)) == [("a", 2)]


LEFT_TO_DUCKDB = [
    ("sum past 64 bits", of(AggregateFunction.SUM, "b", "HUGEINT"), {"b": pa.array([2**62, 2**62])}),
    (
        "sum past unsigned 64 bits",
        of(AggregateFunction.SUM, "ub", "HUGEINT"),
        {"ub": pa.array([2**63, 2**63], pa.uint64())},
    ),
    (
        "sum past 38 digits",
        of(AggregateFunction.SUM, "h", "HUGEINT"),
        {"h": pa.array([Decimal(10**38 - 1), Decimal(1)], pa.decimal128(38, 0))},
    ),
    ("average whose sum is no double", of(AggregateFunction.AVG, "b", "DOUBLE"), {"b": pa.array([2**53, 1])}),
    (
        "average of decimals whose sum is no double",
        of(AggregateFunction.AVG, "h", "DOUBLE"),
        {"h": pa.array([Decimal(2**60)], pa.decimal128(38, 0))},
    ),
    ("minimum with nan", of(AggregateFunction.MIN, "d", "DOUBLE"), {"d": pa.array([1.0, math.nan])}),
    ("maximum with nan", of(AggregateFunction.MAX, "d", "DOUBLE"), {"d": pa.array([1.0, math.nan])}),
]


@pytest.mark.parametrize(
    ("some", "data"), [case[1:] for case in LEFT_TO_DUCKDB], ids=[case[0] for case in LEFT_TO_DUCKDB]
)
def test_values_that_need_duckdb(some: ArrowAggregate, data: dict[str, pa.Array]) -> None:
    table = pa.table(data | {"g": [1] * len(next(iter(data.values())))})
    many = pa.concat_tables([table] * SMALL_ROWS_MAX)
    assert answer(aggregate(some), table=many) is None
    assert answer(aggregate(some, keys=(ColumnExpression("g", BIGINT),)), table=many) is None


def test_few_rows_are_summed_past_64_bits() -> None:
    """Python's integers have no end."""
    group = (ColumnExpression("g", BIGINT),)
    table = pa.table({"b": [2**62, 2**62, -(2**63)], "g": [1, 1, 2]})
    assert answer(aggregate(of(AggregateFunction.SUM, "b", "HUGEINT"), keys=group), table=table) == [
        (1, Decimal(2**63)),
        (2, Decimal(-(2**63))),
    ]
    assert answer(aggregate(of(AggregateFunction.SUM, "b", "HUGEINT")), table=table) == [(Decimal(0),)]
    assert answer(aggregate(of(AggregateFunction.SUM, "b", "HUGEINT")), table=table.slice(0, 2)) == [(Decimal(2**63),)]
    assert answer(aggregate(of(AggregateFunction.AVG, "b", "DOUBLE"), keys=group), table=table) is None


@pytest.mark.parametrize("keys", [(), (ColumnExpression("g", BIGINT),)], ids=["all", "groups"])
def test_doubles_are_added_one_after_the_other_by_every_python(keys: tuple[Expression, ...]) -> None:
    table = pa.table({"d": [0.1] * 10, "g": [1] * 10})
    sums = aggregate(of(AggregateFunction.SUM, "d", "DOUBLE"), of(AggregateFunction.AVG, "d", "DOUBLE"), keys=keys)
    assert answer(sums, table=table) == [(*[1 for _ in keys], 0.9999999999999999, 0.09999999999999999)]


@pytest.mark.parametrize("rows", [SMALL_ROWS_MAX, SMALL_ROWS_MAX + 1], ids=["small", "large"])
def test_few_rows_and_many_give_the_same_groups(rows: int) -> None:
    table = pa.table(
        {
            "g": [None if i % 7 == 0 else i % 5 for i in range(rows)],
            "b": [None if i % 3 == 0 else i for i in range(rows)],
        }
    )
    functions = (AggregateFunction.SUM, AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.COUNT)
    some = [
        ArrowAggregate(
            function,
            ColumnExpression("b", BIGINT),
            parse_type("HUGEINT" if function is AggregateFunction.SUM else "BIGINT"),
        )
        for function in functions
    ]
    found = answer(aggregate(*some, COUNT_ROWS, keys=(ColumnExpression("g", BIGINT),)), table=table)
    assert found is not None
    by_group: dict[Any, list[int | None]] = {}
    for group, value in zip(table["g"].to_pylist(), table["b"].to_pylist(), strict=True):
        by_group.setdefault(group, []).append(value)
    present = {group: [value for value in values if value is not None] for group, values in by_group.items()}
    assert set(found) == {
        (group, sum(some), min(some), max(some), len(some), len(by_group[group])) for group, some in present.items()
    }


@pytest.mark.parametrize("rows", [SMALL_ROWS_MAX, SMALL_ROWS_MAX + 1], ids=["small", "large"])
def test_values_without_an_object_in_python_are_counted(rows: int) -> None:
    late = pa.array([None if i % 3 == 0 else 10**7 for i in range(rows)], pa.int32()).cast(pa.date32())
    count = ArrowAggregate(AggregateFunction.COUNT, ColumnExpression("late", parse_type("DATE")), BIGINT)
    table, expected = pa.table({"late": late, "g": [1] * rows}), rows - late.null_count
    assert answer(aggregate(count), table=table) == [(expected,)]
    assert answer(aggregate(count, keys=(ColumnExpression("g", BIGINT),)), table=table) == [(1, expected)]


def test_sums_of_64_bits_that_fit_are_answered() -> None:
    assert answer(
        aggregate(of(AggregateFunction.SUM, "b", "HUGEINT")), table=pa.table({"b": [2**61, -(2**61), 2**61]})
    ) == [(Decimal(2**61),)]
    table = pa.table({"ub": pa.array([2**62, 2**62], pa.uint64())})
    assert answer(aggregate(of(AggregateFunction.SUM, "ub", "HUGEINT")), table=table) == [(Decimal(2**63),)]


def test_a_hugeint_that_no_double_holds_is_left_to_duckdb() -> None:
    widened = ArrowFragment(outputs=(("x", CallExpression(ScalarFunction.CAST, (column("h"),), DOUBLE)),))
    assert answer(widened) == [(5.0,), (6.0,), (None,), (7.0,)]
    assert answer(widened, table=pa.table({"h": pa.array([Decimal(2**53 + 1)], pa.decimal128(38, 0))})) is None


# --- chunks -----------------------------------------------------------------------------------------------------------


CHUNKED = [
    select("u", "v", where=holds(ScalarFunction.GREATER, column("v"), constant(1, "v"))),
    select("u", "k", where=holds(ScalarFunction.NOT, holds(ScalarFunction.IN, column("k"), constant("b", "k")))),
    select("k", distinct=True, order=(OrderTerm(ColumnExpression(slot_name(0), parse_type("VARCHAR"))),)),
    select("b", "u", order=(OrderTerm(column("b"), descending=True),), limit=ConstantExpression(2, BIGINT)),
    aggregate(
        COUNT_ROWS,
        of(AggregateFunction.AVG, "m", "DOUBLE"),
        of(AggregateFunction.MAX, "u", "UUID"),
        of(AggregateFunction.MIN, "d", "DOUBLE"),
    ),
    aggregate(
        COUNT_ROWS,
        of(AggregateFunction.SUM, "v", "HUGEINT"),
        keys=(column("k"),),
        order=(OrderTerm(ColumnExpression(slot_name(0), parse_type("VARCHAR"))),),
    ),
]


@pytest.mark.parametrize("fragment", CHUNKED, ids=["filter", "not in", "distinct", "top", "global", "grouped"])
def test_chunks_make_no_difference(fragment: ArrowFragment) -> None:
    chunked = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(0, 0), TABLE.slice(1, 2), TABLE.slice(3)])
    expected = answer(fragment)
    assert expected is not None
    assert answer(fragment, table=chunked) == expected


@pytest.mark.parametrize("fragment", CHUNKED, ids=["filter", "not in", "distinct", "top", "global", "grouped"])
def test_chunks_of_many_rows_make_no_difference(fragment: ArrowFragment) -> None:
    """Of so many rows, chunks are not joined, and threads aggregate."""
    several = pa.concat_tables([TABLE] * (200_000 // TABLE.num_rows // 3 + 1)).combine_chunks()
    chunked = pa.concat_tables([several, several, several])
    expected = answer(fragment, table=chunked.combine_chunks())
    assert answer(fragment, table=chunked) == expected
    assert (expected is None) == bool(fragment.order and fragment.limit), "many rows are left to DuckDB to sort"


# --- wire -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [case[1] for case in CONDITIONS], ids=[case[0] for case in CONDITIONS])
def test_an_expression_survives_the_wire(condition: Expression) -> None:
    assert decode(encode(condition), type(condition)) == condition


@pytest.mark.parametrize("fragment", CHUNKED, ids=["filter", "not in", "distinct", "top", "global", "grouped"])
def test_a_fragment_survives_the_wire_with_its_memo_left_behind(fragment: ArrowFragment) -> None:
    arrow_kernel.run(fragment, TABLE)
    copy = decode(encode(fragment), ArrowFragment)
    assert copy == fragment
    assert copy.program is None


def test_walk_goes_top_down() -> None:
    condition = holds(ScalarFunction.EQUAL, column("k"), constant("a", "k"))
    assert list(walk(condition)) == [condition, column("k"), constant("a", "k")]
