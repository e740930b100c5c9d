"""The table of the serving benchmark: its DDL, its rows, and the keys that are asked for."""

from __future__ import annotations

from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa

__all__ = ["DDL", "ORDERS_PER_CUSTOMER", "make_orders", "random_keys"]

ORDERS_PER_CUSTOMER: Final = 100
_SEED: Final = 20130101
_STATUSES: Final = ("delivered", "open", "returned", "shipped")

DDL: Final = """
CREATE TABLE orders (
    customer_id BIGINT, order_id BIGINT, status VARCHAR NOT NULL, day DATE NOT NULL, quantity INTEGER NOT NULL,
    price DOUBLE NOT NULL,
    PRIMARY KEY (customer_id, order_id)
) PARTITION BY HASH (customer_id) PARTITIONS 271
"""


def make_orders(rows: int) -> pa.Table:
    """Rows in random order, the same ones for the same number.

    Args:
        rows: How many; order ``i`` belongs to customer ``i // 100``.
    """
    random = np.random.default_rng(_SEED)
    order = random.permutation(rows)
    first_day = date(2024, 1, 1).toordinal() - date(1970, 1, 1).toordinal()
    return pa.table(
        {
            "customer_id": pa.array(order // ORDERS_PER_CUSTOMER),
            "order_id": pa.array(order),
            "status": (
                pa.DictionaryArray.from_arrays(random.integers(0, len(_STATUSES), rows, dtype=np.int8), _STATUSES).cast(
                    pa.string()
                )
            ),
            "day": pa.array(random.integers(first_day, first_day + 365, rows, dtype=np.int32)).cast(pa.date32()),
            "quantity": pa.array(random.integers(1, 10, rows, dtype=np.int32)),
            # Quarters: their sums are exact in any order, so answers can be compared without a tolerance.
            "price": pa.array(random.integers(4, 4000, rows) / 4),
        }
    )


def random_keys(rows: int, count: int, seed: int) -> list[tuple[int, int]]:
    """Pairs of customer and order that exist."""
    orders = np.random.default_rng(seed).integers(0, rows, count).tolist()
    return [(order // ORDERS_PER_CUSTOMER, order) for order in orders]
