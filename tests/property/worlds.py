"""Random tables, split into partitions, beside the same rows in one DuckDB; and how one statement over them is checked.

The planner, the partition trees and the kernels are the real ones; members are played, each with the partitions that it
happens to own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from zlib import crc32

import duckdb
import numpy as np
import pyarrow as pa
from msgspec import structs

from extremes import BEYOND_DAYS, BEYOND_TEXTS, now_and_then
from secateur import Cursor
from secateur.cluster.controller.statement_replies import bounded_depth
from secateur.duckdb_expressions import complete
from secateur.engine.kernels import run
from secateur.engine.sql import ExchangeKind, ScanPlan, SelectPlan
from secateur.engine.sql.stage import stage_relation
from secateur.engine_limits import EngineLimits
from secateur.errors import DatabaseError, DataError, UnknownTableError
from secateur.partitioning.tables import (
    NO_STATISTICS,
    ColumnStatistics,
    NamedType,
    StatisticsSnapshot,
    TableDef,
    TableStatistics,
    without_row_ids,
)
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.types import TypeKind
from secateur.planner import CreateTable, CreateView, PlannedSelect, PlannedSteps, Planner
from secateur.planner.binding import Viewer
from secateur.planner.binding.catalog_view import ANYBODY
from secateur.planner.views import ViewDef
from secateur.protocol import SubqueryUse
from secateur.storage import ChangeOperation, MemberStore

__all__ = [
    "DAYS",
    "INTEGERS",
    "TEXTS",
    "Owners",
    "World",
    "check",
    "depends_on_optimizer",
    "examined",
    "examined_closely",
    "has_range",
    "random_world",
    "rows_as_tuples",
    "rows_in_duckdb",
    "rows_of",
    "sorted_rows",
]

_ORACLE_RUNS: Final = 20

DAYS = [date(2024, 1, 1) + timedelta(days=offset) for offset in range(8)]
INTEGERS = list(range(-2, 6))
TEXTS = ["", "a", "A", "01", "1", "é", "b"]


@dataclass(frozen=True)
class Owners:
    """Some members, and who owns what: at random, but tables of one affinity group alike."""

    members: int
    seed: float = 0.0

    def owns(self, member: int, scan: ScanPlan, partition: int) -> bool:
        return crc32(f"{self.seed} {scan.group} {partition}".encode()) % self.members == member


def _store_of_small_partitions() -> MemberStore:
    """The partitions are so small that not even two searches would pay by the default."""
    return MemberStore(limits=EngineLimits(rows_per_search=1))


def oracle_database() -> duckdb.DuckDBPyConnection:
    """A DuckDB that answers by rows and not by their statistics.

    From those of its own tables DuckDB may know that a disjunct is TRUE, and be spared an error of the other; and 2.0.0
    takes a sum above a comparison with a subquery for smaller than it is.
    """
    return duckdb.connect(config={"disabled_optimizers": "statistics_propagation"})


@dataclass
class World:
    """Some tables, their rows in sorted partitions, some of them as recent writes, and the same rows in one DuckDB."""

    tables: dict[str, TableDef] = field(default_factory=dict)
    store: MemberStore = field(default_factory=_store_of_small_partitions)
    duck: duckdb.DuckDBPyConnection = field(default_factory=oracle_database)
    planner: Planner = field(default_factory=Planner)
    version: int = 1
    topology: Any = None
    statistics_snapshot: StatisticsSnapshot = NO_STATISTICS
    types: Mapping[str, NamedType] = field(default_factory=dict)
    ddl: dict[str, str] = field(default_factory=dict)
    views: dict[str, ViewDef] = field(default_factory=dict)
    viewer: Viewer = ANYBODY

    def table(self, name: str) -> TableDef:
        if name.casefold() not in self.tables:
            raise UnknownTableError(f"table {name!r} does not exist")
        return self.tables[name.casefold()]

    def relation(self, name: str) -> TableDef | ViewDef:
        return self.views.get(name.casefold()) or self.table(name)

    def look(self) -> None:
        """Take the statistics of the tables."""
        for table in self.tables.values():
            columns = {}
            for column in table.visible_columns:
                name = f'"{column.name}"'
                nulls, distinct, low, high = self.duck.execute(
                    f"SELECT count(*) - count({name}), count(DISTINCT {name}), min({name}), max({name}) FROM"
                    f' "{table.name}"'
                ).fetchall()[0]
                columns[column.name] = ColumnStatistics(8 * distinct, nulls, distinct, low, high)
            ((rows,),) = self.duck.execute(f'SELECT count(*) FROM "{table.name}"').fetchall()
            self.statistics_snapshot = self.statistics_snapshot.with_table(
                TableStatistics(table.table_id, rows, columns)
            )

    def create_view(self, ddl: str) -> None:
        """A view, here and in DuckDB, in the place of one of that name."""
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateView)
        self.version += 1
        self.views[statement.view.name.casefold()] = replace(statement.view, view_id=self.version)
        self.duck.execute(ddl)

    def create(self, ddl: str, rows: Callable[[TableDef], list[dict[str, Any]]]) -> None:
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateTable)
        table = structs.replace(statement.tdef, table_id=len(self.tables) + 1)
        made = rows(table)
        columns = [pa.array([row[column.name] for row in made], column.type.arrow) for column in table.columns]
        data = pa.table(columns, schema=table.arrow_schema)
        placed = table.scheme.partitions_of(data.select(table.scheme.columns), unmatched_allowed=True)
        self._add(table, data.filter(pa.array(placed >= 0)))

    def fill(self, ddl: str, query: str) -> TableDef:
        """Create a table with the rows of a query that DuckDB runs; its columns are those of the table, in order."""
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateTable)
        table = structs.replace(statement.tdef, table_id=len(self.tables) + 1)
        self.duck.execute("SET TimeZone = 'UTC'")
        self._add(
            table,
            conform(self.duck.sql(query).to_arrow_table().rename_columns(table.visible_schema.names), table),
        )
        return table

    def _add(self, table: TableDef, data: pa.Table) -> None:
        self.tables[table.name.casefold()] = table
        self.store.create_table(table, table.scheme.live_partitions().tolist())
        placed = [data.slice(0, 0).append_column("placed_in", pa.array([], pa.int32()))]
        for partition, part in split(data, table).items():
            placed.append(part.append_column("placed_in", pa.array([partition] * part.num_rows, pa.int32())))
            half = part.num_rows // 2
            self.store.apply(table.table_id, partition, ChangeOperation.OVERWRITE, part.slice(0, half))
            self.store.apply(table.table_id, partition, ChangeOperation.APPEND, part.slice(half))
        self.duck.execute("SET TimeZone = 'UTC'")
        # Arrow has no HUGEINT, so that its columns come as DECIMAL(38, 0), which calculates otherwise.
        huge = [
            f'"{column.name}"::HUGEINT AS "{column.name}"'
            for column in table.columns
            if column.type.kind is TypeKind.HUGEINT
        ]
        replaced = f" REPLACE ({', '.join(huge)})" if huge else ""
        for name, rows in ((table.name, data), (f"placed_{table.name}", pa.concat_tables(placed))):
            self.duck.register("rows", without_row_ids(rows))
            self.duck.execute(f'CREATE TABLE "{name}" AS SELECT *{replaced} FROM rows')
            self.duck.unregister("rows")
        self.version += 1

    def prepare(self, sql: str, params: Sequence[Any], settings: Mapping[str, Any] | None = None) -> PlannedSelect:
        # As the controller does.
        statement = bounded_depth(lambda: self.planner.prepare(sql, params, self, settings, viewer=self.viewer))
        assert isinstance(statement, PlannedSelect)
        return statement

    def values(self, plan: SelectPlan, params: Sequence[Any]) -> Sequence[Any]:
        """What the plan is executed with: the values of its expressions stand behind the parameters."""
        if plan.reads_clock and len(params) < plan.parameter_count:
            params = [*params, datetime(2026, 1, 1, tzinfo=UTC)]
        return complete(params, plan.expressions) if plan.expressions else params

    def kept(self, plan: SelectPlan, params: Sequence[Any]) -> list[Sequence[int]]:
        return [scan.tree.bind(self.values(plan, params)).ids for scan in plan.scans]

    def slices(self, scan: ScanPlan, params: Sequence[Any], ids: Sequence[int]) -> pa.Table:
        """What a member reads for a scan: the slices of the partitions that hold the keys."""
        return self.store.relation(scan.table_id, ids, scan.columns, scan.keys.bind(params))

    def local(self, plan: SelectPlan, params: Sequence[Any], kept: Sequence[Sequence[int]]) -> pa.Table:
        params = self.values(plan, params)
        relations = {scan.relation: self.slices(scan, params, ids) for scan, ids in zip(plan.scans, kept, strict=True)}
        searched = plan.searched if plan.searched is not None and plan.scans[0].keys.search(params)[1] else plan.local
        return run(searched, relations, params)

    def distributed(
        self, plan: SelectPlan, params: Sequence[Any], kept: Sequence[Sequence[int]], owners: Owners
    ) -> pa.Table:
        """As if the partitions were at several members."""
        unread = set(range(len(plan.stages) - 1)).difference(number for stage in plan.stages for number in stage.inputs)
        assert not unread, f"nobody reads the stages {sorted(unread)}"
        given = self.values(plan, params)
        outputs: dict[str, pa.Table] = {}
        for index, stage in enumerate(plan.stages):
            answers = []
            for member in (0,) if stage.at_coordinator else range(owners.members):
                inputs = {stage_relation(number): outputs[stage_relation(number)] for number in stage.inputs}
                if not stage.at_coordinator:
                    inputs = {
                        name: self.exchanged(plan, int(name[1:]), rows, kept, member, owners)
                        for name, rows in inputs.items()
                    }
                parts = {number: self.owned(plan.scans[number], kept[number], member, owners) for number in stage.scans}
                if (
                    stage.at_coordinator
                    or any(parts.values())
                    or any(plan.stages[number].spreads for number in stage.inputs)
                ):
                    scans = {
                        plan.scans[number].relation: self.slices(plan.scans[number], given, ids)
                        for number, ids in parts.items()
                    }
                    aliased = {alias.relation: inputs[alias.source] for alias in stage.aliases}
                    answers.append(run(stage.fragment, scans | inputs | aliased, given))
            outputs[stage_relation(index)] = (
                pa.concat_tables(answers) if answers else stage.fragment.schema.empty_table()
            )
        answer, limit = outputs[stage_relation(len(plan.stages) - 1)], plan.stages[-1].limit
        return answer if limit is None else answer.slice(limit.skipped, limit.taken)

    @staticmethod
    def owned(scan: ScanPlan, kept: Sequence[int], member: int, owners: Owners) -> list[int]:
        return [partition for partition in kept if scan.replicated or owners.owns(member, scan, partition)]

    def exchanged(
        self, plan: SelectPlan, number: int, rows: pa.Table, kept: Sequence[Sequence[int]], member: int, owners: Owners
    ) -> pa.Table:
        """What a member gets of the rows of a stage: all, those of its partitions of the table that they follow, or
        those that are dealt to it.
        """
        stage = plan.stages[number]
        if stage.exchange is ExchangeKind.BROADCAST:
            return rows
        if stage.exchange is ExchangeKind.SHUFFLE:
            shuffled = [
                crc32(str(row).encode()) % owners.members == member
                for row in rows_as_tuples(rows.select(list(stage.columns)))
            ]
            return rows.filter(pa.array(shuffled, pa.bool_()))
        assert stage.exchange is ExchangeKind.ROUTE
        assert stage.route is not None
        scheme = plan.scans[stage.route].tree.scheme
        if not stage.keeps_unmatched:
            for column in stage.columns:
                rows = rows.filter(rows[column].is_valid())
        keys = pa.table({name: rows[column] for name, column in zip(scheme.columns, stage.columns, strict=True)})
        mine = self.owned(plan.scans[stage.route], kept[stage.route], member, owners)
        partitions = scheme.partitions_of(keys, unmatched_allowed=True)
        unmatched = (
            ~np.isin(partitions, kept[stage.route])
            if stage.keeps_unmatched and member == 0
            else np.zeros(len(partitions), dtype=bool)
        )
        return rows.filter(pa.array(np.isin(partitions, mine) | unmatched))

    def rows_needed(self, table: str, where: str, params: Sequence[Any]) -> tuple[set[int], set[tuple[Any, ...]]]:
        """The partitions and the primary keys of the rows for which DuckDB finds a predicate TRUE."""
        keys = ", ".join(self.table(table).primary_key)
        found = self.oracle(f'SELECT placed_in, {keys} FROM "placed_{table}" AS "{table}" WHERE {where}', params)
        return {row[0] for row in found}, {row[1:] for row in found}

    def in_steps(self, statement: PlannedSelect, params: Sequence[Any], owners: Owners) -> pa.Table:
        """As a client runs a statement that is made of steps."""
        materialized = statement.materialized
        if materialized is None:
            return self.distributed(statement.plan, params, self.kept(statement.plan, params), owners)
        try:
            return self._divided(statement, materialized, params, owners)
        except DataError:
            if materialized.watched is None:
                raise
            return self.distributed(statement.plan, params, self.kept(statement.plan, params), owners)

    def _divided(
        self, statement: PlannedSelect, materialized: PlannedSteps, params: Sequence[Any], owners: Owners
    ) -> pa.Table:
        values = list(params)
        for step in materialized.steps:
            try:
                rows = _python_rows(self.in_steps(step.query, values[: step.query.plan.parameter_count], owners))
            except DataError:  # the whole may be spared it: for no rows, DuckDB evaluates no subquery
                rows = None
            if rows is None or len(rows) > step.values_max:
                return self.distributed(statement.plan, params, self.kept(statement.plan, params), owners)
            match step.use:
                case SubqueryUse.LIST:
                    values.append([value for (value,) in rows])
                case SubqueryUse.VALUE:
                    values.append(rows[0][0] if rows else None)
                case SubqueryUse.KEYS:
                    values += [[row[position] for row in rows] for position in range(step.parameter_count)]
        return self.in_steps(materialized.outer, values, owners)

    @property
    def is_broken(self) -> bool:
        """Whether a statement met an error of DuckDB's own, after which its database answers nothing any more."""
        try:
            self.duck.execute("SELECT 1").fetchall()
        except duckdb.FatalException:
            return True
        return False

    def oracle(self, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        """DuckDB's rows, as :func:`rows_in_duckdb` gives them."""
        return rows_in_duckdb(self.duck, sql, params)


def rows_in_duckdb(duck: duckdb.DuckDBPyConnection, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a query, in the form of :func:`rows_as_tuples` where there are days or instants."""
    answer = duck.sql(sql, params=list(params))
    # As a Python object an infinite day would be the last one.
    if any(_has_days(str(kind)) for kind in answer.types):
        return rows_as_tuples(answer.to_arrow_table())
    return answer.fetchall()


def rows_of(cursor: Cursor) -> list[tuple[Any, ...]]:
    """The rows of a cursor, in the same form."""
    is_counted = any(_has_days(str(column[1])) for column in cursor.description or ())
    return rows_as_tuples(cursor.fetch_arrow_table()) if is_counted else cursor.fetchall()


def _has_days(kind: str) -> bool:
    return kind.startswith(("DATE", "TIMESTAMP")) or (kind.startswith("STRUCT") and ("DATE" in kind or "TIME" in kind))


def has_range(table: TableDef, row: dict[str, Any]) -> bool:
    component = table.scheme.range
    return component is None or table.scheme.range_position(tuple(row[column] for column in component.columns)) >= 0


def random_rows(rng: random.Random, count: int) -> Callable[[TableDef], list[dict[str, Any]]]:
    # Arithmetic overflows at the ends of integers, and the statements of a world with them are often refused.
    has_ends = rng.random() < 0.3
    a_ends, v_ends = ([-(2**31), 2**31 - 1], [-(2**63), 2**63 - 1]) if has_ends else (INTEGERS, [None])
    keys = {
        (
            now_and_then(rng, INTEGERS, a_ends),
            now_and_then(rng, TEXTS, BEYOND_TEXTS),
            now_and_then(rng, DAYS, BEYOND_DAYS),
        )
        for _ in range(count)
    }

    def make(table: TableDef) -> list[dict[str, Any]]:
        return [
            {"a": a, "b": b, "c": c, "v": now_and_then(rng, [None, *range(-3, 4)], v_ends)}
            for a, b, c in sorted(keys, key=repr)
        ]

    return make


def random_scheme(rng: random.Random) -> str:
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
            (
                "RANGE (b) (PARTITION '' <= VALUES < 'a', PARTITION 'a' <= VALUES < 'b' HASH (c) PARTITIONS 2,"
                " PARTITION VALUE = 'é')"
            ),
            "RANGE (a) (PARTITION 0 <= VALUES < 2, DEFAULT PARTITION, PARTITION VALUE = 4 HASH (b) PARTITIONS 3)",
            "RANGE (c, a) (PARTITION ('2024-01-02', 1) <= VALUES < ('2024-01-05', 0), DEFAULT PARTITION rest NO HASH)",
            (
                "RANGE (c, a) (PARTITION VALUES < ('2024-01-02', 1), PARTITION ('2024-01-02', 1) <= VALUES <"
                " ('2024-01-05', 0))"
            ),
        ]
    )
    parts = [*hashes, *([ranges] if ranges else [])]
    return ", ".join(parts) or "HASH (a, b) PARTITIONS 8"


def random_world(rng: random.Random, tables: Sequence[str] = ("t",)) -> World:
    world = World()
    for name in tables:
        world.ddl[name] = random_scheme(rng)
        ddl = (
            f"CREATE TABLE {name} (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY"
            f" {world.ddl[name]}"
        )
        world.create(ddl, random_rows(rng, 120))
    return world


def sorted_rows(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


def _python_rows(table: pa.Table) -> list[tuple[Any, ...]] | None:
    """Rows as parameters; None if Python has no object for one of their values."""
    try:
        columns = [[_as_duckdb(value, column.type) for value in column.to_pylist()] for column in table.columns]
    except (OverflowError, ValueError):
        return None
    return list(zip(*columns, strict=True))


def rows_as_tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as DuckDB's own client gives them: HUGEINT, which Arrow carries as DECIMAL(38, 0), is an int.

    Days and instants are numbers: for some of them Python has no object.
    """
    columns = [[_as_duckdb(value, column.type) for value in _counted(column).to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def _counted(column: pa.ChunkedArray) -> pa.ChunkedArray:
    counted = _counted_type(column.type)
    return column if counted == column.type else column.cast(counted)


def _counted_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_counted_type(field.type)) for field in kind])
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) and kind.unit == "us" else kind


def _as_duckdb(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_as_duckdb(item, kind.value_type) for item in value]
    return int(value) if kind == pa.decimal128(38, 0) else value


# DuckDB looks at a pattern, and converts a day that no TIMESTAMP can be, only when the conjuncts before it have left
# rows, and orders conjuncts as it goes: fewer rows may see the error, or be spared it.
_ERRORS_OF_SOME_ROWS = ("Like pattern must not end with escape character", "can't be cast to the destination type")


def check(
    world: World, sql: str, params: Sequence[Any], rng: random.Random, settings: Mapping[str, Any] | None = None
) -> bool:
    """Compare one statement, planned with the settings of a session, with DuckDB.

    False when DuckDB refuses it, and as in :func:`examined_closely`.
    """
    return examined_closely(world, sql, params, rng, settings) is not None


def examined(
    world: World, sql: str, params: Sequence[Any], rng: random.Random, settings: Mapping[str, Any] | None = None
) -> SelectPlan | None:
    """As :func:`check`, with the plan that was compared.

    Errors are not compared: a pruned run may be spared one in a row that it does not read.
    """
    try:
        expected = sorted_rows(world.oracle(sql, params))
    except duckdb.Error:
        return None
    statement = world.prepare(sql, params, settings)
    params = statement.params or ()
    plan = SelectPlan.decoded(statement.plan.plan_id, statement.plan.encoded())
    assert plan.named().plan_id == plan.plan_id, (
        "a member that passes the plan on would be taken for one that sends another"
    )
    kept = world.kept(plan, params)
    owners = Owners(rng.randint(1, 4), rng.random())
    try:
        answers = {
            "local": world.local(plan, params, kept),
            f"distributed over {owners}": world.distributed(plan, params, kept, owners),
        }
        if statement.materialized is not None:
            answers["in steps"] = world.in_steps(statement, params, owners)
    except DatabaseError as error:
        if any(text in error.message for text in _ERRORS_OF_SOME_ROWS):
            return None
        raise
    for name, answer in answers.items():
        assert sorted_rows(rows_as_tuples(answer)) == expected, (
            f"{name}: {sql} with {params!r}: trees {[str(scan.tree) for scan in plan.scans]}, kept {kept}"
        )
    return plan


def depends_on_optimizer(world: World, sql: str, params: Sequence[Any]) -> bool:
    """Whether DuckDB has two answers to a statement: its optimizer has defects of its own.

    Some depend on which thread is first: the values of a join's build side are used as a filter below ``DISTINCT ON``
    when they are known in time. So the statement is run several times.
    """
    world.duck.execute("PRAGMA disable_optimizer")
    without = sorted_rows(world.oracle(sql, params))
    world.duck.execute("PRAGMA enable_optimizer")
    return any(sorted_rows(world.oracle(sql, params)) != without for _ in range(_ORACLE_RUNS))


def examined_closely(
    world: World, sql: str, params: Sequence[Any], rng: random.Random, settings: Mapping[str, Any] | None = None
) -> SelectPlan | None:
    """As :func:`examined`; None also where the answer depends on DuckDB's optimizer, which has defects of its own, and
    where reading everything is an error.
    """
    try:
        return examined(world, sql, params, rng, settings)
    except AssertionError:
        if depends_on_optimizer(world, sql, params):
            return None
        raise
    except DatabaseError as error:
        # An error is no wrong answer where reading everything ends in one, too: DuckDB may be spared it by evaluating
        # in another order.
        statement = world.prepare(sql, params, settings)
        everything = [scan.tree.scheme.live_partitions().tolist() for scan in statement.plan.scans]
        try:
            world.distributed(statement.plan, statement.params or (), everything, Owners(1))
            world.local(statement.plan, statement.params or (), everything)
        except DatabaseError:
            return None
        raise AssertionError(
            f"{sql} with {params!r}: an error that reading everything does not end in: {error.message}"
        ) from error
