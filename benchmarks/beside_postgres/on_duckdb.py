"""DuckDB in this process, which takes no part: its answers are those that the others have to give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from benchmarks.beside_postgres.lines import Client
from benchmarks.beside_postgres.orders import ORDERS_SQL, PRODUCT_SQL, order_table, product_table

__all__ = ["reference"]


@contextmanager
def reference(rows: int) -> Iterator[Client]:
    """A client that has every way; those without SQL run the statement that does the same."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("loaded", order_table(rows)).register("products", product_table())
        connection.execute(f"{ORDERS_SQL}; {PRODUCT_SQL}")
        connection.execute("INSERT INTO orders FROM loaded; INSERT INTO product FROM products")

        def one(sql: str, values: Any) -> list[Any]:
            return connection.execute(sql, values).fetchall()

        def many(sql: str, some: Any) -> list[Any]:
            return [row for values in some for row in one(sql, values)]

        yield {
            **dict.fromkeys(("query", "get", "upsert", "upsert_unflushed", "put"), one),
            **dict.fromkeys(("get_many", "upserts", "upserts_unflushed"), many),
        }
