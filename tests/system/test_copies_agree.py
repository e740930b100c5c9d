"""Backups hold what their primaries hold, also after writes and loads that raced each other."""

from __future__ import annotations

import random
import threading

import pyarrow as pa
import pytest

import secateur

KEYS = 200


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_acknowledged_survives_a_member(seed: int) -> None:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 12")
        failures: list[BaseException] = []

        def write(writer: int) -> None:
            draw = random.Random(seed * 100 + writer)
            try:
                with cluster.connect() as own:
                    for number in range(60):
                        own.execute(
                            "INSERT OR REPLACE INTO t VALUES (?, ?)", [draw.randrange(KEYS), writer * 1000 + number]
                        )
            except BaseException as error:
                failures.append(error)

        def load() -> None:
            draw = random.Random(seed)
            try:
                with cluster.connect() as own:
                    for number in range(15):
                        keys = draw.sample(range(KEYS), 80)
                        own.table("t").load(pa.table({"id": keys, "v": [-number] * len(keys)}), mode="upsert")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)] + [
            threading.Thread(target=load)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        before = conn.execute("SELECT id, v FROM t ORDER BY id").fetchall()
        assert len(before) == len({key for key, _ in before})
        cluster.kill_member(f"m{seed}")
        assert conn.execute("SELECT id, v FROM t ORDER BY id").fetchall() == before
