"""What runs on one machine of ``test_several_hosts.py``: a cluster over all Ray nodes, and clients that read and write.

Prints one JSON document a line. Where it wants something done to the machines, it prints ``{"do": ...}`` and waits for
a line.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import ray

import secateur
from secateur.errors import DatabaseError, Error

MACHINES = 3
MEMBERS = 6
ROWS = 3_000
KEYS = 40
CUT_S = 20.0
CALM_S = 8.0


class Client(threading.Thread):
    """Writes rows with new keys, one after the other, and reads each of them back."""

    def __init__(self, address: str, number: int) -> None:
        super().__init__(name=f"client {number}")
        self.acknowledged: list[int] = []
        self.wrong: list[str] = []
        self.errors: list[tuple[str, bool]] = []
        self.longest_s = 0.0
        self.stopped = threading.Event()
        self._address = address
        self._keys = range(1_000_000 * (number + 1), 1_000_000 * (number + 2))

    def run(self) -> None:
        with secateur.connect(self._address) as conn:
            for key in self._keys:
                if self.stopped.wait(0.01):
                    return
                began = time.monotonic()
                try:
                    conn.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [key, 1])
                    self.acknowledged.append(key)
                    if (rows := conn.execute("SELECT b FROM t WHERE a = ?", [key]).fetchall()) != [(1,)]:
                        self.wrong.append(f"row {key} was acknowledged, and is read as {rows}")
                except Error as error:
                    self.errors.append((f"{type(error).__name__}: {error}", error.retry_safe))
                self.longest_s = max(self.longest_s, time.monotonic() - began)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def ask(what: str) -> None:
    say(do=what)
    sys.stdin.readline()


def answers(conn: secateur.Connection) -> dict[str, Any]:
    """Statements and a job whose answers are known."""
    pipeline = secateur.Pipeline().read_table("u").map(lambda batch: batch).write_to(secateur.connectors.collect())
    return {
        "pruned": conn.execute("SELECT b FROM t WHERE a = ?", [7]).fetchall(),
        "all": conn.execute("SELECT count(*), sum(b) FROM t WHERE a < ?", [ROWS]).fetchall(),
        "join": conn.execute(
            "SELECT count(*), sum(t.b) FROM t JOIN u ON u.ref = t.a WHERE u.k < ?", [KEYS // 2]
        ).fetchall(),
        "job": conn.submit(pipeline).result(timeout_s=30).num_rows,
    }


def load_with_spark(address: str, token: str | None) -> int:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        df = spark.range(100_000, 101_000).selectExpr("id AS a", "1L AS b")
        return secateur.spark.write(df, "t", address=address, token=token).rows
    finally:
        spark.stop()


def main(ray_address: str, node: str, with_spark: bool) -> None:
    ray.init(address=ray_address, _node_ip_address=node, logging_level="error", log_to_driver=False)
    while sum(found["Alive"] for found in ray.nodes()) < MACHINES:
        time.sleep(0.2)
    with secateur.start(members=MEMBERS, runtime="ray", start_timeout_s=120) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT) PARTITION BY HASH (a) PARTITIONS 30 BACKUPS 2")
        conn.execute("CREATE TABLE u (k BIGINT PRIMARY KEY, ref BIGINT) PARTITION BY HASH (k) PARTITIONS 7 BACKUPS 2")
        conn.table("t").load(pa.table({"a": range(ROWS), "b": range(ROWS)}))
        conn.table("u").load(pa.table({"k": range(KEYS), "ref": range(KEYS)}))
        holders = conn.execute("SELECT [primary_member] || backup_members FROM secateur.partitions").fetchall()
        nodes = dict(conn.execute("SELECT id, node FROM secateur.members").fetchall())
        say(
            address=cluster.address,
            members=[member.address for member in cluster.members()],
            nodes=[sorted({nodes[member] for member in copies}) for (copies,) in holders],
            answers=answers(conn),
            spark=load_with_spark(cluster.address, cluster.token) if with_spark else None,
        )
        clients = [Client(cluster.address, number) for number in range(2)]
        for client in clients:
            client.start()
        time.sleep(2)
        ask("cut")
        time.sleep(CUT_S)
        ask("join")
        time.sleep(CALM_S)
        say(after="cut", answers=answers(conn))
        ask("kill")
        time.sleep(CALM_S)
        say(after="kill", answers=answers(conn))
        for client in clients:
            client.stopped.set()
        for client in clients:
            client.join()
        missing = []
        for client in clients:
            for key in client.acknowledged:
                try:
                    if conn.execute("SELECT b FROM t WHERE a = ?", [key]).fetchall() != [(1,)]:
                        missing.append(key)
                except DatabaseError as error:
                    missing.append(f"{key}: {error}")
        say(
            acknowledged=[len(client.acknowledged) for client in clients],
            missing=missing[:10],
            wrong=[sentence for client in clients for sentence in client.wrong],
            not_retryable=[text for client in clients for text, retry_safe in client.errors if not retry_safe],
            errors=sum(len(client.errors) for client in clients),
            longest_s=max(client.longest_s for client in clients),
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "spark")
