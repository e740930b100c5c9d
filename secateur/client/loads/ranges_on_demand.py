"""Interval partitioning: a writer has the ranges made that its rows need, before it sends them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from secateur.client.session import Session
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import MakeRanges


def with_ranges_for(
    session: Session, table: TableDef, rows: pa.Table, fetch: Callable[[str], TableDef] | None = None
) -> TableDef:
    """The table as it is once it has a range for each of some rows; the same object when it has them all.

    Writers may ask for the same ranges at once, they are made once. Ranges stay, also when the rows that they were made
    for never arrive.

    Args:
        session: Where.
        table: Its definition.
        rows: In the table's own schema. Rows for which EVERY makes no range are left for the partition function to
            refuse.
        fetch: Fetches the table by its name once ranges were made; None to fetch it with all its ranges.

    Raises:
        LimitExceededError: The rows need more ranges than are made at once, or than a table may have.

    Cost: nothing without EVERY; 50 ns a row with it; two round trips to the controller when ranges are missing.
    """
    cells = table.scheme.missing_cells(rows)
    if not cells:
        return table
    session.ask(MakeRanges(table.name, table.table_id, sorted(cells)))
    return (fetch or session.table)(table.name)
