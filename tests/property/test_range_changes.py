"""Laws of changing ranges, over random histories of ALTER TABLE, rows, and statements in between.

* Sound: after every change the pruned answer equals that of plain DuckDB over the rows that a plain list of intervals
  says must be there.
* Nothing moves: a partition that stays keeps its ids, its rows and its keys.
* A range is refused exactly when it overlaps another, or when the catch-all has rows of it.

Every failure names its seed; ``SECATEUR_PRUNING_WORLDS`` sets how many histories are tried.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from predicates import Predicates
from secateur.cluster.member.alterations import check_catch_all, cuts_catch_all
from secateur.errors import NoRangeError, SchemeError, TopologyChangedError
from secateur.partitioning.schemes import PartitionScheme, alter_ranges, with_cells
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.planner import AlterTable
from secateur.storage import ChangeOperation
from worlds import DAYS, INTEGERS, TEXTS, World, check

HISTORIES = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
CHANGES = 6
STATEMENTS_PER_CHANGE = 3

Row = dict[str, Any]
Key = tuple[Any, ...]

SCHEMES = (
    ("a", "HASH (b) PARTITIONS 3, RANGE (a) (PARTITION 0 <= VALUES < 2, PARTITION VALUE = 4)"),
    ("a", "HASH (a, b) PARTITIONS 4, RANGE (a) (PARTITION VALUES < 0, DEFAULT PARTITION)"),
    ("a", "RANGE (a) SPLIT AT (1)"),
    ("a", "RANGE (a) EVERY 2 (PARTITION 1 <= VALUES < 2)"),
    ("a", "HASH (b) PARTITIONS 2, RANGE (a) EVERY 3 STARTING 1 (DEFAULT PARTITION NO HASH)"),
    ("c", "HASH (b) PARTITIONS 2, RANGE (c) EVERY INTERVAL 1 DAY"),
    (
        "c",
        (
            "RANGE (c) EVERY INTERVAL 2 DAYS STARTING DATE '2024-01-04' (PARTITION VALUE = DATE '2024-01-02', DEFAULT"
            " PARTITION)"
        ),
    ),
    ("ab", "HASH (c) PARTITIONS 2, RANGE (a, b) (PARTITION (0, 'a') <= VALUES < (2, 'b'), DEFAULT PARTITION)"),
    ("ca", "RANGE (c, a) (PARTITION VALUES < ('2024-01-03', 1))"),
)


@dataclass
class History:
    """A table whose ranges change, and what it must hold according to a list of intervals that knows nothing of
    schemes.
    """

    rng: random.Random
    world: World = field(default_factory=World)
    columns: str = ""
    rows: list[Row] = field(default_factory=list)

    def begin(self) -> None:
        self.columns, ddl = self.rng.choice(SCHEMES)
        self.world.create(
            f"CREATE TABLE t (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY {ddl}",
            lambda _: [],
        )

    @property
    def table(self) -> TableDef:
        return self.world.table("t")

    def key(self, row: Row) -> Key:
        return tuple(row[column] for column in self.columns)

    def bound(self) -> Key:
        values: dict[str, Any] = {
            "a": self.rng.choice(INTEGERS),
            "b": self.rng.choice(TEXTS),
            "c": self.rng.choice([*DAYS, DAYS[-1] + timedelta(days=1)]),
        }
        return tuple(values[column] for column in self.columns)

    def change(self) -> None:
        """ALTER TABLE by some text, or an error that the list of intervals expects as well."""
        rng, component = self.rng, self.table.scheme.range
        assert component is not None
        if component.partitions and rng.random() < 0.4:
            gone = rng.choice(component.partitions)
            text = (
                "DROP DEFAULT PARTITION"
                if gone is component.catch_all
                else f"DROP PARTITION {_range_text(gone.lower, gone.upper)}"
            )
            self.alter(text)
            others = [(r.lower, r.upper) for r in component.ranges]
            if gone is component.catch_all:
                self.rows = [
                    row for row in self.rows if any(_holds(lower, upper, self.key(row)) for lower, upper in others)
                ]
            else:
                self.rows = [row for row in self.rows if not _holds(gone.lower, gone.upper, self.key(row))]
            return
        if (
            component.catch_all is None
            and rng.random() < 0.2
            and (component.every is None or component.every.start is not None)
        ):
            self.alter("ADD DEFAULT PARTITION")
            return
        lower, upper = sorted((self.bound(), self.bound()))
        if lower == upper:
            return
        low, high = (None if rng.random() < 0.1 else lower), (None if rng.random() < 0.1 else upper)
        own = rng.choice(
            ["", "", " NO HASH", " HASH (b) PARTITIONS 3 SEED 2", " HASH (c, b) PARTITIONS 2, HASH (a) PARTITIONS 2"]
        )
        text = f"ADD PARTITION {_range_text(low, high)}{own}"
        overlaps = any(_overlap(low, high, r.lower, r.upper) for r in component.ranges)
        in_catch_all = any(
            _holds(low, high, self.key(row))
            and not any(_holds(r.lower, r.upper, self.key(row)) for r in component.ranges)
            for row in self.rows
        )
        if overlaps or in_catch_all:
            with pytest.raises(SchemeError, match="overlap" if overlaps else "DEFAULT PARTITION has"):
                self.alter(text)
        else:
            self.alter(text)

    def alter(self, text: str) -> None:
        statement = self.world.planner.prepare(f"ALTER TABLE t {text}", (), self.world)
        assert isinstance(statement, AlterTable)
        before = self.table
        types = {column.name: column.type for column in before.columns}
        self.take(
            alter_ranges(before.scheme, statement.changes, types=types, primary_key=before.primary_key, table="t")
        )

    def take(self, scheme: PartitionScheme) -> None:
        """What the cluster does with changed ranges, on one member."""
        before = self.table
        after = structs.replace(before, scheme_or_reference=scheme, version=before.version + 1)
        store, live = self.world.store, scheme.live_partitions().tolist()
        if cuts_catch_all(before, after):
            check_catch_all(
                after,
                {
                    number: store.partition(after.table_id, number).snapshot()
                    for number in live
                    if before.scheme.is_live(number)
                },
            )
        kept = {number: store.relation(after.table_id, [number]) for number in live if before.scheme.is_live(number)}
        store.alter_table(after, live)
        for number, rows in kept.items():
            assert store.relation(after.table_id, [number]).equals(rows)
            if not scheme.is_catch_all(number):
                assert set(scheme.partitions_of(rows).tolist()) <= {number}
        old, new = before.scheme, scheme
        assert {
            r.ordinal: new.block(r.ordinal)
            for r in new.ranges()
            if old.range is not None and r.ordinal < old.range.ordinals_used
        } == {
            r.ordinal: old.block(r.ordinal)
            for r in new.ranges()
            if old.range is not None and r.ordinal < old.range.ordinals_used
        }
        self.world.tables["t"] = after
        self.world.version += 1

    def insert(self) -> None:
        """Write some rows; those that EVERY makes ranges for have them made, those that no range takes are refused."""
        known = {(row["a"], row["b"], row["c"]) for row in self.rows}
        drawn = {
            (self.rng.choice(INTEGERS), self.rng.choice(TEXTS), self.rng.choice(DAYS)): self.rng.randint(-3, 3)
            for _ in range(25)
        }
        for (a, b, c), v in drawn.items():
            row = {"a": a, "b": b, "c": c, "v": v}
            data = pa.Table.from_pylist([row], schema=self.table.arrow_schema)
            if (a, b, c) in known:
                continue
            cells = self.table.scheme.missing_cells(data)
            if cells:
                self.take(with_cells(self.table.scheme, cells, table="t"))
            if not self.is_taken(row):
                with pytest.raises(NoRangeError):
                    split(data, self.table)
                continue
            ((partition, part),) = split(data, self.table).items()
            self.world.store.apply(self.table.table_id, partition, ChangeOperation.APPEND, part)
            wrong = [number for number in self.world.store.hosted(self.table.table_id) if number != partition]
            if wrong:
                with pytest.raises(TopologyChangedError):
                    self.world.store.apply(self.table.table_id, self.rng.choice(wrong), ChangeOperation.UPSERT, part)
            self.rows.append(row)

    def is_taken(self, row: Row) -> bool:
        component = self.table.scheme.range
        assert component is not None
        if any(_holds(r.lower, r.upper, self.key(row)) for r in component.ranges):
            return True
        start = None if component.every is None else component.every.start
        return component.catch_all is not None and (start is None or self.key(row)[0] < start)

    def compare(self) -> None:
        """Some statements against DuckDB over the rows that the list of intervals leaves."""
        data = pa.Table.from_pylist(self.rows, schema=self.table.arrow_schema)
        self.world.duck.register("rows", data)
        self.world.duck.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM rows")
        self.world.duck.unregister("rows")
        check(self.world, "SELECT a, b, c, v FROM t", [], self.rng)
        for _ in range(STATEMENTS_PER_CHANGE):
            predicates = Predicates(self.rng)
            where = predicates.predicate(2)
            for _ in range(2 if predicates.makers else 1):
                check(self.world, f"SELECT a, b, c, v FROM t WHERE {where}", predicates.params(), self.rng)


def _range_text(lower: Key | None, upper: Key | None) -> str:
    return f"{'' if lower is None else f'{_text(lower)} <= '}VALUES{'' if upper is None else f' < {_text(upper)}'}"


def _text(key: Key) -> str:
    texts = [
        str(value) if isinstance(value, int) else f"DATE '{value}'" if isinstance(value, date) else f"'{value}'"
        for value in key
    ]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _holds(lower: Key | None, upper: Key | None, key: Key) -> bool:
    return (lower is None or lower <= key) and (upper is None or key < upper)


def _overlap(lower: Key | None, upper: Key | None, other_lower: Key | None, other_upper: Key | None) -> bool:
    begins_before_other_ends = lower is None or other_upper is None or lower < other_upper
    return begins_before_other_ends and (upper is None or other_lower is None or other_lower < upper)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_pruned_answers_equal_duckdb_whatever_became_of_the_ranges(seed: int) -> None:
    history = History(random.Random(5000 + seed))
    history.begin()
    history.insert()
    for _ in range(CHANGES):
        history.change()
        history.compare()
        if history.rng.random() < 0.6:
            history.insert()
            history.compare()
