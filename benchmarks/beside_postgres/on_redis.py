"""Redis by redis-py: a hash for each order, whose values the client makes numbers again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis

from benchmarks.beside_postgres.lines import Client
from benchmarks.beside_postgres.orders import row
from benchmarks.installed_servers import redis_server

__all__ = ["connect", "serve"]

_FIELDS: Final = ("product", "quantity", "amount")
_LOADED_AT_ONCE: Final = 10_000


@contextmanager
def serve(rows: int) -> Iterator[int]:
    """Started and loaded; its port."""
    with redis_server() as port:
        with redis.Redis(host="127.0.0.1", port=port) as server, server.pipeline(transaction=False) as pipeline:
            for first in range(0, rows, _LOADED_AT_ONCE):
                for order in range(first, min(rows, first + _LOADED_AT_ONCE)):
                    _put(pipeline, row(order))
                pipeline.execute()
        yield port


@contextmanager
def connect(port: int) -> Iterator[Client]:
    """A client."""
    with redis.Redis(host="127.0.0.1", port=port) as server, server.pipeline(transaction=False) as pipeline:

        def get_many(keys: list[tuple[str, int]]) -> list[tuple[Any, ...]]:
            for key in keys:
                pipeline.hmget(f"{key[0]}:{key[1]}", _FIELDS)
            return list(map(_row, keys, pipeline.execute()))

        yield {
            "get": lambda _, key: [_row(key, server.hmget(f"{key[0]}:{key[1]}", _FIELDS))],
            "get_many": lambda _, keys: get_many(keys),
            "put": lambda _, values: _put(server, values),
        }


def _put(server: Any, values: tuple[Any, ...]) -> Any:
    return server.hset(f"{values[0]}:{values[1]}", mapping=dict(zip(_FIELDS, values[2:], strict=True)))


def _row(key: tuple[str, int], found: list[bytes]) -> tuple[Any, ...]:
    product, quantity, amount = found
    return *key, int(product), int(quantity), float(amount)
