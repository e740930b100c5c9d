"""DuckDB in the process of the client: no members, no messages, the same tables with their primary keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.peers.caller import Call, serve_calls
from benchmarks.peers.statements import Statement, with_dates

_TABLES = {
    "orders": "CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, status VARCHAR NOT NULL,"
    " ordered_on DATE NOT NULL, quantity INTEGER NOT NULL, price DOUBLE NOT NULL, PRIMARY KEY (customer_id, order_id))",
    "customers": "CREATE TABLE customers (customer_id BIGINT PRIMARY KEY, name VARCHAR)",
    "product": "CREATE TABLE product (product_id INTEGER PRIMARY KEY, title VARCHAR)",
}


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        self._connection = duckdb.connect()
        for name, ddl in _TABLES.items():
            self._connection.execute(ddl)
            # In order of the keys, so that the ranges of the row groups prune by customer.
            self._connection.execute(
                f"INSERT INTO {name} FROM read_parquet(?) ORDER BY ALL",
                [str(Path(service["data"]) / f"{name}.parquet")],
            )

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        return with_dates(statement, values, date.fromisoformat)

    def call(self, statement: Statement) -> Call:
        execute, sql = self._connection.execute, statement.sql
        if statement.writes:
            return lambda values: _no_rows(execute(sql, values))
        return lambda values: execute(sql, values).fetchall()

    def close(self) -> None:
        self._connection.close()


def _no_rows(_: object) -> list[Any]:
    return []


if __name__ == "__main__":
    serve_calls(_Caller())
