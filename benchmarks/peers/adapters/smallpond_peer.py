"""smallpond: Parquet files hashed by customer, DuckDB over each of them in tasks of Ray, its partial SQL."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import smallpond

from benchmarks.peers.adapters.inlined import inlined
from benchmarks.peers.caller import Call, CannotAnswerError, serve_calls
from benchmarks.peers.statements import Statement

_PARTITIONS = 3
_SUMMED = ("count and sum of a customer", "key and date range", "IN of 5 customers")
_GROUPED = "GROUP BY of everything"


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        self._root = tempfile.TemporaryDirectory(prefix="smallpond-")
        self._session = smallpond.init(data_root=self._root.name)
        read = self._session.read_parquet(str(Path(service["data"]) / "orders.parquet"))
        self._orders = read.repartition(_PARTITIONS, hash_by="customer_id")
        self._orders.compute()

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        """There are no parameters, so the values are written into the text."""
        return inlined(statement.sql, values).replace("FROM orders", "FROM {0}")

    def call(self, statement: Statement) -> Call:
        if statement.writes:
            raise CannotAnswerError("smallpond's data does not change")
        if "JOIN" in statement.sql:
            raise CannotAnswerError("joins are not written for smallpond's partial SQL")
        if statement.name in _SUMMED:
            return lambda sql: [_summed(self._rows(sql))]
        if statement.name == _GROUPED:
            return lambda sql: _grouped(self._rows(sql))
        return self._rows

    def close(self) -> None:
        self._session.shutdown()
        self._root.cleanup()

    def _rows(self, sql: str) -> list[list[Any]]:
        """The rows that the SQL finds in each partition."""
        return [list(row.values()) for row in self._session.partial_sql(sql, self._orders).take_all()]


def _summed(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Counts and sums of partitions, of which some have no row of the customer."""
    return [sum(value for value in column if value is not None) for column in zip(*rows, strict=True)]


def _grouped(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for group, *totals in rows:
        before = groups.get(group)
        groups[group] = totals if before is None else [sum(pair) for pair in zip(before, totals, strict=True)]
    return [[group, *totals] for group, totals in groups.items()]


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    serve_calls(_Caller())
