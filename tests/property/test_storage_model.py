"""A partition and a member's store behave like a plain dict, whatever happens to them in whatever order.

The model of a partition is ``dict[key, value]``; of a load, the rows staged; of a snapshot, a copy of the dict when it
was taken.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from secateur.engine_limits import EngineLimits
from secateur.errors import DuplicateKeyError, LoadFailedError
from secateur.partitioning.pruning import KeyBoundary, KeyPrefix, KeyRange, unite_ranges
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation, MemberStore, PartitionSnapshot
from secateur.wire import ShortTable

FACTOR = float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))

Key = tuple[int, str]

TABLE = TableDef(
    name="t",
    table_id=1,
    columns=(
        Column("v", parse_type("INTEGER")),
        Column("a", parse_type("SMALLINT"), nullable=False),
        Column("b", parse_type("VARCHAR"), nullable=False),
    ),
    primary_key=("a", "b"),
    scheme_or_reference=PartitionScheme(),
)
SCHEMA = TABLE.arrow_schema

# Few keys, so that they meet; the lengths and bytes of the texts are chosen to order badly.
keys = st.tuples(st.integers(-2, 3), st.sampled_from(["", "a", "a\0", "b", "é", "\U0001f600"]))
values = st.one_of(st.none(), st.integers(-5, 5))
batches = st.lists(st.tuples(keys, values), max_size=12)
modes = st.sampled_from(["append", "overwrite", "upsert", "ignore"])
load_ids = st.sampled_from(["A", "B"])
cuts = st.builds(KeyBoundary, st.one_of(st.just(()), st.tuples(st.integers(-3, 4)), keys), st.booleans())


def table_of(batch: list[tuple[Key, int | None]]) -> pa.Table:
    columns = [[value for _, value in batch], [a for (a, _), _ in batch], [b for (_, b), _ in batch]]
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def few_of(batch: list[tuple[Key, int | None]]) -> ShortTable:
    """The same as plain values."""
    return ShortTable(
        [[value for _, value in batch], [a for (a, _), _ in batch], [b for (_, b), _ in batch]], len(batch)
    )


def dict_of(table: pa.Table) -> dict[Key, int | None]:
    return {(a, b): v for v, a, b in zip(*(table[name].to_pylist() for name in "vab"), strict=True)}


def in_order(model: dict[Key, Any]) -> list[tuple[Key, Any]]:
    return sorted(model.items(), key=lambda item: (item[0][0], item[0][1].encode()))


def is_between(key: Key, span: KeyRange) -> bool:
    low, high = key[: len(span.lower.values)], key[: len(span.upper.values)]
    return (low > span.lower.values or (low == span.lower.values and not span.lower.after)) and (
        high < span.upper.values or (high == span.upper.values and span.upper.after)
    )


class StorageMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[Key, int | None] = {}
        self.staged: dict[str, list[tuple[Key, int | None]]] = {}
        self.prepared: dict[str, tuple[str, dict[Key, int | None]]] = {}
        self.numbers = {"A": 0, "B": 0}
        self.snapshots: list[tuple[PartitionSnapshot, dict[Key, int | None]]] = []

    @initialize(delta_max=st.sampled_from([0, 8, 30, 256]))
    def bound_the_delta(self, delta_max: int) -> None:
        limits = EngineLimits(delta_rows_min=delta_max, delta_rows_max=delta_max, rows_per_search=0)
        self.store = MemberStore(limits=limits)
        self.store.create_table(TABLE, [0])

    @rule(mode=modes, batch=batches, is_plain=st.booleans())
    def write(self, mode: str, batch: list[tuple[Key, int | None]], is_plain: bool = False) -> None:
        given = self.given(mode, batch)
        refused = None
        if mode not in ("upsert", "ignore") and len(given) < len(batch):
            refused = DuplicateKeyError
        if mode == "append" and given.keys() & self.rows.keys():
            refused = DuplicateKeyError
        reserved = {key for load_mode, loaded in self.prepared.values() if load_mode == "append" for key in loaded}
        clash = bool(given.keys() & reserved)
        try:
            written = self.store.apply(1, 0, ChangeOperation(mode), few_of(batch) if is_plain else table_of(batch))
        except DuplicateKeyError:
            assert refused is DuplicateKeyError
        except LoadFailedError:
            assert clash
        else:
            assert refused is None
            assert not clash
            assert written == (len(given) if mode == "ignore" else len(batch))
            self.rows = given if mode == "overwrite" else self.rows | given

    @rule(batch=st.lists(keys, max_size=8), is_plain=st.booleans())
    def delete(self, batch: list[Key], is_plain: bool) -> None:
        gone = set(batch) & self.rows.keys()
        plain = ShortTable([[a for a, _ in batch], [b for _, b in batch]], len(batch))
        given = plain if is_plain else table_of([(key, None) for key in batch])
        assert self.store.apply(1, 0, ChangeOperation.DELETE, given) == len(gone)
        self.rows = {key: value for key, value in self.rows.items() if key not in gone}

    @rule(slot=load_ids, batch=batches)
    def stage(self, slot: str, batch: list[tuple[Key, int | None]]) -> None:
        if slot in self.prepared:
            return
        self.store.loads.stage(self.load_id(slot), 1, 0, 0, table_of(batch))
        self.staged.setdefault(slot, []).extend(batch)

    @rule(slot=load_ids, mode=modes, between=st.one_of(st.none(), st.tuples(keys, values)))
    def prepare(self, slot: str, mode: str, between: tuple[Key, int | None] | None) -> None:
        """Prepare a load, with a write while the preparation runs."""
        if slot not in self.staged or slot in self.prepared:
            return
        batch = self.staged[slot]
        given = self.given(mode, batch)
        preparation = self.store.loads.begin_prepare(self.load_id(slot), 1, mode, {0: [0]})
        before = dict(self.rows)
        if between is not None:
            self.write("upsert", [between])
        others = [(other_mode, loaded) for other, (other_mode, loaded) in self.prepared.items() if other != slot]
        duplicate = (mode in ("append", "overwrite") and len(given) < len(batch)) or (
            mode == "append" and bool(given.keys() & (before.keys() | self.rows.keys()))
        )
        clash = any("append" in (mode, other_mode) and given.keys() & loaded.keys() for other_mode, loaded in others)
        try:
            while preparation.run_step():
                self.store.loads.keep_sorted(preparation)
            rows = self.store.loads.finish_prepare(preparation)
        except DuplicateKeyError:
            assert duplicate
        except LoadFailedError:
            assert clash
        else:
            assert not duplicate
            assert not clash
            assert rows == len(given)
            self.prepared[slot] = (mode, given)

    @rule(slot=load_ids)
    def publish(self, slot: str) -> None:
        if slot not in self.prepared:
            return
        mode, given = self.prepared.pop(slot)
        assert self.store.loads.publish(self.load_id(slot)) == len(given)
        if mode == "append":
            assert not given.keys() & self.rows.keys()
        self.rows = given if mode == "overwrite" else given | self.rows if mode == "ignore" else self.rows | given
        self.end(slot)

    @rule(slot=load_ids)
    def abort(self, slot: str) -> None:
        assert self.store.loads.abort(self.load_id(slot))
        self.prepared.pop(slot, None)
        self.end(slot)

    @rule()
    def take_a_snapshot(self) -> None:
        self.snapshots = [*self.snapshots[-3:], (self.store.partition(1, 0).snapshot(), dict(self.rows))]

    @rule()
    def fold(self) -> None:
        assert in_order(dict_of(self.store.relation(1, [0]))) == in_order(self.rows)

    @rule(prefix=st.one_of(keys, st.tuples(st.integers(-3, 4))))
    def look_up(self, prefix: tuple[Any, ...]) -> None:
        found = self.store.relation(1, [0], ["b", "a", "v"], KeyPrefix(prefix))
        expected = [(key, value) for key, value in in_order(self.rows) if key[: len(prefix)] == prefix]
        assert list(dict_of(found).items()) == expected
        assert found.column_names == ["b", "a", "v"]

    @rule(found=st.lists(st.builds(KeyRange, cuts, cuts), max_size=3))
    def slice(self, found: list[KeyRange]) -> None:
        wanted = unite_ranges(found)
        rows = self.store.relation(1, [0], ["b", "v", "a"], wanted)
        expected = [(key, value) for key, value in in_order(self.rows) if any(is_between(key, r) for r in found)]
        assert list(dict_of(rows).items()) == expected
        assert rows.column_names == ["b", "v", "a"]

    @precondition(lambda self: self.snapshots)
    @rule()
    def reread_a_snapshot(self) -> None:
        for snapshot, model in self.snapshots:
            assert snapshot.rows == len(model)
            assert list(dict_of(snapshot.table).items()) == in_order(model)

    @invariant()
    def count(self) -> None:
        assert self.store.partition(1, 0).rows == len(self.rows)
        assert self.store.stats()[0].rows == len(self.rows)

    def given(self, mode: str, batch: list[tuple[Key, int | None]]) -> dict[Key, int | None]:
        """The rows that a change brings."""
        if mode != "ignore":
            return dict(batch)
        return {key: value for key, value in dict(reversed(batch)).items() if key not in self.rows}

    def load_id(self, slot: str) -> str:
        return f"{slot}{self.numbers[slot]}"

    def end(self, slot: str) -> None:
        self.staged.pop(slot, None)
        self.numbers[slot] += 1


TestStorage = StorageMachine.TestCase
TestStorage.settings = settings(
    max_examples=int(30 * FACTOR), stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
