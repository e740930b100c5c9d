"""secateur on Ray: three members, one backup, the thin client from Python; with pruning on and off."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

import secateur
from benchmarks.peers.caller import Call, serve_calls
from benchmarks.peers.service import serve
from benchmarks.peers.statements import GET, Statement, with_dates

_START_S = 300.0
_TABLES = {
    "orders": "CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, status VARCHAR NOT NULL,"
    " ordered_on DATE NOT NULL, quantity INTEGER NOT NULL, price DOUBLE NOT NULL, PRIMARY KEY (customer_id, order_id))"
    " PARTITION BY HASH (customer_id) PARTITIONS 271 BACKUPS 1",
    "customers": "CREATE TABLE customers (customer_id BIGINT, name VARCHAR, PRIMARY KEY (customer_id))"
    " PARTITION BY HASH (customer_id) PARTITIONS 271 BACKUPS 1",
    "product": "CREATE TABLE product (product_id INTEGER, title VARCHAR, PRIMARY KEY (product_id)) REPLICATED",
}


class _Caller:
    def __init__(self, *, pruning: bool) -> None:
        self._pruning = pruning

    def connect(self, service: dict[str, Any]) -> None:
        self._connection = secateur.connect(service["address"], token=service["token"])
        if not self._pruning:
            self._connection.execute("SET pruning = off")
        self._get = self._connection.table("orders").get

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        values = with_dates(statement, values, date.fromisoformat)
        return tuple(values) if statement == GET else values

    def call(self, statement: Statement) -> Call:
        if statement == GET:
            return self._got
        execute, sql = self._connection.execute, statement.sql
        if statement.writes:
            return lambda values: _no_rows(execute(sql, values))
        return lambda values: execute(sql, values).fetchall()

    def close(self) -> None:
        self._connection.close()

    def _got(self, key: tuple[int, int]) -> list[tuple[Any, ...]]:
        row = self._get(key)
        return [] if row is None else [row]


def _no_rows(_: object) -> list[Any]:
    return []


@contextmanager
def _started(setting: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    starting = secateur.start(members=setting["members"], runtime="ray", start_timeout_s=_START_S)
    with starting as cluster, cluster.connect() as connection:
        for name, ddl in _TABLES.items():
            connection.execute(ddl)
            connection.table(name).load(parquet.read_table(Path(setting["data"]) / f"{name}.parquet"))
        yield {"address": cluster.address, "token": cluster.token}


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if sys.argv[1] == "serve":
        serve(_started)
    else:
        serve_calls(_Caller(pruning="pruning=off" not in sys.argv))
