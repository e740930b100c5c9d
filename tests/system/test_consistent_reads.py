"""A bulk load becomes visible at once: no reader sees a part of it, however often it is replaced meanwhile."""

from __future__ import annotations

import itertools
import threading

import pyarrow as pa

import secateur
from secateur.cluster import Cluster

GENERATIONS = 30
ROWS = 3_000


def generation(number: int) -> pa.Table:
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), "generation": pa.array([number] * ROWS, pa.int64())})


def test_a_full_scan_sees_one_generation(cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (id BIGINT, generation BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id)"
        " PARTITIONS 9"
    )
    conn.table(table_name).load(generation(0))
    finished = threading.Event()
    seen: list[tuple[int, int, int]] = []
    failures: list[BaseException] = []

    def read() -> None:
        with cluster.connect() as reader:
            while not finished.is_set():
                try:
                    seen.extend(
                        reader.execute(
                            f"SELECT count(*), min(generation), max(generation) FROM {table_name}"
                        ).fetchall()
                    )
                except BaseException as error:
                    failures.append(error)
                    return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in itertools.count(1):
        conn.table(table_name).load(generation(number), mode="overwrite")
        if failures or (number >= GENERATIONS and len({first for _, first, _ in seen}) > 2):
            break  # the readers were there while it changed
    finished.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert [row for row in seen if row[0] != ROWS or row[1] != row[2]] == []
