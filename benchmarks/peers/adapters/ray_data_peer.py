"""Ray Data: three blocks in the object store, one for each third of the customers, read with its expressions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import ray
from ray.data import Dataset
from ray.data.aggregate import Count, Sum
from ray.data.expressions import col

from benchmarks.peers.caller import Call, CannotAnswerError, serve_calls
from benchmarks.peers.statements import GET, Statement, with_dates

_WORKERS = 3


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        # As many processors as the others have members: Ray then runs that many tasks side by side.
        ray.init(num_cpus=_WORKERS, include_dashboard=False, log_to_driver=False, configure_logging=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        orders = parquet.read_table(Path(service["data"]) / "orders.parquet")
        third = np.asarray(orders["customer_id"]) % _WORKERS
        self._orders = ray.data.from_arrow([orders.filter(third == number) for number in range(_WORKERS)]).materialize()

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        return with_dates(statement, values, date.fromisoformat)

    def call(self, statement: Statement) -> Call:
        asked = _READS.get(statement.name)
        if asked is None:
            raise CannotAnswerError(
                "a dataset does not change"
                if statement.writes
                else "Ray Data has no SQL; this one is not written for it"
            )
        return lambda values: asked(self._orders, values)

    def close(self) -> None:
        ray.shutdown()


def _of_customer(orders: Dataset, customer: int) -> Dataset:
    return orders.filter(expr=col("customer_id") == customer)


def _rows(orders: Dataset, *columns: str) -> list[list[Any]]:
    return [[row[column] for column in columns] for row in orders.select_columns(list(columns)).take_all()]


def _by_key(*columns: str) -> Callable[[Dataset, list[Any]], list[list[Any]]]:
    return lambda orders, values: _rows(
        orders.filter(expr=(col("customer_id") == values[0]) & (col("order_id") == values[1])), *columns
    )


def _totals(orders: Dataset, column: str) -> list[list[Any]]:
    found = orders.aggregate(Count(), Sum(column))
    return [[found["count()"], found[f"sum({column})"]]]


def _groups(orders: Dataset, column: str) -> list[list[Any]]:
    found = orders.groupby("status").aggregate(Count(), Sum(column)).take_all()
    return [[row["status"], row["count()"], row[f"sum({column})"]] for row in found]


_READS: dict[str, Callable[[Dataset, list[Any]], list[list[Any]]]] = {
    "row by key": _by_key("status", "ordered_on", "quantity", "price"),
    GET.name: _by_key("customer_id", "order_id", "status", "ordered_on", "quantity", "price"),
    "rows of a customer": lambda orders, values: _rows(
        _of_customer(orders, values[0]), "order_id", "status", "ordered_on", "quantity", "price"
    ),
    "count and sum of a customer": lambda orders, values: _totals(_of_customer(orders, values[0]), "quantity"),
    "GROUP BY of a customer": lambda orders, values: _groups(_of_customer(orders, values[0]), "price"),
    "key and date range": lambda orders, values: _totals(
        _of_customer(orders, values[0]).filter(
            expr=(col("ordered_on") >= values[1]) & (col("ordered_on") <= values[2])
        ),
        "price",
    ),
    "IN of 5 customers": lambda orders, values: _totals(
        orders.filter(expr=col("customer_id").is_in(values)), "quantity"
    ),
    "GROUP BY of everything": lambda orders, _: _groups(orders, "quantity"),
}


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    serve_calls(_Caller())
