"""A cluster in a process of its own, which four clients write to until it is killed; prints what was acknowledged.

Arguments: the data directory, and the first value to write. Values only grow.
"""

from __future__ import annotations

import itertools
import sys
import threading

import pyarrow as pa

import secateur


def main(directory: str, first: int) -> None:
    cluster = secateur.start(members=3, runtime="embedded", data_directory=directory, fsync="always")
    values, speaking = itertools.count(first), threading.Lock()

    def say(key: int, value: int) -> None:
        with speaking:
            print(key, value, flush=True)

    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v INTEGER)"
            " PARTITION BY HASH (k) PARTITIONS 6 BACKUPS 1"
        )

    def write(client: int) -> None:
        with cluster.connect() as conn:
            for turn in itertools.count():
                value, key = next(values), client * 1000 + turn % 50
                if turn % 10 == 9:
                    keys = range(
                        1_000_000 * client + 30 * (value % 1000), 1_000_000 * client + 30 * (value % 1000) + 30
                    )
                    rows = {"k": pa.array(keys, pa.int32()), "v": pa.array([value] * 30, pa.int32())}
                    conn.table("t").load(pa.table(rows), mode="upsert")
                    for loaded in keys:
                        say(loaded, value)
                else:
                    conn.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [key, value])
                    say(key, value)

    for client in range(1, 5):
        threading.Thread(target=write, args=(client,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
