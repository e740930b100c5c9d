"""Laws of pruning, over random schemes, data, predicates and parameters.

* Sound: the kept partitions hold every row that the statement reads; the pruned answer, whole or cut in two, equals that of plain DuckDB over all rows.
* Tight: for predicates that name whole keys the kept partitions are exactly those of the keys; for ranges of values, exactly the ranges that one of them
reaches.

Every failure names its seed; ``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels.fragment import run
from secateur.engine.plan import SelectPlan
from secateur.errors import DatabaseError, UnknownTableError
from secateur.partitioning.split import split
from secateur.partitioning.table import TableDef
from secateur.planner.planner import Planner
from secateur.planner.statement import CreateTable, SelectStatement

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "8"))
STATEMENTS_PER_WORLD = 12
BINDINGS_PER_STATEMENT = 4

DAYS = [date(2024, 1, 1) + timedelta(days=offset) for offset in range(8)]
INTEGERS = list(range(-2, 6))
TEXTS = ["", "a", "A", "01", "1", "é", "b"]


@dataclass
class World:
    """Some tables, their rows split into partitions, and the same rows in one DuckDB."""

    tables: dict[str, TableDef] = field(default_factory=dict)
    parts: dict[str, dict[int, pa.Table]] = field(default_factory=dict)
    duck: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    planner: Planner = field(default_factory=Planner)
    version: int = 1
    topology: Any = None

    def table(self, name: str) -> TableDef:
        if name.casefold() not in self.tables:
            raise UnknownTableError(f"table {name!r} does not exist")
        return self.tables[name.casefold()]

    def create(self, ddl: str, rows: Callable[[TableDef], list[dict[str, Any]]]) -> None:
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateTable)
        table = statement.tdef
        data = pa.Table.from_pylist([row for row in rows(table) if _has_range(table, row)], schema=table.arrow_schema)
        self.tables[table.name] = table
        self.parts[table.name] = split(data, table)
        self.duck.execute("SET TimeZone = 'UTC'")
        self.duck.register("rows", data)
        self.duck.execute(f"CREATE TABLE {table.name} AS SELECT * FROM rows")
        self.duck.unregister("rows")
        self.version += 1

    def prepare(self, sql: str, params: Sequence[Any]) -> SelectStatement:
        statement = self.planner.prepare(sql, params, self)
        assert isinstance(statement, SelectStatement)
        return statement

    def kept(self, plan: SelectPlan, params: Sequence[Any]) -> list[Sequence[int]]:
        return [scan.tree.bind(params).ids for scan in plan.scans]

    def relation(self, table: str, columns: Sequence[str], ids: Sequence[int]) -> pa.Table:
        schema = pa.schema([self.tables[table].arrow_schema.field(column) for column in columns])
        found = [self.parts[table][partition].select(list(columns)) for partition in ids if partition in self.parts[table]]
        return pa.concat_tables(found) if found else schema.empty_table()

    def local(self, plan: SelectPlan, params: Sequence[Any], kept: Sequence[Sequence[int]]) -> pa.Table:
        relations = {scan.relation: self.relation(scan.table, scan.columns, ids) for scan, ids in zip(plan.scans, kept, strict=True)}
        return run(plan.local, relations, params)

    def distributed(self, plan: SelectPlan, params: Sequence[Any], kept: Sequence[Sequence[int]], members: int) -> pa.Table:
        """As if partition i were owned by member i modulo ``members``."""
        gathered = {}
        for index, (scan, partial, ids) in enumerate(zip(plan.scans, plan.partials, kept, strict=True)):
            owned = [[partition for partition in ids if partition % members == member] for member in range(members)]
            answers = [run(partial, {scan.relation: self.relation(scan.table, scan.columns, part)}, params) for part in owned if part]
            gathered[f"p{index}"] = pa.concat_tables(answers) if answers else partial.schema.empty_table()
        return run(plan.final, gathered, params)

    def oracle(self, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self.duck.execute(sql, list(params)).fetchall()


def _has_range(table: TableDef, row: dict[str, Any]) -> bool:
    component = table.scheme.range
    return component is None or table.scheme.range_position(tuple(row[column] for column in component.columns)) >= 0


def _rows(rng: random.Random, count: int) -> Callable[[TableDef], list[dict[str, Any]]]:
    keys = {(rng.choice(INTEGERS), rng.choice(TEXTS), rng.choice(DAYS)) for _ in range(count)}

    def make(table: TableDef) -> list[dict[str, Any]]:
        return [{"a": a, "b": b, "c": c, "v": rng.choice([None, *range(-3, 4)])} for a, b, c in sorted(keys)]

    return make


def _scheme(rng: random.Random) -> str:
    hashes = rng.choice(
        [
            [],
            ["HASH (a) PARTITIONS 5"],
            ["HASH (b) PARTITIONS 7 SEED 3"],
            ["HASH (a, b) PARTITIONS 8"],
            ["HASH (b, a) PARTITIONS 4", "HASH (c) PARTITIONS 3"],
            ["HASH (a) PARTITIONS 3", "HASH (b) PARTITIONS 2"],
            ["HASH (c) PARTITIONS 6"],
            ["HASH (a, b, c) PARTITIONS 16"],
        ]
    )
    ranges = rng.choice(
        [
            "",
            "RANGE (c) SPLIT AT (DATE '2024-01-03', DATE '2024-01-06')",
            "RANGE (a) (PARTITION VALUES < 0, PARTITION 1 <= VALUES < 3 NO HASH, PARTITION VALUE = 4)",
            "RANGE (a, b) SPLIT AT ((0, 'a'), (2, 'b'))",
            "RANGE (b) (PARTITION '' <= VALUES < 'a', PARTITION 'a' <= VALUES < 'b' HASH (c) PARTITIONS 2, PARTITION VALUE = 'é')",
            "RANGE (c, a) (PARTITION VALUES < ('2024-01-02', 1), PARTITION ('2024-01-02', 1) <= VALUES < ('2024-01-05', 0))",
        ]
    )
    parts = [*hashes, *([ranges] if ranges else [])]
    return ", ".join(parts) or "HASH (a, b) PARTITIONS 8"


def _world(rng: random.Random, tables: Sequence[str] = ("t",)) -> World:
    world = World()
    for name in tables:
        ddl = f"CREATE TABLE {name} (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY {_scheme(rng)}"
        world.create(ddl, _rows(rng, 120))
    return world


class Predicates:
    """Random predicates over the columns of ``t``; parameters are numbered as they appear."""

    def __init__(self, rng: random.Random, qualifier: str = "") -> None:
        self.rng = rng
        self.qualifier = qualifier
        self.makers: list[Callable[[], Any]] = []

    def predicate(self, depth: int = 3) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            return self.leaf()
        form = rng.choice(["AND", "AND", "OR", "OR", "NOT"])
        if form == "NOT":
            return f"NOT ({self.predicate(depth - 1)})"
        return f"({self.predicate(depth - 1)} {form} {self.predicate(depth - 1)})"

    def leaf(self) -> str:
        rng = self.rng
        column = rng.choice("abcv")
        name = self.qualifier + column
        form = rng.choice(
            [
                "=",
                "=",
                "=",
                "IN",
                "IN",
                "<",
                "<=",
                ">",
                ">=",
                "BETWEEN",
                "<>",
                "NOT IN",
                "NULL",
                "NOT NULL",
                "function",
                "mirrored",
                "constant",
                "DISTINCT",
                "columns",
            ]
        )
        value = lambda: self.value(column)  # noqa: E731
        match form:
            case "IN" | "NOT IN":
                return f"{name} {form} ({', '.join(value() for _ in range(rng.randint(1, 4)))})"
            case "BETWEEN":
                return f"{name} BETWEEN {value()} AND {value()}"
            case "NULL" | "NOT NULL":
                return f"{name} IS {form}"
            case "function":
                wrapped = {"a": "abs({})", "b": "lower({})", "c": "{} + 1", "v": "coalesce({}, 0)"}[column].format(name)
                return f"{wrapped} = {value()}" if column != "c" else f"{wrapped} = DATE '2024-01-04'"
            case "mirrored":
                return f"{value()} {rng.choice(['=', '<', '>='])} {name}"
            case "constant":
                return rng.choice(["TRUE", "FALSE", "NULL", "1 = 1", "NULL = 1"])
            case "DISTINCT":
                return f"{name} IS NOT DISTINCT FROM {value()}"
            case "columns":
                return rng.choice([f"{self.qualifier}a = {self.qualifier}v", f"{self.qualifier}a + 1 = {self.qualifier}v"])
            case _:
                return f"{name} {form} {value()}"

    def value(self, column: str) -> str:
        rng = self.rng
        if rng.random() < 0.35:
            self.makers.append(self.maker(column))
            return f"${len(self.makers)}"
        if rng.random() < 0.05:
            return "NULL"
        match column:
            case "a" | "v":
                return rng.choice(
                    [str(rng.choice(INTEGERS)), str(rng.choice(INTEGERS)), "1.5", "2.0", "'3'", "1 + 1", "2e0", "CAST(2 AS SMALLINT)", "300", "99999999999"]
                )
            case "b":
                return rng.choice([f"'{rng.choice(TEXTS)}'", f"'{rng.choice(TEXTS)}'", "upper('a')", "'a' || ''", "'zz'", "CAST(1 AS VARCHAR)"])
            case _:
                day = rng.choice(DAYS)
                return rng.choice(
                    [f"DATE '{day}'", f"'{day}'", f"TIMESTAMP '{day} 00:00:00'", f"TIMESTAMP '{day} 12:00:00'", "DATE '2024-01-01' + 2", "DATE '2030-01-01'"]
                )

    def maker(self, column: str) -> Callable[[], Any]:
        """A parameter keeps to one Python type, as a prepared statement does."""
        rng = self.rng
        match column:
            case "a" | "v":
                kind = rng.choice(["int", "int", "int", "float", "decimal", "str", "none"])
                return lambda: {
                    "int": rng.choice([*INTEGERS, 77]),
                    "float": rng.choice([1.0, 2.5, -1.0, 3.0]),
                    "decimal": rng.choice([Decimal("1.0"), Decimal("2.5"), Decimal("-1")]),
                    "str": str(rng.choice(INTEGERS)),
                    "none": None,
                }[kind]
            case "b":
                return lambda: rng.choice([*TEXTS, "nobody", None])
            case _:
                kind = rng.choice(["date", "date", "datetime", "str"])
                return lambda: {
                    "date": rng.choice([*DAYS, date(1999, 1, 1)]),
                    "datetime": datetime.combine(rng.choice(DAYS), datetime.min.time()) + timedelta(hours=rng.choice([0, 0, 5])),
                    "str": str(rng.choice(DAYS)),
                }[kind]

    def params(self) -> list[Any]:
        return [make() for make in self.makers]


def _sorted(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as DuckDB's own client gives them: HUGEINT, which Arrow carries as a decimal, is an int."""
    columns = [[int(value) if isinstance(value, Decimal) else value for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def _check(world: World, sql: str, params: Sequence[Any], rng: random.Random) -> bool:
    """Compare one statement with DuckDB; False when DuckDB refuses it.

    Errors are not compared: a pruned run may be spared one in a row that it does not read.
    """
    try:
        expected = _sorted(world.oracle(sql, params))
    except duckdb.Error:
        return False
    statement = world.prepare(sql, params)
    plan = SelectPlan.from_wire(statement.plan.to_wire())
    kept = world.kept(plan, params)
    members = rng.randint(1, 4)
    for name, answer in (("local", world.local(plan, params, kept)), (f"distributed over {members}", world.distributed(plan, params, kept, members))):
        assert _sorted(_tuples(answer)) == expected, f"{name}: {sql} with {params!r}: trees {[str(scan.tree) for scan in plan.scans]}, kept {kept}"
    return True


@pytest.mark.parametrize("seed", range(WORLDS))
def test_pruned_answers_equal_duckdb_over_all_rows(seed: int) -> None:
    rng = random.Random(seed)
    world = _world(rng)
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD):
        predicates = Predicates(rng)
        where = predicates.predicate()
        shape = rng.choice(["a, b, c, v", "a, b, c, v", "count(*), sum(v), min(b), max(c), avg(v)", "b, count(v), bool_or(v > 0)", "DISTINCT b"])
        sql = f"SELECT {shape} FROM t WHERE {where}{' GROUP BY b' if shape.startswith('b') else ''}"
        checked += sum(_check(world, sql, predicates.params(), rng) for _ in range(BINDINGS_PER_STATEMENT if predicates.makers else 1))
    assert checked >= STATEMENTS_PER_WORLD // 2, f"seed {seed}: DuckDB refused too many statements for the test to mean anything"


@pytest.mark.parametrize("seed", range(WORLDS))
def test_pruned_joins_and_subqueries_equal_duckdb(seed: int) -> None:
    rng = random.Random(1000 + seed)
    world = _world(rng, ("t", "u"))
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD // 2):
        kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ",", "SEMI JOIN", "ANTI JOIN"])
        left, right = Predicates(rng, "x."), Predicates(rng, "y.")
        right.makers = left.makers
        on = rng.choice(["x.a = y.a AND x.b = y.b", "x.a = y.a", "x.c = y.c AND x.a < y.a"])
        hidden = kind in ("SEMI JOIN", "ANTI JOIN")
        if rng.random() < 0.4 and kind != ",":
            on = f"{on} AND {right.leaf()}"
        where = left.predicate(2) if hidden or rng.random() < 0.4 else f"({left.predicate(2)}) {rng.choice(['AND', 'OR'])} ({right.predicate(2)})"
        if rng.random() < 0.2:
            inner = Predicates(rng)
            inner.makers = left.makers
            where = f"{where} AND x.a {rng.choice(['IN', 'NOT IN'])} (SELECT a FROM u WHERE {inner.predicate(1)})"
        source = f"t x, u y WHERE {on} AND ({where})" if kind == "," else f"t x {kind} u y ON {on} WHERE {where}"
        select = "x.a, x.b, x.v" if hidden else rng.choice(["x.a, x.b, x.c, y.a, y.v", "count(*), sum(x.v), sum(y.v)"])
        checked += sum(_check(world, f"SELECT {select} FROM {source}", left.params(), rng) for _ in range(2 if left.makers else 1))
    assert checked >= 2, f"seed {seed}: DuckDB refused too many statements for the test to mean anything"


@pytest.mark.parametrize("seed", range(WORLDS))
def test_whole_keys_keep_exactly_their_partitions(seed: int) -> None:
    rng = random.Random(2000 + seed)
    world = _world(rng)
    table = world.table("t")
    for _ in range(STATEMENTS_PER_WORLD):
        branches, keys = [], set()
        for _ in range(rng.randint(1, 4)):
            chosen = {"a": rng.sample(INTEGERS, rng.randint(1, 3)), "b": rng.sample(TEXTS, rng.randint(1, 2)), "c": rng.sample(DAYS, rng.randint(1, 2))}
            texts = {"a": str, "b": "'{}'".format, "c": "DATE '{}'".format}
            branches.append(" AND ".join(f"{column} IN ({', '.join(texts[column](value) for value in values)})" for column, values in chosen.items()))
            keys |= {(a, b, c) for a in chosen["a"] for b in chosen["b"] for c in chosen["c"]}
        sql = f"SELECT * FROM t WHERE {' OR '.join(f'({branch})' for branch in branches)}"
        rows = ({"a": a, "b": b, "c": c} for a, b, c in keys)
        expected = sorted({table.scheme.partition_of(row) for row in rows if _has_range(table, row)})
        assert list(world.prepare(sql, ()).plan.scans[0].tree.bind(()).ids) == expected, f"seed {seed}: {sql}"


@pytest.mark.parametrize("seed", range(WORLDS))
def test_ranges_of_values_keep_exactly_the_ranges_they_reach(seed: int) -> None:
    rng = random.Random(3000 + seed)
    world = World()
    bounds = sorted(rng.sample(range(-20, 21), 6))
    ranges = [(bounds[0], bounds[1]), (bounds[1], bounds[2]), (bounds[3], bounds[4]), (bounds[4], bounds[5])]
    ddl = ", ".join(f"PARTITION {low} <= VALUES < {high}" for low, high in ranges)
    world.create(f"CREATE TABLE t (a INTEGER PRIMARY KEY, v BIGINT) PARTITION BY RANGE (a) ({ddl})", lambda table: [])
    for _ in range(STATEMENTS_PER_WORLD * 2):
        tests: list[tuple[str, Callable[[int], bool]]] = []
        for _ in range(rng.randint(1, 3)):
            x, y = rng.randint(-25, 25), rng.randint(-25, 25)
            tests.append(
                rng.choice(
                    [
                        (f"a < {x}", lambda a, x=x: a < x),
                        (f"a >= {x}.5", lambda a, x=x: a >= x + 0.5 if x >= 0 else a >= x - 0.5),
                        (f"a BETWEEN {x} AND {y}", lambda a, x=x, y=y: x <= a <= y),
                        (f"NOT a <= {x}", lambda a, x=x: a > x),
                        (f"a IN ({x}, {y})", lambda a, x=x, y=y: a in (x, y)),
                    ]
                )
            )
        word, combine = rng.choice([("AND", all), ("OR", any)])
        sql = f"SELECT v FROM t WHERE {f' {word} '.join(text for text, _ in tests)}"
        expected = [index for index, (low, high) in enumerate(ranges) if any(combine(test(a) for _, test in tests) for a in range(low, high))]
        assert list(world.prepare(sql, ()).plan.scans[0].tree.bind(()).ids) == expected, f"seed {seed}: {sql} over {ranges}"


def test_an_error_of_the_statement_is_an_error_of_the_plan() -> None:
    world = _world(random.Random(1))
    with pytest.raises(DatabaseError):
        world.prepare("SELECT nothing FROM t", ())
