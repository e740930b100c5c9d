"""Copies are built and partitions move while clients write, change, load and read."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from healed import create, healed, missing
from stored_copies import copies_of
from together import together

import secateur
from secateur.cluster import Cluster
from secateur.errors import Error, MemberLostError

KEYS = 60
ROWS = 400
LOADED = 50
PAUSE_S = 0.003
"""Between two writes, and two reads, of a client: so that what is done to the cluster has a processor as well."""
SEED = int(os.environ.get("SECATEUR_SEED", "1"))


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=3.0) as cluster:
        yield cluster


@dataclass
class Load:
    """What clients wrote and saw."""

    acknowledged: dict[int, int] = field(default_factory=dict)
    tried: dict[int, int] = field(default_factory=dict)
    batches: set[int] = field(default_factory=set)
    changes: int = 0
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    longest_s: dict[str, float] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)


def writer(cluster: Cluster, load: Load, rng: random.Random) -> None:
    with cluster.connect() as conn:
        while not load.ended.wait(PAUSE_S):
            key = rng.randrange(KEYS)
            value = load.tried[key] = load.tried.get(key, 0) + 1
            timed(load, "write", conn, "INSERT OR REPLACE INTO t VALUES (?, ?)", [key, value])
            load.acknowledged[key] = value


def reader(cluster: Cluster, load: Load, rng: random.Random) -> None:
    with cluster.connect() as conn:
        while not load.ended.wait(PAUSE_S):
            key = rng.randrange(KEYS)
            at_least = load.acknowledged.get(key, 0)
            rows = timed(load, "read", conn, "SELECT v FROM t WHERE id = ?", [key])
            found = rows[0][0] if rows else 0
            if not at_least <= found <= load.tried.get(key, 0):
                load.wrong.append(f"key {key} is {found}, {at_least} was acknowledged")


def loader(cluster: Cluster, load: Load, rng: random.Random) -> None:
    with cluster.connect() as conn:
        batch = 0
        while not load.ended.is_set():
            try:
                if rng.random() < 0.5:
                    batch += 1
                    ids = range(batch * LOADED, (batch + 1) * LOADED)
                    conn.table("u").load(pa.table({"id": ids, "v": [0] * LOADED}))
                    load.batches.add(batch)
                else:
                    conn.execute("UPDATE c SET v = v + 1")
                    load.changes += 1
            except Error as error:
                load.errors.append(f"{type(error).__name__}: {error}")
            seen = repeated(conn, "SELECT count(*), min(v), max(v) FROM c")
            if seen[0][0] != ROWS or seen[0][1] != seen[0][2]:
                load.wrong.append(f"a change of all rows is seen as {seen}")
            ((rows,),) = repeated(conn, "SELECT count(*) FROM u")
            if rows % LOADED or rows < len(load.batches) * LOADED:
                load.wrong.append(f"{rows} rows of loads of {LOADED} are there after {len(load.batches)}")


def repeated(conn: secateur.Connection, sql: str, params: Sequence[int] = ()) -> list[Any]:
    """Execute what may be repeated; where kills follow each other so closely that it meets two, it is refused."""
    while True:
        try:
            cursor = conn.execute(sql, params)
            return [] if cursor.description is None else cursor.fetchall()
        except MemberLostError as error:
            if len(error.details.get("members", ())) < 2:
                raise


def timed(load: Load, kind: str, conn: secateur.Connection, sql: str, params: list[int]) -> list[Any]:
    began_s = time.perf_counter()
    rows = repeated(conn, sql, params)
    load.longest_s[kind] = max(load.longest_s.get(kind, 0.0), time.perf_counter() - began_s)
    return rows


def under_load(cluster: Cluster, seed: int, act: Any) -> Load:
    """Run the load while something is done to the cluster, then check everything."""
    load = Load()
    failures: list[BaseException] = []
    with cluster.connect() as conn:
        create(conn, "t", partitions=20)
        create(conn, "u", partitions=9)
        create(conn, "c", partitions=9)
        conn.table("c").load(pa.table({"id": range(ROWS), "v": [0] * ROWS}))

        def guarded(work: Any, number: int) -> None:
            try:
                work(cluster, load, random.Random(f"{seed} {number}"))
            except BaseException as error:
                failures.append(error)

        threads = [
            threading.Thread(target=guarded, args=(work, number))
            for number, work in enumerate((writer, reader, loader))
        ]
        for thread in threads:
            thread.start()
        try:
            act(conn)
        finally:
            load.ended.set()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        assert load.wrong == []
        healed(conn)
        rows = dict(conn.execute("SELECT id, v FROM t").fetchall())
        assert all(rows[key] >= value for key, value in load.acknowledged.items())
        ((low, high),) = conn.execute("SELECT min(v), max(v) FROM c").fetchall()
        assert low == high
        assert load.changes <= low <= load.changes + len(load.errors)
    for name in (
        ("t", "u", "c") if cluster._runtime.name == "embedded" else ()
    ):  # elsewhere their memory is out of reach
        for partition, copies in copies_of(cluster, name).items():
            assert len(copies) == min(2, sum(member.is_alive for member in cluster.members()))
            assert all(copy == copies[0] for copy in copies), f"copies of partition {partition} of {name} differ"
    return load


def test_scaling_costs_no_row_and_no_long_pause(mortal: Cluster) -> None:
    def scale(conn: secateur.Connection) -> None:
        for members in (5, 2):
            mortal.scale(members)
            assert sum(member.is_alive for member in mortal.members()) == members

    load = under_load(mortal, SEED, scale)
    assert all(error.startswith("LoadFailedError") for error in load.errors), "a load that meets a member that leaves"
    assert len(load.acknowledged) > KEYS // 2


@pytest.mark.parametrize(
    ("seed", "kills"), [(SEED, 2), *(pytest.param(SEED + more, 4, marks=pytest.mark.slow) for more in range(8))]
)
@pytest.mark.smoke
def test_members_that_die_one_after_the_other_cost_no_row(mortal: Cluster, seed: int, kills: int) -> None:
    rng = random.Random(seed)

    def kill(conn: secateur.Connection) -> None:
        for _ in range(kills):
            eventually(lambda: missing(conn) == 0, "copies are missing still")
            alive = [member.id for member in mortal.members() if member.is_alive]
            threading.Event().wait(rng.uniform(0.0, 0.3))
            mortal.kill_member(rng.choice(alive))

    under_load(mortal, seed, kill)


def test_a_member_that_dies_while_partitions_move_costs_no_row(mortal: Cluster) -> None:
    rng = random.Random(SEED)

    def kill_while_scaling(conn: secateur.Connection) -> None:
        for members in (5, 3):
            pause_s = rng.uniform(0.05, 0.5)

            def kill(pause_s: float = pause_s) -> None:
                threading.Event().wait(pause_s)
                mortal.kill_member(next(member.id for member in mortal.members() if member.is_alive))

            together(lambda members=members: mortal.scale(members), kill)  # type: ignore[misc]
            healed(conn)

    under_load(mortal, SEED, kill_while_scaling)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(240)
def test_on_ray_a_cluster_grows_shrinks_and_heals_under_load() -> None:
    with secateur.start(members=3, runtime="ray") as cluster:

        def act(conn: secateur.Connection) -> None:
            for members in (5, 3):
                cluster.scale(members)
                assert sum(member.is_alive for member in cluster.members()) == members
            cluster.kill_member(next(member.id for member in cluster.members() if member.is_alive))
            healed(conn)

        load = under_load(cluster, SEED, act)
    assert len(load.acknowledged) > KEYS // 2
    assert load.batches
