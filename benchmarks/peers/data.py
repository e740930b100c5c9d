"""The tables of the suite as files that every peer can load, the values that statements are bound to, and the answers.

Tables are the orders of ``benchmarks/serving``, a hundred for each customer; the customers; and nine products, which
every member has. They are written as Parquet for Python and as CSV for Java.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from benchmarks.peers.statements import COLUMNS, KEYS_OF_IN, Statement
from benchmarks.serving.orders import ORDERS_PER_CUSTOMER, make_orders

__all__ = ["Answers", "WrongAnswerError", "same_rows", "values_of", "write_tables"]

_FIRST_DAY: Final = date(2024, 1, 1)
_DAYS: Final = 30
_STATUSES: Final = ("delivered", "open", "returned", "shipped")


class WrongAnswerError(Exception):
    """A peer gave other rows than DuckDB; no times are taken from it."""


def write_tables(folder: Path, rows: int) -> dict[str, pa.Table]:
    """Write ``orders``, ``customers`` and ``product``, each as Parquet and as CSV without a header."""
    folder.mkdir(parents=True, exist_ok=True)
    customers = range(rows // ORDERS_PER_CUSTOMER)
    tables = {
        # A day is called something else here, because Calcite has the word for itself.
        "orders": make_orders(rows).rename_columns(COLUMNS),
        "customers": pa.table({"customer_id": customers, "name": [f"customer {number}" for number in customers]}),
        "product": pa.table(
            {
                "product_id": pa.array(range(1, 10), pa.int32()),
                "title": [f"title {number}" for number in range(1, 10)],
            }
        ),
    }
    for name, table in tables.items():
        parquet.write_table(table, folder / f"{name}.parquet")
        csv.write_csv(table, folder / f"{name}.csv", csv.WriteOptions(include_header=False, quoting_style="none"))
    return tables


def values_of(statement: Statement, rows: int, count: int, seed: int) -> list[list[Any]]:
    """So many values to bind the statement to; the same ones for the same seed. Days are ISO text."""
    random = np.random.default_rng(seed)
    customers = rows // ORDERS_PER_CUSTOMER
    orders = random.integers(0, rows, count).tolist()
    match statement.bound:
        case "order":
            return [[order // ORDERS_PER_CUSTOMER, order] for order in orders]
        case "customer":
            return [[order // ORDERS_PER_CUSTOMER] for order in orders]
        case "customers":
            return [random.choice(customers, KEYS_OF_IN, replace=False).tolist() for _ in orders]
        case "days":
            firsts = random.integers(0, 335, count).tolist()
            return [
                [order // ORDERS_PER_CUSTOMER, _day(first), _day(first + _DAYS - 1)]
                for order, first in zip(orders, firsts, strict=True)
            ]
        case "row":
            drawn = random.integers(0, 4000, (count, 4)).tolist()
            return [
                [
                    order // ORDERS_PER_CUSTOMER,
                    order,
                    _STATUSES[status % len(_STATUSES)],
                    _day(ordered_on % 365),
                    1 + quantity % 9,
                    price / 4,
                ]
                for order, (status, ordered_on, quantity, price) in zip(orders, drawn, strict=True)
            ]
        case _:
            return [[] for _ in orders]


def _day(number: int) -> str:
    return (_FIRST_DAY + timedelta(days=number)).isoformat()


def same_rows(found: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]]) -> bool:
    """Whether both have the same rows, in whatever order.

    Days are compared as ISO text and numbers by value: peers have types of their own for counts and sums. All prices
    are quarters, so sums are exact.
    """
    return _counted(found) == _counted(expected)


def _counted(rows: Sequence[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return value if value is None or isinstance(value, str) else float(value)


@dataclass(slots=True)
class Answers:
    """What DuckDB answers over the same tables.

    Attributes:
        tables: By name.
    """

    tables: dict[str, pa.Table]

    def expected(self, statement: Statement, values: Sequence[Sequence[Any]]) -> list[list[tuple[Any, ...]]]:
        """The rows for each of the values; of a statement that writes a row, the row."""
        if statement.writes:
            return [[tuple(value)] for value in values]
        with duckdb.connect() as oracle:
            for name, table in self.tables.items():
                oracle.register(name, table)
            return [oracle.execute(statement.sql, value).fetchall() for value in values]

    def compare(
        self,
        who: str,
        statement: Statement,
        values: Sequence[Sequence[Any]],
        found: Sequence[Sequence[Sequence[Any]]],
    ) -> None:
        """Compare a peer's answers.

        Args:
            who: The peer.
            statement: What was asked; for one that writes, ``found`` are the rows of these keys afterwards.
            values: What it was bound to.
            found: The peer's rows for each of the values.

        Raises:
            WrongAnswerError: One differs.
        """
        for value, rows, expected in zip(values, found, self.expected(statement, values), strict=True):
            if not same_rows(rows, expected):
                raise WrongAnswerError(
                    f"{who}: {statement.name} of {value} gave {list(rows)[:5]}, DuckDB gives {expected[:5]}"
                )
