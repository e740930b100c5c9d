"""CREATE and ALTER of a table with very many ranges: each member is asked once, and the loops stay free meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from requests_of import requests_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import TopologyChangedError, UnknownTableError
from secateur.partitioning.tables import TableDefinition
from secateur.protocol import CreateStoredTable, DropStoredTable, Operation, encode
from secateur.wire import Request

RANGES = 20_000
ASKED = {Operation.CREATE_STORED_TABLE, Operation.PREPARE_ALTER, Operation.COMMIT_ALTER}


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as cluster:
        yield cluster


def create(conn: secateur.Connection) -> None:
    splits = ", ".join(map(str, range(1, RANGES)))
    conn.execute(f"CREATE TABLE t (k BIGINT PRIMARY KEY) PARTITION BY RANGE (k) SPLIT AT ({splits}) BACKUPS 0")


def test_each_member_is_asked_once(own: Cluster) -> None:
    with own.connect() as conn:
        with requests_of(own, ASKED) as seen:
            create(conn)
        assert seen == [Operation.CREATE_STORED_TABLE] * 3
        for change in ("DROP", "ADD"):
            with requests_of(own, ASKED) as seen:
                conn.execute(f"ALTER TABLE t {change} PARTITION {RANGES - 1} <= VALUES")
            assert seen == [*[Operation.PREPARE_ALTER] * 3, *[Operation.COMMIT_ALTER] * 3]
        conn.execute("INSERT INTO t VALUES (?), (?)", [5, RANGES])
        assert conn.execute("SELECT k FROM t WHERE k > ?", [RANGES - 1]).fetchall() == [(RANGES,)]
        conn.execute("DROP TABLE t")


def test_a_table_dropped_while_a_member_reads_its_ranges_is_not_made(own: Cluster) -> None:
    with own.connect() as conn:
        create(conn)
        table = conn.table("t").definition
        conn.execute("DROP TABLE t")
    runtime: Any = own._runtime
    member = runtime._members["m1"]
    definition = encode(TableDefinition.of(table))

    def asked(operation: Operation, message: Any) -> Any:
        handled = member.handlers[operation](Request(operation, message, memoryview(b""), None))
        return asyncio.ensure_future(handled)

    async def create_and_drop() -> None:
        created = asked(Operation.CREATE_STORED_TABLE, CreateStoredTable(definition, list(range(RANGES))))
        await asyncio.sleep(0)
        await asked(Operation.DROP_STORED_TABLE, DropStoredTable(table.table_id))
        with pytest.raises(TopologyChangedError, match="table t was dropped before it was there"):
            await created

    runtime._loop.run(create_and_drop())
    with pytest.raises(UnknownTableError):
        member._storage.places.named("t")
