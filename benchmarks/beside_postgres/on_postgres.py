"""PostgreSQL by psycopg 3: every statement prepared at its first use, values in binary form."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from pyarrow import csv

from benchmarks.beside_postgres.lines import Client
from benchmarks.beside_postgres.orders import ORDERS_SQL, PRODUCT_SQL, order_table, product_table
from benchmarks.installed_servers import postgres_server

__all__ = ["connect", "serve"]


@contextmanager
def serve(rows: int) -> Iterator[str]:
    """Started and loaded; how to connect."""
    with postgres_server() as port:
        address = f"host=127.0.0.1 port={port} user=bench dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"{ORDERS_SQL}; {PRODUCT_SQL}")
            for name, table in (("orders", order_table(rows)), ("product", product_table())):
                text = io.BytesIO()
                csv.write_csv(table, text, csv.WriteOptions(include_header=False))
                with cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
                    copy.write(text.getvalue())
            cursor.execute("VACUUM ANALYZE")
        yield address


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of two connections, one of which does not wait for the disk."""
    with (
        psycopg.connect(address, autocommit=True, prepare_threshold=0) as connection,
        psycopg.connect(address, autocommit=True, prepare_threshold=0) as unflushed,
    ):
        unflushed.execute("SET synchronous_commit = off")
        cursor, other = connection.cursor(binary=True), unflushed.cursor(binary=True)
        yield {
            "query": lambda sql, values: cursor.execute(_text(sql), values).fetchall(),
            "upsert": lambda sql, values: cursor.execute(_text(sql), values),
            "upsert_unflushed": lambda sql, values: other.execute(_text(sql), values),
            "upserts": lambda sql, rows: cursor.executemany(_text(sql), rows),
            "upserts_unflushed": lambda sql, rows: other.executemany(_text(sql), rows),
        }


@functools.cache
def _text(sql: str) -> str:
    return sql.replace("?", "%s")
