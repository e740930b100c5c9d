"""What does a join of one key's rows cost, with replicated tables and with co-located ones?

Question: are the joins of one customer's orders within ten times an echo of their bytes, whatever the size of the
replicated table? Which of their time is DuckDB's where the arrow kernel declines? Do statements over one table cost
what they did?
Data: orders of customers, a hundred each; customers and payments, co-located with them; replicated tables of 1,000 and
of 100,000 products.
Control: the bare echo of ``bare_echo.py``. Answers are compared with DuckDB's first.
Metric: median of the medians of several rounds, in which everything takes its turn, in microseconds.

Run: ``python -m benchmarks.serving.joins [--rows N] [--rounds N] [--calls N] [--own-core] [--check]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

import secateur
from benchmarks.serving.bare_echo import bare_echo, medians_us
from benchmarks.serving.orders import DDL, ORDERS_PER_CUSTOMER, make_orders
from benchmarks.serving.own_core import give_client_a_core

__all__ = ["main"]

_ECHO_RATIO_MAX: Final = 10.0
_COMPARED: Final = 20
_PRODUCTS: Final = {"product": 1_000, "catalogue": 100_000}
_DDL: Final = {
    "customers": "CREATE TABLE customers (customer_id BIGINT, name VARCHAR, PRIMARY KEY (customer_id))"
    " PARTITION BY HASH (customer_id) PARTITIONS 271",
    "payments": "CREATE TABLE payments (customer_id BIGINT, order_id BIGINT, paid DOUBLE,"
    " PRIMARY KEY (customer_id, order_id)) PARTITION BY HASH (customer_id) PARTITIONS 271",
    "product": "CREATE TABLE product (product_id INTEGER, title VARCHAR, PRIMARY KEY (product_id)) REPLICATED",
    "catalogue": "CREATE TABLE catalogue (product_id INTEGER, title VARCHAR, PRIMARY KEY (product_id)) REPLICATED",
}


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement whose parameter is a customer, and whether it has to be within the bar."""

    name: str
    sql: str
    has_bar: bool = True


_STATEMENTS: Final = (
    _Statement("rows of a customer", "SELECT order_id, price FROM orders WHERE customer_id = ?", False),
    _Statement("aggregate of a customer", "SELECT count(*), sum(price) FROM orders WHERE customer_id = ?", False),
    _Statement(
        "groups of a customer",
        "SELECT status, count(*) FROM orders WHERE customer_id = ? GROUP BY status ORDER BY 1",
        False,
    ),
    _Statement(
        "replicated, 1,000 rows",
        "SELECT o.order_id, p.title FROM orders o JOIN product p ON o.quantity = p.product_id WHERE o.customer_id = ?"
        " AND o.price < 100 ORDER BY 1",
    ),
    _Statement(
        "replicated, 100,000 rows",
        "SELECT o.order_id, p.title FROM orders o JOIN catalogue p ON o.quantity = p.product_id WHERE o.customer_id = ?"
        " AND o.price < 100 ORDER BY 1",
    ),
    _Statement(
        "replicated, aggregate",
        "SELECT p.title, count(*), sum(o.price) FROM orders o JOIN product p ON o.quantity = p.product_id"
        " WHERE o.customer_id = ? GROUP BY p.title ORDER BY 1",
    ),
    _Statement(
        "two co-located",
        "SELECT c.name, count(*), sum(o.price), sum(m.paid) FROM customers c JOIN orders o USING (customer_id)"
        " LEFT JOIN payments m ON m.customer_id = o.customer_id AND m.order_id = o.order_id"
        " WHERE c.customer_id = ? GROUP BY c.name",
    ),
    _Statement(
        "EXISTS, co-located",
        "SELECT count(*) FROM orders o WHERE o.customer_id = ? AND EXISTS (SELECT 1 FROM payments m"
        " WHERE m.customer_id = o.customer_id AND m.order_id = o.order_id)",
    ),
    _Statement(
        "left to DuckDB",
        "SELECT upper(p.title), count(*) FROM orders o JOIN product p ON o.quantity = p.product_id"
        " WHERE o.customer_id = ? GROUP BY 1 ORDER BY 1",
        False,
    ),
)


def main() -> int:
    """Load, compare, measure, print.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--own-core", action="store_true", help="keep all others off the client's core")
    parser.add_argument("--check", action="store_true", help=f"fail above {_ECHO_RATIO_MAX:g} times the echo")
    options = parser.parse_args()
    tables = _tables(options.rows)
    customers = options.rows // ORDERS_PER_CUSTOMER
    with secateur.start(members=3, runtime="ray") as cluster, cluster.connect() as connection:
        for name, rows in tables.items():
            connection.execute(DDL if name == "orders" else _DDL[name])
            connection.table(name).load(rows)
        _compare(tables, connection, customers)
        with bare_echo() as echo:
            if options.own_core:
                give_client_a_core()
            ways: dict[str, Callable[[int], Any]] = {"echo": echo}
            ways |= {statement.name: _execute(connection, statement) for statement in _STATEMENTS}
            medians = medians_us(ways, options.rounds, lambda number: _keys(customers, options.calls, seed=number))
    echo_us = medians["echo"]
    print(f"echo: {echo_us:.0f} us")
    print(f"{'statement':<26}{'us':>8}{'x echo':>8}")
    for statement in _STATEMENTS:
        print(f"{statement.name:<26}{medians[statement.name]:>8,.0f}{medians[statement.name] / echo_us:>8.1f}")
    missed = [one.name for one in _STATEMENTS if one.has_bar and medians[one.name] > _ECHO_RATIO_MAX * echo_us]
    return int(options.check and bool(missed))


def _tables(rows: int) -> dict[str, pa.Table]:
    orders = make_orders(rows)
    customers = np.arange(rows // ORDERS_PER_CUSTOMER)
    paid = orders.filter(pa.array(np.asarray(orders["order_id"]) % 3 == 0))
    return {
        "orders": orders,
        "customers": pa.table({"customer_id": customers, "name": [f"customer {number}" for number in customers]}),
        "payments": paid.select(["customer_id", "order_id", "price"]).rename_columns(
            ["customer_id", "order_id", "paid"]
        ),
        **{
            name: pa.table(
                {"product_id": pa.array(range(count), pa.int32()), "title": [f"title {n % 50}" for n in range(count)]}
            )
            for name, count in _PRODUCTS.items()
        },
    }


def _keys(customers: int, count: int, seed: int) -> list[int]:
    keys: list[int] = np.random.default_rng(seed).integers(0, customers, count).tolist()
    return keys


def _execute(connection: secateur.Connection, statement: _Statement) -> Callable[[int], Any]:
    return lambda key: connection.execute(statement.sql, [key]).fetchall()


def _compare(tables: dict[str, pa.Table], connection: secateur.Connection, customers: int) -> None:
    with duckdb.connect() as oracle:
        for name, rows in tables.items():
            oracle.register(name, rows)
        for statement in _STATEMENTS:
            for key in _keys(customers, _COMPARED, seed=1):
                rows = connection.execute(statement.sql, [key]).fetchall()
                expected = oracle.execute(statement.sql, [key]).fetchall()
                if sorted(rows) != sorted(expected):
                    raise SystemExit(f"{statement.name} for {key} gave {rows}, DuckDB gives {expected}")


if __name__ == "__main__":
    raise SystemExit(main())
