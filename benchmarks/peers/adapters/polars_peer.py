"""Polars in the process of the client: its SQL over the tables in memory, in order of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars

from benchmarks.peers.adapters.inlined import inlined
from benchmarks.peers.caller import Call, CannotAnswerError, serve_calls
from benchmarks.peers.statements import Statement

_TABLES = {"orders": ["customer_id", "order_id"], "customers": ["customer_id"], "product": ["product_id"]}


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        folder = Path(service["data"])
        frames = {
            name: polars.read_parquet(folder / f"{name}.parquet").sort(keys).set_sorted(keys[0])
            for name, keys in _TABLES.items()
        }
        self._context = polars.SQLContext(frames, eager=True)

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        """Polars has no parameters, so the values are written into the text."""
        return inlined(statement.sql, values)

    def call(self, statement: Statement) -> Call:
        if statement.writes:
            raise CannotAnswerError("Polars frames do not change")
        return lambda sql: self._context.execute(sql).rows()

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve_calls(_Caller())
