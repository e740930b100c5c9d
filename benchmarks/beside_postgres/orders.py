"""The rows that all systems hold."""

from __future__ import annotations

import random
from typing import Any, Final

import pyarrow as pa

__all__ = ["ORDERS_SQL", "PRODUCT_SQL", "customer", "key_orders", "order_table", "product_table", "row"]

_PER_CUSTOMER: Final = 10
_KEYS: Final = 1000
_PRODUCTS: Final = 1000
_SEED: Final = 20130101

ORDERS_SQL: Final = (
    "CREATE TABLE orders (customer_id VARCHAR, order_id BIGINT, product BIGINT, quantity INTEGER,"
    " amount DOUBLE PRECISION, PRIMARY KEY (customer_id, order_id))"
)
PRODUCT_SQL: Final = "CREATE TABLE product (id BIGINT PRIMARY KEY, name VARCHAR, price DOUBLE PRECISION)"


def customer(order: int) -> str:
    """Who has ordered this."""
    return f"C{order // _PER_CUSTOMER}"


def row(order: int, change: int = 0) -> tuple[str, int, int, int, float]:
    """Customer, order, product, quantity and amount, as loaded, or as the change of this number writes them."""
    product = (order * 7919 + order // _PER_CUSTOMER * 31) % _PRODUCTS
    # Quarters: their sums are exact in any order, so answers are compared without a tolerance.
    return customer(order), order, product, order % 9 + 1, order * 37 % 4000 / 4 + 1000 * change


def key_orders(rows: int, *, written: bool) -> list[int]:
    """Some orders, each of another customer, the same ones each time; no customer is both written and not."""
    pairs = rows // (2 * _PER_CUSTOMER)
    drawn = random.Random(_SEED + written).sample(range(pairs), min(_KEYS, pairs))
    return [(2 * pair + written) * _PER_CUSTOMER + pair % _PER_CUSTOMER for pair in drawn]


def order_table(rows: int) -> pa.Table:
    """All orders."""
    columns: list[Any] = [pa.array(column) for column in zip(*map(row, range(rows)), strict=True)]
    columns[3] = columns[3].cast(pa.int32())
    return pa.table(columns, ["customer_id", "order_id", "product", "quantity", "amount"])


def product_table() -> pa.Table:
    """All products."""
    numbers = range(_PRODUCTS)
    columns = [pa.array(numbers), [f"product {number}" for number in numbers], [number / 4 for number in numbers]]
    return pa.table(columns, ["id", "name", "price"])
