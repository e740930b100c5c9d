"""secateur: three members, and one backup of each partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import secateur
from benchmarks.beside_postgres.lines import Client
from benchmarks.beside_postgres.orders import ORDERS_SQL, PRODUCT_SQL, order_table, product_table

__all__ = ["connect", "serve"]


@contextmanager
def serve(rows: int, runtime: Literal["ray", "embedded"]) -> Iterator[tuple[str, str | None]]:
    """Started and loaded; its address and its token."""
    with secateur.start(members=3, runtime=runtime) as cluster, cluster.connect() as connection:
        connection.execute(f"{ORDERS_SQL} PARTITION BY HASH (customer_id) PARTITIONS 271 BACKUPS 1")
        connection.execute(f"{PRODUCT_SQL} REPLICATED")
        connection.table("orders").load(order_table(rows))
        connection.table("product").load(product_table())
        yield cluster.address, cluster.token


@contextmanager
def connect(address: tuple[str, str | None]) -> Iterator[Client]:
    """A client."""
    with secateur.connect(address[0], token=address[1]) as connection:
        cursor, orders = connection.cursor(), connection.table("orders")
        yield {
            "query": lambda sql, values: cursor.execute(sql, values).fetchall(),
            "get": lambda _, key: [orders.get(key)],
            "get_many": lambda _, keys: orders.get_many(keys),
            "upsert": cursor.execute,
            "upsert_unflushed": cursor.execute,
            "upserts": cursor.executemany,
            "upserts_unflushed": cursor.executemany,
            "put": lambda _, row: orders.put(row),
        }
