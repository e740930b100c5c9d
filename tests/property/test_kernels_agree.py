"""Law: whatever the arrow kernel answers, DuckDB answers the same: values, types, column names, and order where there
is one.

Statements are drawn at random over a relation that has every column type with its awkward values; a failure prints the
seed and the statement. Sums of DOUBLE are compared to 1e-12 of the magnitude, of many rows to 1e-10, because the two
kernels add in another order. Sizes grow with ``SECATEUR_PROPERTY_FACTOR`` for a nightly run.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import os
import random
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels import Fragment
from secateur.engine.kernels.arrow import ArrowFragment
from secateur.engine.kernels.arrow import kernel as arrow_kernel
from secateur.engine.kernels.duckdb import DuckDBKernel
from secateur.errors import Error
from secateur.partitioning.types import SqlType, TypeKind, from_unscaled, parse_type
from secateur.planner.arrow import arrow_form
from secateur.planner.binding import Unreadable, bind_to_plan
from secateur.protocol import decode, encode

FACTOR = float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))
STATEMENTS = int(15 * FACTOR)
ON_MANY_ROWS = int(5 * FACTOR)
MANY_ROWS = 200_000
"""From so many rows on, the arrow kernel leaves chunks as they are and aggregates in several threads."""
LISTED_ROWS_MAX = 20_000
TYPES = {
    "id": "INTEGER",
    "k": "VARCHAR",
    "flag": "BOOLEAN",
    "t": "TINYINT",
    "s": "SMALLINT",
    "i": "INTEGER",
    "j": "INTEGER",
    "b": "BIGINT",
    "h": "HUGEINT",
    "ut": "UTINYINT",
    "ub": "UBIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "n": "DOUBLE",
    "m": "DECIMAL(10,2)",
    "big": "DECIMAL(38,4)",
    "day": "DATE",
    "clock": "TIME",
    "ts": "TIMESTAMP",
    "atz": "TIMESTAMP WITH TIME ZONE",
    "raw": "BLOB",
    "u": "UUID",
    "tags": "INTEGER[]",
}
SCHEMA = {name: parse_type(text) for name, text in TYPES.items()}
NUMERIC = ["t", "s", "i", "j", "b", "h", "ut", "ub", "f", "d", "n", "m", "big"]
SIGNED = ["t", "s", "i", "j", "b"]
UTC = dt.UTC


@pytest.fixture(scope="module")
def duckdb_kernel() -> Iterator[DuckDBKernel]:
    kernel = DuckDBKernel(threads=2)
    yield kernel
    kernel.close()


@pytest.mark.parametrize(
    ("seed", "statements", "rows_least"),
    [
        *(pytest.param(seed, STATEMENTS, 0, id=f"{seed}") for seed in range(3)),
        *(pytest.param(seed, ON_MANY_ROWS, MANY_ROWS, id=f"{seed}, many rows") for seed in range(3, 6)),
    ],
)
def test_both_kernels_give_the_same_table(
    duckdb_kernel: DuckDBKernel, seed: int, statements: int, rows_least: int
) -> None:
    rng = random.Random(seed)
    answered = 0
    for number in itertools.count():
        if answered == statements:
            break
        assert number < 10 * statements, "too few statements reach the arrow kernel for this test to say anything"
        table = repeated(relation(rng), rows_least)
        statement = Statement(rng)
        case = f"seed {seed}, statement {number}: {statement.sql} {statement.params!r}"
        fragment = compiled(duckdb_kernel, statement)
        if fragment is None:
            continue
        assert decode(encode(fragment), ArrowFragment) == fragment, case
        answer = arrow_kernel.run(fragment, table, statement.params)
        if answer is None:
            continue
        answered += 1
        whole = Fragment.over(statement.sql, {"s0": SCHEMA}, statement.columns)
        expected = duckdb_kernel.run(
            whole.sql, {"s0": table}, statement.params, names=whole.column_names, casts=whole.casts
        )
        if answer.num_rows > LISTED_ROWS_MAX:
            assert_same_rows(answer, expected, case)
        else:
            assert_same(answer, expected, statement, case, 1e-10 if rows_least else 1e-12)


def compiled(kernel: DuckDBKernel, statement: Statement) -> ArrowFragment | None:
    try:
        statement.columns = kernel.describe(statement.sql, {"s0": SCHEMA}, statement.params)
    except Error:
        return None  # a statement that does not bind: what the generator drew has no meaning
    plan = bind_to_plan(kernel, statement.sql, {"s0": SCHEMA}, statement.params)
    if isinstance(plan, Unreadable):
        return None
    form = arrow_form(plan.root, plan.text, statement.columns)
    return form if isinstance(form, ArrowFragment) else None


def assert_same(answer: pa.Table, expected: pa.Table, statement: Statement, case: str, rel_tol: float) -> None:
    answer.validate(full=True)
    assert answer.schema.equals(expected.schema), f"{case}\n{answer.schema}\n{expected.schema}"
    got, want = rows(answer), rows(expected)
    if not statement.is_totally_ordered:
        assert [sortable(tuple(row[i] for i in statement.order)) for row in got] == [
            sortable(tuple(row[i] for i in statement.order)) for row in want
        ], case
        got, want = sorted(got, key=sortable), sorted(want, key=sortable)
    assert len(got) == len(want), case
    for left, right in zip(got, want, strict=True):
        assert all(equal(a, b, rel_tol) for a, b in zip(left, right, strict=True)), (
            f"{case}\narrow  {left}\nduckdb {right}"
        )


def assert_same_rows(answer: pa.Table, expected: pa.Table, case: str) -> None:
    """The same many rows, in any order: the arrow kernel does not sort so many."""
    answer.validate(full=True)
    assert answer.schema.equals(expected.schema), f"{case}\n{answer.schema}\n{expected.schema}"
    assert answer.num_rows == expected.num_rows, case
    names = [f"c{position}" for position in range(answer.num_columns)]
    got, want = answer.rename_columns(names), expected.rename_columns(names)
    with duckdb.connect() as connection:
        connection.register("got", got)
        connection.register("want", want)
        assert connection.execute("FROM got EXCEPT ALL FROM want").fetchall() == [], case


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [
        ["nan" if isinstance(v, float) and math.isnan(v) else v for v in column.to_pylist()] for column in table.columns
    ]
    return list(zip(*columns, strict=True)) if columns else []


def equal(left: Any, right: Any, rel_tol: float) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=rel_tol, abs_tol=1e-9)
    return bool(left == right) and type(left) is type(right)


def sortable(row: tuple[Any, ...]) -> str:
    return repr([f"{round(value, 7) + 0.0:.9g}" if isinstance(value, float) else value for value in row])


# --- data -------------------------------------------------------------------------------------------------------------


def relation(rng: random.Random) -> pa.Table:
    """A few dozen rows in one to three chunks; sometimes none."""
    count = rng.choice([0, 1, 3, 30, 80])
    columns = {
        name: pa.array(
            [None if name != "id" and rng.random() < 0.15 else value(rng, name, row) for row in range(count)],
            storage(SCHEMA[name]),
        )
        for name in TYPES
    }
    columns["u"] = pa.ExtensionArray.from_storage(pa.uuid(), columns["u"])
    table = pa.table(columns)
    cuts = sorted(rng.randrange(count + 1) for _ in range(rng.choice([0, 0, 2])))
    bounds = [0, *cuts, count]
    return pa.concat_tables(table.slice(start, stop - start) for start, stop in itertools.pairwise(bounds))


def repeated(table: pa.Table, rows_least: int) -> pa.Table:
    """The rows as often as makes so many, in chunks that double, except the first."""
    while 0 < table.num_rows < rows_least:
        table = pa.concat_tables([table, table.combine_chunks()])
    return table


def storage(type_: SqlType) -> pa.DataType:
    return pa.binary(16) if type_.kind is TypeKind.UUID else type_.arrow


def value(rng: random.Random, name: str, row: int) -> Any:
    kind = SCHEMA[name].kind
    if name == "id":
        return row
    if SCHEMA[name].is_integer:
        low, high = SCHEMA[name].integer_range
        edges = [low, high] if name in ("j", "b", "h", "ub") and rng.random() < 0.05 else [0]
        small = rng.randint(max(low, -9), 9)
        chosen = rng.choice([*edges, small, small, small])
        return (
            Decimal(chosen)
            if kind is TypeKind.HUGEINT and abs(chosen) < 10**38
            else 7
            if kind is TypeKind.HUGEINT
            else chosen
        )
    match kind:
        case TypeKind.VARCHAR:
            return rng.choice(["", "a", "A", "ab", "abc", "b%", "é", "日本", "z_"])
        case TypeKind.BOOLEAN:
            return rng.random() < 0.5
        case TypeKind.FLOAT:
            return rng.choice([0.0, -0.0, 1.5, -2.25, 0.5, 3.0])
        case TypeKind.DOUBLE:
            return rng.choice(
                [0.0, -0.0, 1.5, -2.25, 0.1, 3.0, 12345.678, *([math.nan, math.inf, -math.inf] if name == "n" else [])]
            )
        case TypeKind.DECIMAL:
            return from_unscaled(rng.choice([0, 150, -225, 10, 99, 99999999]), 2)
        case TypeKind.DATE:
            return dt.date(2024, 1, 1) + dt.timedelta(days=rng.randint(-2, 2))
        case TypeKind.TIME:
            return dt.time(rng.randint(0, 2), 30, 0, rng.choice([0, 1]))
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            moment = dt.datetime(2024, 1, 1) + dt.timedelta(hours=rng.randint(-3, 3), microseconds=rng.choice([0, 1]))
            return moment if kind is TypeKind.TIMESTAMP else moment.replace(tzinfo=UTC)
        case TypeKind.BLOB:
            return rng.choice([b"", b"\x00", b"a", b"\xff\x00"])
        case TypeKind.UUID:
            return uuid.UUID(int=rng.choice([0, 1, 2**127, 2**128 - 1])).bytes
        case TypeKind.LIST:
            return rng.choice([[], [1], [1, None]])
        case _:
            raise AssertionError(kind)


# --- statements -------------------------------------------------------------------------------------------------------


class Statement:
    """One random SELECT over ``s0`` with its parameters."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.params: list[Any] = []
        self.columns: tuple[tuple[str, str], ...] = ()
        self.order: list[int] = []
        self.is_totally_ordered = False
        self.sql = self._aggregation() if rng.random() < 0.5 else self._projection()

    def _projection(self) -> str:
        items = self.rng.sample(list(TYPES), self.rng.randint(1, 4)) + [
            self.rng.choice([self._number, self._number, self._text])() for _ in range(self.rng.choice([0, 0, 1]))
        ]
        distinct = "DISTINCT " if self.rng.random() < 0.15 else ""
        listed = (
            "*"
            if self.rng.random() < 0.1
            else ", ".join(f"{item} AS c{n}" if self.rng.random() < 0.3 else item for n, item in enumerate(items))
        )
        count = len(TYPES) if listed == "*" else len(items)
        return f"SELECT {distinct}{listed} FROM s0{self._where()}{self._order(count, 'id' if not distinct else None)}"

    def _aggregation(self) -> str:
        keys = self.rng.sample(
            ["k", "flag", "t", "i", "b", "h", "m", "day", "clock", "ts", "atz", "raw", "u", "i + 1", "t * 2"],
            self.rng.choice([0, 0, 1, 1, 2]),
        )
        items = [*keys, *(self._aggregate() for _ in range(self.rng.randint(1, 3)))]
        group = (
            f" GROUP BY {', '.join(self.rng.choice([key, str(n + 1)]) for n, key in enumerate(keys))}" if keys else ""
        )
        group = " GROUP BY ALL" if keys and self.rng.random() < 0.1 else group
        having = (
            " HAVING"
            f" {self.rng.choice(['count(*) > 1', 'sum(t) >= 0', 'max(i) < 5 OR min(i) IS NULL', 'avg(d) <> 1.5'])}"
            if self.rng.random() < 0.2
            else ""
        )
        return f"SELECT {', '.join(items)} FROM s0{self._where()}{group}{having}{self._order(len(items), None)}"

    def _aggregate(self) -> str:
        rng = self.rng
        call = rng.choice(
            [
                "count(*)",
                "count({any})",
                "sum({num})",
                "min({ordered})",
                "max({ordered})",
                "avg({num})",
                "sum({expr})",
                "sum({num}) / count(*)",
                "CAST(sum({num}) AS DOUBLE) / count({num})",
                "count({expr})",
            ]
        )
        if rng.random() < 0.2:
            passes = f" FILTER (WHERE {self._condition(0)})"
            call = rng.choice(
                [
                    f"count(DISTINCT {rng.choice(['k', 'flag', 'day', 'ts', 'u', 't', 'i', 'b', '{any}', '{expr}'])})",
                    f"count(*){passes}",
                    f"{rng.choice(['sum', 'avg', 'min', 'max', 'count'])}({{num}}){passes}",
                ]
            )
        ordered = rng.choice(["k", "flag", "day", "clock", "ts", "atz", "raw", "u", *NUMERIC])
        return call.format(any=rng.choice(list(TYPES)), num=rng.choice(NUMERIC), ordered=ordered, expr=self._number())

    def _text(self) -> str:
        return self.rng.choice(
            ["upper(k)", "lower(k)", "k || k", "k || '-é'", "'x' || lower(k || 'Y')", "upper(k) || k"]
        )

    def _number(self) -> str:
        rng = self.rng
        left = rng.choice([*SIGNED, "d", "n", "ut"])
        right = rng.choice([*SIGNED, "d", "2", "1", "1.5", "-3"])
        return rng.choice(
            [
                f"{left} + {right}",
                f"{left} - {right}",
                f"{left} * {right}",
                f"{left} / {right}",
                f"-{left}",
                f"CAST({rng.choice(NUMERIC)} AS DOUBLE)",
                f"{rng.choice(NUMERIC)} / {right}",
                f"CAST({left} AS {rng.choice(['BIGINT', 'TINYINT', 'HUGEINT', 'UINTEGER'])})",
                f"coalesce({left}, {rng.choice(['0', '-1', '7'])})",
                f"({left} + 1) * 2",
                f"CASE WHEN {self._condition(0)} THEN {left} ELSE {rng.choice([left, '0', 'NULL', '1000'])} END",
                f"CASE WHEN {self._condition(0)} THEN {left} WHEN {self._condition(1)} THEN 1 END",
                f"CASE WHEN {self._condition(0)} THEN 1 ELSE 0 END",
                f"CASE {left} WHEN 1 THEN 2 WHEN {right} THEN 3 END",
            ]
        )

    def _where(self) -> str:
        return f" WHERE {self._condition(2)}" if self.rng.random() < 0.8 else ""

    def _condition(self, depth: int) -> str:
        rng = self.rng
        draw = rng.random()
        if depth and draw < 0.3:
            return f"({self._condition(depth - 1)} {rng.choice(['AND', 'OR'])} {self._condition(depth - 1)})"
        if depth and draw < 0.4:
            return f"NOT {self._condition(depth - 1)}"
        column = rng.choice(list(TYPES))
        if draw < 0.5:
            return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
        if draw < 0.65:
            items = ", ".join(self._constant(column) for _ in range(rng.randint(1, 3)))
            return f"{column} {rng.choice(['IN', 'NOT IN'])} ({items})"
        if draw < 0.7:
            return f"{column} BETWEEN {self._constant(column)} AND {self._constant(column)}"
        if draw < 0.75:
            if rng.random() < 0.2:
                return f"{self._text()} {rng.choice(['=', '<', '<>'])} {rng.choice(['A', 'aa', 'AB-é'])!r}"
            return f"k {rng.choice(['LIKE', 'NOT LIKE'])} {rng.choice(['a%', '%b', '%a%', 'é%', '%_%', 'ab'])!r}"
        if draw < 0.8:
            return f"{rng.choice(SIGNED)} {self._operator()} {rng.choice(SIGNED)}"
        if draw < 0.87:
            return f"{self._number()} {self._operator()} {rng.choice(['0', '2', '-1.5'])}"
        if draw < 0.9:
            return "flag"
        left, right = column, self._constant(column)
        return f"{left} {self._operator()} {right}" if rng.random() < 0.8 else f"{right} {self._operator()} {left}"

    def _operator(self) -> str:
        return self.rng.choice(["=", "<>", "<", "<=", ">", ">="])

    def _constant(self, column: str) -> str:
        """A literal or a parameter, mostly of the column's type, now and then of another."""
        rng = self.rng
        other = rng.choice(list(TYPES)) if rng.random() < 0.1 else column
        drawn = value(rng, other, rng.randint(0, 30))
        if SCHEMA[other].kind is TypeKind.UUID:
            drawn = uuid.UUID(bytes=drawn)
        if SCHEMA[other].kind is TypeKind.HUGEINT:
            drawn = int(drawn)
        if (
            rng.random() < 0.5
            or isinstance(drawn, (bytes, list))
            or (isinstance(drawn, float) and not math.isfinite(drawn))
        ):
            self.params.append(None if rng.random() < 0.02 else drawn)
            return f"${len(self.params)}"
        return literal(drawn)

    def _order(self, count: int, unique: str | None) -> str:
        rng = self.rng
        limit = f" LIMIT {rng.randint(0, 9)}{rng.choice(['', ' OFFSET 2'])}" if rng.random() < 0.3 else ""
        if not limit and rng.random() < 0.6:
            return ""
        directions = ["", " DESC", " ASC"]
        nulls = rng.choice(["", "", " NULLS FIRST", " NULLS LAST"])
        if unique is not None and rng.random() < 0.5:
            self.is_totally_ordered = True
            return f" ORDER BY {unique}{rng.choice(directions)}{limit}"
        self.order = list(range(count)) if limit else rng.sample(range(count), rng.randint(1, count))
        self.is_totally_ordered = bool(limit)
        return (
            f" ORDER BY {', '.join(f'{position + 1}{rng.choice(directions)}{nulls}' for position in self.order)}{limit}"
        )


def literal(drawn: Any) -> str:
    match drawn:
        case bool():
            return str(drawn).upper()
        case dt.datetime():
            return f"{'TIMESTAMPTZ' if drawn.tzinfo else 'TIMESTAMP'} '{drawn.isoformat(sep=' ')}'"
        case dt.date():
            return f"'{drawn}'" if drawn.day % 2 else f"DATE '{drawn}'"
        case dt.time() | uuid.UUID():
            return f"'{drawn}'"
        case str():
            return "'" + drawn.replace("'", "''") + "'"
        case float():
            return repr(drawn)
        case _:
            return str(drawn)
