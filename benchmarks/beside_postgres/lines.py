"""The lines of the table: what is asked, how, for which orders, and how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from benchmarks.beside_postgres.orders import customer, key_orders, row

__all__ = ["LINES", "Client", "Line"]

Way: TypeAlias = Literal[
    "query", "get", "get_many", "upsert", "upsert_unflushed", "upserts", "upserts_unflushed", "put"
]
Client: TypeAlias = Mapping[Way, Callable[[str, Any], Any]]
"""The ways that a system has: from a statement with ``?`` for its parameters, and these, to rows."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table.

    Attributes:
        name: As it is printed.
        way: How a client asks; a system that has no such way has no figure here.
        sql: The statement. What is asked without SQL has the one that does the same.
        argument: Of a call, from the orders that it is about and the number of the change that it makes.
        control: Another system in this line, or another line of secateur.
        bound: How many times as long as the control it may take.
        about: Of how many orders a call is; 0 where all calls are the same.
        per: What the time of a call is divided by.
        written: Whether they are orders that the benchmark writes.
    """

    name: str
    way: Way
    sql: str
    argument: Callable[[Sequence[int], int], Any]
    control: str
    bound: float
    about: int = 1
    per: int = 1
    written: bool = False

    @property
    def is_write(self) -> bool:
        return self.way not in ("query", "get", "get_many")

    def arguments(self, rows: int) -> list[Any]:
        """Of as many calls as there are keys among so many rows."""
        keys, change = key_orders(rows, written=self.written), LINES.index(self)
        calls = range(len(keys) if self.about else 1)
        return [self.argument([keys[(call + one) % len(keys)] for one in range(self.about)], change) for call in calls]


def _customers(about: Sequence[int], _change: int) -> tuple[str, ...]:
    return tuple(map(customer, about))


_KEY_SQL: Final = "SELECT * FROM orders WHERE customer_id = ? AND order_id = ?"
_ROWS_SQL: Final = "SELECT order_id, product, quantity, amount FROM orders WHERE customer_id = ?"
_TOTAL_SQL: Final = "SELECT count(*), sum(amount) FROM orders WHERE customer_id {}"
_GROUP_SQL: Final = "SELECT product, count(*), sum(amount) FROM orders {} GROUP BY product"
_JOIN_SQL: Final = "SELECT o.order_id, p.name, p.price FROM orders o JOIN product p ON p.id = o.product WHERE {}"
_UPSERT_SQL: Final = (
    "INSERT INTO orders VALUES (?, ?, ?, ?, ?) ON CONFLICT (customer_id, order_id)"
    " DO UPDATE SET product = excluded.product, quantity = excluded.quantity, amount = excluded.amount"
)
_SQL: Final = "PostgreSQL"
_BY_KEY: Final = Line("row by key", "query", _KEY_SQL, lambda about, _: (customer(about[0]), about[0]), _SQL, 0.95)
_OF_ONE: Final = Line("rows of a customer", "query", _ROWS_SQL, _customers, _SQL, 0.95)
_TOTAL: Final = Line("count and sum of a customer", "query", _TOTAL_SQL.format("= ?"), _customers, _SQL, 0.9)
_GET: Final = replace(_BY_KEY, name="get", way="get", control="Redis", bound=0.8)
_UPSERT: Final = Line(
    "upsert ON CONFLICT", "upsert", _UPSERT_SQL, lambda about, change: row(about[0], change), _SQL, 1.8, written=True
)
_UPSERTS: Final = replace(
    _UPSERT,
    name="100 upserts by executemany, a row",
    way="upserts",
    argument=lambda about, change: [row(order, change) for order in about],
    bound=1.2,
    about=100,
    per=100,
)

LINES: Final = (
    _BY_KEY,
    _OF_ONE,
    _TOTAL,
    Line("GROUP BY of a customer", "query", _GROUP_SQL.format("WHERE customer_id = ?"), _customers, _SQL, 0.95),
    Line("IN of 5 customers", "query", _TOTAL_SQL.format("IN (?, ?, ?, ?, ?)"), _customers, _TOTAL.name, 2.0, 5),
    Line("join with a replicated table", "query", _JOIN_SQL.format("o.customer_id = ?"), _customers, _SQL, 0.9),
    _GET,
    Line(
        "100 keys in one call, a key",
        "get_many",
        _KEY_SQL,
        lambda about, _: [(customer(one), one) for one in about],
        "Redis",
        0.5,
        100,
        100,
    ),
    # It was ahead nine times when the bars were set, and is to stay far ahead.
    Line("GROUP BY of all rows", "query", _GROUP_SQL.format(""), _customers, _SQL, 0.2, 0),
    _UPSERT,
    replace(_UPSERT, name="upsert ON CONFLICT, not flushed", way="upsert_unflushed"),
    replace(_UPSERT, name="put", way="put", control="Redis"),
    _UPSERTS,
    replace(_UPSERTS, name="100 upserts by executemany, not flushed, a row", way="upserts_unflushed"),
    *(replace(line, name=f"{line.name}, just written", written=True) for line in (_BY_KEY, _OF_ONE, _TOTAL, _GET)),
)
