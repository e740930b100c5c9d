"""The sample of keys: how often it is taken, what it counts, and what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.cluster.controller import list_hot_keys
from secateur.cluster.member import HotKeySampler
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import GetHotKeys, HotKey, HotKeys, HotTable, Operation
from secateur.storage import FewRows, TableLayout
from secateur.wire import PeerInfo, Request

COLUMNS = (
    Column("id", parse_type("BIGINT"), False),
    Column("tenant", parse_type("VARCHAR"), False),
    Column("v", parse_type("INTEGER"), True),
)
SCHEME = PartitionScheme((HashComponent(("tenant",), 8),), None, (("tenant", parse_type("VARCHAR")),))
TABLE = TableDef("orders", 7, COLUMNS, ("id", "tenant"), SCHEME)


def sampler(every: int = 1, tables: tuple[TableDef, ...] = (TABLE,)) -> HotKeySampler:
    return HotKeySampler({table.table_id: table for table in tables}.get, every, "m1")


def told(sampled: HotKeySampler) -> list[HotTable]:
    asked = Request(Operation.GET_HOT_KEYS, GetHotKeys(), memoryview(b""), PeerInfo(1, "test", "test", False))
    return sampled.send(asked).message.tables


def counts(sampled: HotKeySampler) -> dict[str, int]:
    return {key.key: key.count for table in told(sampled) for key in table.keys}


def test_one_in_so_many_is_looked_at_at_distances_that_differ() -> None:
    sampled, distances = sampler(64), []
    for _ in range(2000):
        distances.append(sampled.left)
        sampled.note_key(TABLE, [1, "A"])
    assert min(distances) >= 1
    assert max(distances) <= 127
    assert 60 < sum(distances) / len(distances) < 68
    assert len(set(distances)) > 100


def test_nothing_is_looked_at_where_sampling_is_off() -> None:
    sampled = sampler(0)
    assert sampled.left < 0, "a number that only falls reaches 0 never"
    assert told(sampled) == []


def test_keys_are_those_that_partition_the_table() -> None:
    sampled = sampler()
    sampled.note_key(TABLE, [5, "A"])
    layout = TableLayout.of(TABLE)
    sampled.note_rows(TABLE, FewRows.admit(layout, [[6, 7], ["A", "B"], [None, 1]]))
    sampled.note_rows(TABLE, FewRows.admit(layout, [[8], ["A"]], are_keys=True))
    (table,) = told(sampled)
    assert (table.table_id, table.sampled) == (7, 4)
    assert [(key.key, key.count, key.error) for key in table.keys] == [
        ('{"tenant":"A"}', 3, 0),
        ('{"tenant":"B"}', 1, 0),
    ]
    assert [key.partition for key in table.keys] == [SCHEME.partition_of({"tenant": name}) for name in "AB"]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("x" * 257, id="a long text"),
        pytest.param("é" * 129, id="a long text of other letters"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param(None, id="NULL"),
    ],
)
def test_long_keys_and_such_as_no_row_has_are_not_kept(value: str | None) -> None:
    sampled = sampler()
    sampled.note_key(TABLE, [5, value])
    assert counts(sampled) == {}


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(TableDef("all", 8, COLUMNS, ("id",), PartitionScheme(), replicated=True), id="replicated"),
        pytest.param(TableDef("one", 9, COLUMNS, ("id",), PartitionScheme()), id="one partition"),
    ],
)
def test_tables_without_a_partitioning_key_have_no_hot_keys(table: TableDef) -> None:
    sampled = sampler(tables=(table,))
    sampled.note_key(table, [5])
    sampled.note_rows(table, FewRows.admit(TableLayout.of(table), [[5], ["A"], [1]]))
    assert told(sampled) == []


def test_a_dropped_table_is_forgotten() -> None:
    here: dict[int, TableDef] = {7: TABLE}
    sampled = HotKeySampler(here.get, 1, "m1")
    sampled.note_key(TABLE, [5, "A"])
    del here[7]
    assert told(sampled) == []


def test_shares_are_of_what_all_members_have_sampled() -> None:
    def said(sampled: int, *keys: tuple[str, int]) -> HotKeys:
        return HotKeys([HotTable(7, sampled, [HotKey(key, 3, times, 1) for key, times in keys])])

    rows: list[dict[str, Any]] = list(
        list_hot_keys([("m1", said(30, ("A", 20))), ("m2", said(10, ("B", 5)))], {7: "orders"})
    )
    assert [(row["key"], row["member"], row["share"], row["share_error"], row["sampled"]) for row in rows] == [
        ("A", "m1", 0.5, 0.025, 20),
        ("B", "m2", 0.125, 0.025, 5),
    ]
    assert list(list_hot_keys([("m1", said(30, ("A", 20)))], {})) == [], "the table was dropped"
