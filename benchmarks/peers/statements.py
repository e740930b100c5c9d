"""The statements of the suite: their text, and what each of them is bound to.

The texts are DuckDB's, which answers them as the reference; an adapter changes what its peer writes in another way.
This file needs nothing but Python, because every peer's environment reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["COLUMNS", "GET", "KEYS_OF_IN", "STATEMENTS", "UPSERTS", "Statement", "statement_named", "with_dates"]

KEYS_OF_IN: Final = 5
COLUMNS: Final = ("customer_id", "order_id", "status", "ordered_on", "quantity", "price")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement.

    Attributes:
        name: How the report calls it, and how peers are asked for it.
        sql: Its text.
        bound: What its values are: ``order`` a customer and one of its orders, ``customer``, ``customers`` five of
            them, ``days`` a customer and two days, ``row`` a whole row, or ``nothing``.
        writes: Whether it changes rows.
    """

    name: str
    sql: str
    bound: str
    writes: bool = False


GET: Final = Statement(
    "get without SQL",
    "SELECT customer_id, order_id, status, ordered_on, quantity, price FROM orders WHERE customer_id = ?"
    " AND order_id = ?",
    "order",
)

STATEMENTS: Final = (
    Statement(
        "row by key",
        "SELECT status, ordered_on, quantity, price FROM orders WHERE customer_id = ? AND order_id = ?",
        "order",
    ),
    Statement(
        "rows of a customer",
        "SELECT order_id, status, ordered_on, quantity, price FROM orders WHERE customer_id = ?",
        "customer",
    ),
    Statement(
        "count and sum of a customer",
        "SELECT count(*), sum(quantity) FROM orders WHERE customer_id = ?",
        "customer",
    ),
    Statement(
        "GROUP BY of a customer",
        "SELECT status, count(*), sum(price) FROM orders WHERE customer_id = ? GROUP BY status",
        "customer",
    ),
    Statement(
        "key and date range",
        "SELECT count(*), sum(price) FROM orders WHERE customer_id = ? AND ordered_on BETWEEN ? AND ?",
        "days",
    ),
    Statement(
        "IN of 5 customers",
        "SELECT count(*), sum(quantity) FROM orders WHERE customer_id IN (?, ?, ?, ?, ?)",
        "customers",
    ),
    Statement(
        "join with a replicated table",
        "SELECT p.title, count(*), sum(o.price) FROM orders o JOIN product p ON o.quantity = p.product_id"
        " WHERE o.customer_id = ? GROUP BY p.title",
        "customer",
    ),
    Statement(
        "join of two co-located tables",
        "SELECT c.name, count(*), sum(o.price) FROM customers c JOIN orders o ON c.customer_id = o.customer_id"
        " WHERE c.customer_id = ? GROUP BY c.name",
        "customer",
    ),
    Statement(
        "GROUP BY of everything",
        "SELECT status, count(*), sum(quantity) FROM orders GROUP BY status",
        "nothing",
    ),
    GET,
    Statement(
        "upsert by INSERT OR REPLACE",
        "INSERT OR REPLACE INTO orders (customer_id, order_id, status, ordered_on, quantity, price)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        "row",
        writes=True,
    ),
    Statement(
        "upsert by ON CONFLICT DO UPDATE",
        "INSERT INTO orders (customer_id, order_id, status, ordered_on, quantity, price) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (customer_id, order_id) DO UPDATE SET status = excluded.status, ordered_on = excluded.ordered_on,"
        " quantity = excluded.quantity, price = excluded.price",
        "row",
        writes=True,
    ),
)

UPSERTS: Final = tuple(statement.name for statement in STATEMENTS if statement.writes)


def statement_named(name: str) -> Statement:
    """The statement of that name.

    Raises:
        ValueError: There is none.
    """
    for statement in STATEMENTS:
        if statement.name == name:
            return statement
    raise ValueError(f"there is no statement {name!r}; there are {[statement.name for statement in STATEMENTS]}")


def with_dates(statement: Statement, values: Sequence[Any], date_of: Callable[[str], Any]) -> list[Any]:
    """Values whose days, which travel as ISO text, are what ``date_of`` makes of them."""
    positions = {"days": (1, 2), "row": (3,)}.get(statement.bound, ())
    return [date_of(value) if position in positions else value for position, value in enumerate(values)]
