"""What does a statement over a few keys of several members cost, when each owner is asked once?

Question: is an aggregate of five customers on three members within 12 times an echo of its bytes, and how much less is
it than the job that would run instead? Does a look-up of one key cost what it did?
Data: orders of customers, a hundred each, and a replicated table of four products.
Control: a bare asyncio protocol that echoes length-prefixed msgpack of about the same size, from a blocking socket; and
the same statements with ``SET scatter_partitions_max = 0``, which run jobs. Answers are compared with DuckDB's first.
Metric: median of the medians of several rounds, in which everything takes its turn, in microseconds.

Run: ``python -m benchmarks.serving.few_keys [--rows N] [--rounds N] [--calls N] [--own-core] [--check]``.
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

_ECHO_RATIO_MAX: Final = 12.0
_COMPARED: Final = 20
_KEYS: Final = 5
_STATUSES_DDL: Final = "CREATE TABLE statuses (status VARCHAR, title VARCHAR, PRIMARY KEY (status)) REPLICATED"
_STATUSES: Final = pa.table(
    {"status": ["delivered", "open", "returned", "shipped"], "title": ["done", "new", "back", "on its way"]}
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement, and its parameters from five customers."""

    name: str
    sql: str
    parameters: Callable[[list[int]], list[int]]


_STATEMENTS: Final = (
    _Statement(
        "row by key",
        "SELECT status, quantity FROM orders WHERE customer_id = ? AND order_id = ?",
        lambda keys: [keys[0], keys[0] * ORDERS_PER_CUSTOMER],
    ),
    _Statement(
        "IN of 5, aggregate",
        "SELECT count(*), sum(quantity) FROM orders WHERE customer_id IN (?, ?, ?, ?, ?)",
        lambda keys: keys,
    ),
    _Statement(
        "IN of 5, groups",
        "SELECT status, count(*), sum(price) FROM orders WHERE customer_id IN (?, ?, ?, ?, ?) GROUP BY status"
        " ORDER BY 1",
        lambda keys: keys,
    ),
    _Statement(
        "IN of 5, 10 rows of 500",
        "SELECT customer_id, order_id, price FROM orders WHERE customer_id IN (?, ?, ?, ?, ?) ORDER BY price, order_id"
        " LIMIT 10",
        lambda keys: keys,
    ),
    _Statement(
        "range of 5, aggregate",
        "SELECT count(*), sum(quantity) FROM orders WHERE customer_id BETWEEN ? AND ?",
        lambda keys: [keys[0], keys[0] + _KEYS - 1],
    ),
    _Statement(
        "IN of 5, join",
        "SELECT title, count(*) FROM orders JOIN statuses USING (status) WHERE customer_id IN (?, ?, ?, ?, ?)"
        " GROUP BY title ORDER BY 1",
        lambda keys: keys,
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
    orders = make_orders(options.rows)
    with (
        secateur.start(members=3, runtime="ray") as cluster,
        cluster.connect() as asking,
        cluster.connect() as running,
    ):
        running.execute("SET scatter_partitions_max = 0")
        asking.execute(DDL)
        asking.execute(_STATUSES_DDL)
        asking.table("orders").load(orders)
        asking.table("statuses").load(_STATUSES)
        _compare(orders, asking, running)
        medians = _measure(asking, running, options)
    echo_us = medians["echo"]
    print(f"echo: {echo_us:.0f} us")
    print(f"{'statement':<26}{'us':>8}{'x echo':>8}{'job us':>9}{'of a job':>10}")
    for statement in _STATEMENTS:
        once, job = medians[statement.name], medians[f"{statement.name}, job"]
        print(f"{statement.name:<26}{once:>8,.0f}{once / echo_us:>8.1f}{job:>9,.0f}{once / job:>10.2f}")
    return int(options.check and medians["IN of 5, aggregate"] > _ECHO_RATIO_MAX * echo_us)


def _customers(rows: int, count: int, seed: int) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.choice(rows - _KEYS, _KEYS, replace=False).tolist() for _ in range(count)]


def _compare(orders: pa.Table, *connections: secateur.Connection) -> None:
    with duckdb.connect() as oracle:
        oracle.register("orders", orders)
        oracle.register("statuses", _STATUSES)
        for statement in _STATEMENTS:
            for keys in _customers(len(orders) // ORDERS_PER_CUSTOMER, _COMPARED, seed=1):
                expected = oracle.execute(statement.sql, statement.parameters(keys)).fetchall()
                for connection in connections:
                    rows = connection.execute(statement.sql, statement.parameters(keys)).fetchall()
                    if rows != expected:
                        raise SystemExit(f"{statement.name} for {keys} gave {rows}, DuckDB gives {expected}")


def _measure(
    asking: secateur.Connection, running: secateur.Connection, options: argparse.Namespace
) -> dict[str, float]:
    customers = options.rows // ORDERS_PER_CUSTOMER
    with bare_echo() as echo:
        if options.own_core:
            give_client_a_core()
        ways: dict[str, Callable[[list[int]], Any]] = {"echo": echo}
        for statement in _STATEMENTS:
            ways[statement.name] = _execute(asking, statement)
            ways[f"{statement.name}, job"] = _execute(running, statement)
        return medians_us(ways, options.rounds, lambda number: _customers(customers, options.calls, seed=number))


def _execute(connection: secateur.Connection, statement: _Statement) -> Callable[[list[int]], Any]:
    return lambda keys: connection.execute(statement.sql, statement.parameters(keys)).fetchall()


if __name__ == "__main__":
    raise SystemExit(main())
