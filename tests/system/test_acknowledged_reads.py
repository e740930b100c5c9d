"""A read that has seen a write is answered when that write is acknowledged: nobody sees what may still be lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from eventually import eventually
from executors import EXECUTORS, answered_by
from held_requests import Held
from requests_of import requests_of

import secateur
from secateur.cluster import Cluster
from secateur.protocol import Operation

ROWS = 40
READS = {
    "one partition": "SELECT v FROM t WHERE id = {key}",
    "one partition, by DuckDB": "SELECT max(v) FROM (SELECT v, row_number() OVER (ORDER BY v) FROM t WHERE id = {key})",
    "several members": "SELECT max(v) FROM t",
    "several members, row by row": "SELECT v FROM t WHERE v = 7",
}


@pytest.fixture(params=[False, True], ids=["in memory", "on disk"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"data_directory": tmp_path_factory.mktemp("data"), "fsync": "always"} if request.param else {}
    with secateur.start(members=3, runtime="embedded", **settings) as running:
        yield running


@pytest.mark.parametrize("read", READS)
@pytest.mark.smoke
def test_a_read_waits_for_the_acknowledgement_of_a_write_that_it_has_seen(cluster: Cluster, read: str) -> None:
    members: dict[str, Any] = cluster._runtime._members  # type: ignore[attr-defined]
    with (
        ThreadPoolExecutor(2) as pool,
        cluster.connect() as writer,
        cluster.connect() as reader,
        cluster.connect() as other,
        ExitStack() as holding,
    ):
        writer.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 1")
        writer.table("t").load({"id": list(range(ROWS)), "v": [0] * ROWS})
        table = writer.table("t")
        key, partition = 1, table.partition_of({"id": 1})
        elsewhere = next(
            key
            for key in range(ROWS)
            if table.partition_of({"id": key}) != partition
            and table.owner_of(table.partition_of({"id": key})) == table.owner_of(partition)
        )
        assert reader.execute(READS[read].format(key=key)).fetchall() in ([(0,)], []), "the plan is known"
        assert other.execute("SELECT v FROM t WHERE id = ?", [elsewhere]).fetchall() == [(0,)]
        copies = [Held(cluster, member.handlers, Operation.WRITE_COPY) for member in members.values()]
        holding.callback(lambda: [copy.release() for copy in copies])
        writing = pool.submit(writer.execute, "UPDATE t SET v = 7 WHERE id = ?", [key])
        eventually(lambda: any(copy.arrived.is_set() for copy in copies), "the copy was not written")
        with requests_of(cluster, {Operation.EXECUTE}) as asked:
            reading = pool.submit(lambda: reader.execute(READS[read].format(key=key)).fetchall())
            eventually(lambda: len(asked) > 0, "nobody was asked")
            for _ in range(20):  # who reads other partitions of that member does not wait
                assert other.execute("SELECT v FROM t WHERE id = ?", [elsewhere]).fetchall() == [(0,)]
        assert not reading.done()
        assert not writing.done()
        for copy in copies:
            copy.release()
        assert writing.result(20).rowcount == 1
        assert reading.result(20) == [(7,)]
        assert reader.execute(READS[read].format(key=key)).fetchall() == [(7,)]
        assert [len(member._replication.copies.acknowledgements._unacknowledged) for member in members.values()] == [
            0,
            0,
            0,
        ]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("read", ["statement", "get", "first stage"])
def test_a_read_of_another_row_of_the_partition_waits_as_well(executor: str, read: str) -> None:
    with (
        answered_by(executor),
        secateur.start(members=3, runtime="embedded") as cluster,
        ThreadPoolExecutor(2) as pool,
        cluster.connect() as writer,
        cluster.connect() as reader,
        ExitStack() as holding,
    ):
        members: dict[str, Any] = cluster._runtime._members  # type: ignore[attr-defined]
        writer.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 1")
        table = writer.table("t")
        table.load({"id": list(range(ROWS)), "v": [0] * ROWS})
        key, another, *_ = [key for key in range(ROWS) if table.partition_of({"id": key}) == 1]
        elsewhere = next(
            key for key in range(ROWS) if table.owner_of(table.partition_of({"id": key})) != table.owner_of(1)
        )

        def row() -> Any:
            match read:
                case "statement":
                    return reader.execute("SELECT v FROM t WHERE id = ?", [another]).fetchone()[0]
                case "get":
                    return reader.table("t").get(another)[1]
                case _:
                    return reader.execute("SELECT sum(v) FROM t WHERE id IN (?, ?)", [another, elsewhere]).fetchone()[0]

        assert [row() for _ in range(3)] == [0, 0, 0], "the program is known"
        copies = [Held(cluster, member.handlers, Operation.WRITE_COPY) for member in members.values()]
        holding.callback(lambda: [copy.release() for copy in copies])
        writing = pool.submit(writer.execute, "UPDATE t SET v = 7 WHERE id = ?", [key])
        eventually(lambda: any(copy.arrived.is_set() for copy in copies), "the copy was not written")
        reading = pool.submit(row)
        with pytest.raises(TimeoutError):
            reading.result(0.3)
        for copy in copies:
            copy.release()
        assert writing.result(20).rowcount == 1
        assert reading.result(20) == 0


def test_a_change_that_finds_nothing_to_change_waits_as_a_read_does(cluster: Cluster) -> None:
    members: dict[str, Any] = cluster._runtime._members  # type: ignore[attr-defined]
    with (
        ThreadPoolExecutor(2) as pool,
        cluster.connect() as writer,
        cluster.connect() as other,
        ExitStack() as holding,
    ):
        writer.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 1")
        writer.execute("INSERT INTO t VALUES (1, 0)")
        assert other.execute("UPDATE t SET v = ? WHERE id = ? AND v = ?", [1, 2, 3]).rowcount == 0, "the plan is known"
        copies = [Held(cluster, member.handlers, Operation.WRITE_COPY) for member in members.values()]
        holding.callback(lambda: [copy.release() for copy in copies])
        writing = pool.submit(writer.execute, "UPDATE t SET v = 7 WHERE id = 1")
        eventually(lambda: any(copy.arrived.is_set() for copy in copies), "the copy was not written")
        changing = pool.submit(other.execute, "UPDATE t SET v = ? WHERE id = ? AND v = ?", [8, 1, 0])
        with pytest.raises(TimeoutError):  # that the row has another value by now is not to be known yet
            changing.result(0.3)
        for copy in copies:
            copy.release()
        assert writing.result(20).rowcount == 1
        assert changing.result(20).rowcount == 0


JOINED = "SELECT e.v FROM everywhere e JOIN t ON t.id = e.id WHERE t.id = ?"


@pytest.mark.parametrize("told", ["told", "asked"])
@pytest.mark.smoke
def test_a_row_of_a_replicated_table_is_read_when_every_member_has_it(told: str) -> None:
    with (
        secateur.start(members=3, runtime="embedded") as cluster,
        ThreadPoolExecutor(4) as pool,
        cluster.connect() as writer,
        cluster.connect() as reader,
        ExitStack() as holding,
    ):
        members: dict[str, Any] = cluster._runtime._members  # type: ignore[attr-defined]
        writer.execute("CREATE TABLE t (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 0")
        writer.table("t").load({"id": list(range(ROWS))})
        writer.execute("CREATE TABLE everywhere (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED")
        writer.table("everywhere").load({"id": list(range(ROWS)), "v": [0] * ROWS})
        table = writer.table("t")
        keys = {table.owner_of(table.partition_of({"id": key})): key for key in range(ROWS)}
        assert keys.keys() == members.keys()
        assert {reader.execute(JOINED, [key]).fetchone() for key in keys.values()} == {(0,)}, "the plan is known"
        late, *early = members
        held = Held(cluster, members[late].handlers, Operation.PUBLISH_PREPARED_LOAD)
        holding.callback(held.release)
        if told == "asked":  # the word of the controller does not arrive
            for name in early:
                lost = Held(cluster, members[name].handlers, Operation.PUBLISHED_EVERYWHERE)
                holding.callback(lost.release)
        writing = pool.submit(writer.execute, "UPDATE everywhere SET v = 7")
        eventually(held.arrived.is_set, "nothing was published")
        eventually(
            lambda: all(members[name]._replication.copies.publications for name in early), "others have published"
        )
        reading = [pool.submit(lambda key=keys[name]: reader.execute(JOINED, [key]).fetchone()) for name in early]
        assert reader.execute(JOINED, [keys[late]]).fetchone() == (0,)
        assert reader.execute("SELECT id FROM t WHERE id = ?", [keys[early[0]]]).fetchone() == (keys[early[0]],)
        assert not any(answer.done() for answer in reading), "(0,) was read after (7,)"
        held.release()
        assert [answer.result(20) for answer in reading] == [(7,)] * len(early)
        assert reader.execute(JOINED, [keys[late]]).fetchone() == (7,)
        assert writing.result(20).rowcount == ROWS
        if told == "told":
            eventually(
                lambda: not any(member._replication.copies.publications for member in members.values()),
                "readers wait on",
            )
