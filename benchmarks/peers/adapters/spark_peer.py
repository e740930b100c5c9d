"""Spark: cached DataFrames that are partitioned and sorted by customer, three local threads, SQL with parameters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.peers.caller import Call, CannotAnswerError, serve_calls
from benchmarks.peers.statements import Statement, with_dates

_THREADS = 3
_PARTITIONS = 12
_ORDERED_BY = {"orders": ["customer_id", "order_id"], "customers": ["customer_id"]}


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        self._spark = (
            SparkSession.builder.master(f"local[{_THREADS}]")
            .appName("peers")
            .config("spark.driver.memory", "1g")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", _THREADS)
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
        for name in ("orders", "customers", "product"):
            frame = self._spark.read.parquet(str(Path(service["data"]) / f"{name}.parquet"))
            if name in _ORDERED_BY:
                # In order, so that the statistics of cached batches prune by customer.
                frame = frame.repartitionByRange(_PARTITIONS, "customer_id").sortWithinPartitions(*_ORDERED_BY[name])
            frame.cache().count()
            frame.createOrReplaceTempView(name)

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        return with_dates(statement, values, date.fromisoformat)

    def call(self, statement: Statement) -> Call:
        if statement.writes:
            raise CannotAnswerError("a cached DataFrame does not change")
        return lambda values: self._spark.sql(statement.sql, args=list(values)).collect()

    def close(self) -> None:
        self._spark.stop()


if __name__ == "__main__":
    serve_calls(_Caller())
