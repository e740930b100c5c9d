"""Encodes tables, which may have very many ranges."""

from __future__ import annotations

import asyncio

from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.protocol.codec import encode


async def encoded_table(table: TableDef) -> bytes:
    """A table as an encoded :class:`~secateur.partitioning.tables.table.TableDefinition`.

    With many ranges that takes its time, which the event loop does not have.
    """
    if table.scheme.reference is None:
        return _encoded(table)
    return await asyncio.to_thread(_encoded, table)


def _encoded(table: TableDef) -> bytes:
    return encode(TableDefinition.of(table))
