"""Tables as sources: which rows, from which members."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import collect, table_source
from secateur.connectors.table import TableSource
from secateur.connectors.table_sources import ConditionSource
from secateur.dag import DAG, FrozenDAG, JobConfig, Param, between
from secateur.errors import (
    DagError,
    DataError,
    Error,
    NotSupportedError,
    ParameterError,
    UnknownColumnError,
    UnknownTableError,
)
from secateur.partitioning.schemes import HashComponent, RangeSpec, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.testing import LocalCluster

TYPES = {
    "device": parse_type("UUID"),
    "day": parse_type("DATE"),
    "site": parse_type("VARCHAR"),
    "value": parse_type("DOUBLE"),
}
SCHEME = build_scheme(
    hashes=[HashComponent(("site",), 8)], types=TYPES, primary_key=("device", "day", "site"), table="readings"
)
READINGS = TableDef(
    "readings",
    1,
    tuple(Column(n, t, n == "value") for n, t in TYPES.items()),
    ("device", "day", "site"),
    SCHEME,
    backups=0,
)

RANGE_SCHEME = build_scheme(
    range_columns=["day"],
    ranges=[RangeSpec((datetime.date(2024, 1, 1),), (datetime.date(2024, 2, 1),))],
    types=TYPES,
    primary_key=("day",),
    table="days",
)
DAYS = TableDef(
    "days", 2, (Column("day", TYPES["day"], False), Column("value", TYPES["value"])), ("day",), RANGE_SCHEME, backups=0
)

SITES = ["north", "south", "east", "west", "hub", "lab"]
ROWS = pa.table(
    {
        "device": pa.array([uuid.UUID(int=i % 7).bytes for i in range(120)], pa.uuid()),
        "day": [datetime.date(2024, 1, 1 + i % 20) for i in range(120)],
        "site": [SITES[i % 6] for i in range(120)],
        "value": [float(i) for i in range(120)],
    }
)


def read(
    source: TableSource | ConditionSource,
    params: Any = (),
    *,
    members: int = 3,
    config: JobConfig | None = None,
    tdef: TableDef = READINGS,
    rows: pa.Table = ROWS,
) -> tuple[pa.Table, tuple[str, ...]]:
    """The rows that a source yields, and the members that took part; the DAG travels as data first."""
    dag = DAG()
    dag.new_vertex("source", source, 2)
    dag.new_vertex("out", collect())
    dag.edge(between("source", "out").distributed())
    travelled = FrozenDAG.decoded(dag.freeze().encoded(allow_code=False), allow_code=False)

    async def main() -> tuple[pa.Table, tuple[str, ...]]:
        async with LocalCluster(members, allow_code=False) as cluster:
            cluster.create_table(tdef, rows)
            result = await cluster.run(travelled, config, params)
            return result.tables.get("out", tdef.arrow_schema.empty_table()), result.members_touched

    def in_time(awaitable: Awaitable[Any]) -> Any:
        async def guarded() -> Any:
            return await asyncio.wait_for(awaitable, 20)

        return asyncio.run(guarded())

    return in_time(main())


def values(table: pa.Table) -> list[float]:
    return sorted(table.column("value").to_pylist())


def test_a_whole_table() -> None:
    table, members = read(table_source("readings"))
    assert values(table) == [float(i) for i in range(120)]
    assert table.schema == READINGS.arrow_schema
    assert members == ("m1", "m2", "m3")


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        pytest.param({"site": "lab"}, lambda i: i % 6 == 5, id="one value"),
        pytest.param({"site": {"lab", "hub"}}, lambda i: i % 6 in (4, 5), id="a set"),
        pytest.param(
            {"site": ["lab", "hub"], "day": (datetime.date(2024, 1, 6), datetime.date(2024, 1, 5))},
            lambda i: i % 6 in (4, 5) and i % 20 in (4, 5),
            id="product",
        ),
        pytest.param({"site": []}, lambda i: False, id="no value"),
        pytest.param({"site": None}, lambda i: False, id="a NULL matches nothing"),
    ],
)
def test_the_rows_of_all_combinations(where: dict[str, Any], wanted: Callable[[int], bool]) -> None:
    rows, _ = read(table_source("readings", where=where))
    assert sorted(rows.column("value").to_pylist()) == [float(i) for i in range(120) if wanted(i)]


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        pytest.param([{"site": "lab"}], lambda i: i % 6 == 5, id="one column, compared"),
        pytest.param(
            [{"site": "lab"}, {"site": "hub"}, {"site": "lab"}], lambda i: i % 6 in (4, 5), id="two keys, one twice"
        ),
        pytest.param(
            [{"SITE": "lab", "day": datetime.date(2024, 1, 6)}],
            lambda i: i % 6 == 5 and i % 20 == 5,
            id="two columns, compared",
        ),
        pytest.param(
            [{"site": "lab", "day": datetime.date(2024, 1, 6), "device": uuid.UUID(int=5)}],
            lambda i: i % 6 == 5 and i % 20 == 5 and i % 7 == 5,
            id="whole key, searched",
        ),
        pytest.param(
            [{"site": "lab", "device": str(uuid.UUID(int=5))}],
            lambda i: i % 6 == 5 and i % 7 == 5,
            id="uuid as text, compared",
        ),
        pytest.param([{"site": "nowhere"}], lambda i: False, id="no such key"),
        pytest.param([{"site": None}], lambda i: False, id="a NULL matches nothing"),
        pytest.param([], lambda i: False, id="no key at all"),
    ],
)
def test_the_rows_of_some_keys(keys: list[dict[str, Any]], wanted: Callable[[int], bool]) -> None:
    table, members = read(table_source("readings", keys=keys), members=8)
    assert values(table) == [float(i) for i in range(120) if wanted(i)]
    assert len(members) <= 1 + len({key.get("site") for key in keys})


WIDE_SCHEME = build_scheme(
    hashes=[HashComponent(("site",), 4)],
    range_columns=["day"],
    ranges=[
        RangeSpec((datetime.date(2024, 1, first),), (datetime.date(2024, 1, first + 5),)) for first in (1, 6, 11, 16)
    ],
    types=TYPES,
    primary_key=("device", "day", "site"),
    table="readings",
)
WIDE = TableDef("readings", 4, READINGS.columns, READINGS.primary_key, WIDE_SCHEME, backups=0)


@pytest.mark.parametrize(
    ("keys", "wanted", "partitions"),
    [
        pytest.param([{"site": "lab"}], lambda i: i % 6 == 5, 4, id="the hashed column: one bucket of each range"),
        pytest.param(
            [{"day": datetime.date(2024, 1, 7)}],
            lambda i: i % 20 == 6,
            4,
            id="the range column: all buckets of a range",
        ),
        pytest.param(
            [{"day": datetime.date(2024, 1, 7)}, {"day": datetime.date(2024, 1, 9)}],
            lambda i: i % 20 in (6, 8),
            4,
            id="two days of one range",
        ),
        pytest.param([{"device": uuid.UUID(int=3)}], lambda i: i % 7 == 3, 16, id="neither, searched"),
        pytest.param([{"value": 7.0}], lambda i: i == 7, 16, id="neither, compared"),
        pytest.param(
            [{"device": uuid.UUID(int=3), "site": "lab"}], lambda i: i % 7 == 3 and i % 6 == 5, 4, id="with another one"
        ),
        pytest.param([{"day": datetime.date(2025, 1, 1)}], lambda i: False, 0, id="no range"),
        pytest.param([{"day": None}], lambda i: False, 0, id="a NULL matches nothing"),
        pytest.param(
            [{"device": uuid.UUID(int=3), "day": datetime.date(2024, 1, 1 + day)} for day in range(20)] * 5,
            lambda i: i % 7 == 3,
            16,
            id="many keys",
        ),
    ],
)
def test_keys_of_some_partitioning_columns_keep_what_these_leave(
    keys: list[dict[str, Any]], wanted: Callable[[int], bool], partitions: int
) -> None:
    source = table_source("readings", keys=keys)
    table, _ = read(source, tdef=WIDE)
    assert values(table) == [float(i) for i in range(120) if wanted(i)]
    kept = source.needs("read", (), lambda name: WIDE).partitions["readings"]
    assert len(kept) == partitions
    assert kept >= {
        WIDE_SCHEME.partition_of({"site": SITES[i % 6], "day": datetime.date(2024, 1, 1 + i % 20)})
        for i in range(120)
        if wanted(i)
    }


def test_keys_come_from_parameters() -> None:
    source = table_source("readings", keys=[{"site": Param("s")}], columns=["value"])
    table, _ = read(source, {"s": "hub"})
    assert values(table) == [float(i) for i in range(120) if i % 6 == 4]
    assert table.schema.names == ["value"]


def test_columns_come_in_the_order_asked_for() -> None:
    table, _ = read(table_source("readings", columns=["value", "SITE"]))
    assert table.schema.names == ["value", "site"]


def test_some_partitions() -> None:
    wanted = {READINGS.scheme.partition_of({"site": "lab"}), READINGS.scheme.partition_of({"site": "hub"})}
    table, _ = read(table_source("readings", partitions=sorted(wanted)))
    assert values(table) == [
        float(i) for i in range(120) if READINGS.scheme.partition_of({"site": SITES[i % 6]}) in wanted
    ]


def test_a_key_that_no_range_covers_matches_nothing() -> None:
    rows = pa.table({"day": [datetime.date(2024, 1, 5)], "value": [1.0]})
    table, _ = read(
        table_source("days", keys=[{"day": datetime.date(2024, 1, 5)}, {"day": datetime.date(2025, 1, 1)}]),
        tdef=DAYS,
        rows=rows,
    )
    assert values(table) == [1.0]


@pytest.mark.parametrize("wanted", [{"p": 1}, [[1, 2]]], ids=["a struct", "a list"])
def test_rows_cannot_be_looked_up_by_a_nested_value(wanted: Any) -> None:
    kind = parse_type("STRUCT(p INTEGER)" if isinstance(wanted, dict) else "INTEGER[]")
    tdef = TableDef("days", 2, (*DAYS.columns, Column("parts", kind)), ("day",), RANGE_SCHEME, backups=0)
    with pytest.raises(DagError, match=r"cannot be looked up by parts, which is .*where=\"parts = \?\""):
        read(table_source("days", where={"parts": wanted}), tdef=tdef, rows=tdef.arrow_schema.empty_table())


def test_a_replicated_table_is_read_once_and_adds_no_member() -> None:
    scheme = build_scheme(types={}, primary_key=("day",), table="days")
    tdef = TableDef("days", 3, DAYS.columns, ("day",), scheme, replicated=True)
    rows = pa.table({"day": [datetime.date(2024, 1, 5), datetime.date(2024, 1, 6)], "value": [1.0, 2.0]})
    table, members = read(table_source("days"), tdef=tdef, rows=rows)
    assert (values(table), members) == ([1.0, 2.0], ("m1",))
    table, members = read(table_source("days", keys=[{"day": datetime.date(2024, 1, 6)}]), tdef=tdef, rows=rows)
    assert (values(table), members) == ([2.0], ("m1",))


def test_an_empty_answer_has_the_schema_when_a_partition_was_read() -> None:
    table, _ = read(table_source("readings", keys=[{"site": "nowhere"}], columns=["value", "device"]))
    assert (table.num_rows, table.schema) == (
        0,
        pa.schema([READINGS.arrow_schema.field("value"), READINGS.arrow_schema.field("device")]),
    )


def test_required_partitions_that_cover_the_source_are_accepted() -> None:
    partition = READINGS.scheme.partition_of({"site": "lab"})
    table, members = read(
        table_source("readings", keys=[{"site": "lab"}]),
        config=JobConfig(required_partitions={"readings": frozenset({partition})}),
    )
    assert table.num_rows == 20
    assert len(members) <= 2


@pytest.mark.parametrize(
    ("source", "params", "error", "message"),
    [
        pytest.param(table_source("nobody"), (), UnknownTableError, "'nobody' does not exist", id="unknown table"),
        pytest.param(
            table_source("readings", columns=["nope"]), (), UnknownColumnError, "no column 'nope'", id="unknown column"
        ),
        pytest.param(
            table_source("readings", keys=[{"nope": 1}]),
            (),
            UnknownColumnError,
            "no column 'nope'",
            id="unknown key column",
        ),
        pytest.param(
            table_source("readings", where="site = 'lab'"),
            (),
            NotSupportedError,
            "belongs to no member of a cluster",
            id="nobody plans a condition",
        ),
        pytest.param(
            table_source("readings", keys=[{"site": 5}]), (), DataError, "column site", id="a value of another type"
        ),
        pytest.param(
            table_source("readings", keys=[{"site": Param(0)}]),
            (),
            ParameterError,
            "needs the parameter 0",
            id="no parameter",
        ),
        pytest.param(
            table_source("readings", partitions=[8]),
            (),
            DagError,
            "has no partition 8; it has 8",
            id="no such partition",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_starts(
    source: TableSource | ConditionSource, params: Sequence[Any], error: type[Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        read(source, params)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            {"keys": [{"a": 1}], "partitions": [1]}, "keys, where or partitions, not several", id="keys and partitions"
        ),
        pytest.param(
            {"where": {"a": 1}, "keys": [{"a": 1}]}, "keys, where or partitions, not several", id="keys and where"
        ),
        pytest.param(
            {"where": {"a": range(1000), "b": range(101)}},
            "where has 101,000 combinations; at most 100,000",
            id="too many combinations",
        ),
        pytest.param(
            {"where": {"a": 1}, "params": [1]}, "params are the values of a condition", id="params of no text"
        ),
        pytest.param(
            {"where": "a = 1", "partitions": [1]}, "keys, where or partitions, not several", id="text and partitions"
        ),
        pytest.param({"where": " "}, "where is empty: give a condition", id="no text"),
        pytest.param({"keys": [{"a": 1}, {"b": 1}]}, "every key must name the same columns", id="different columns"),
    ],
)
def test_contradictions_are_refused_at_once(arguments: Mapping[str, Any], message: str) -> None:
    with pytest.raises(DagError, match=message):
        table_source("t", **arguments)
