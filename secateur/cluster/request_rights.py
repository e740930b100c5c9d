"""Checks requests whose token is for some tables only; the controller and the members make the same checks."""

from __future__ import annotations

from collections.abc import Sequence

from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import ProtocolError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import GetRanges
from secateur.protocol.table_rights import TableRights


def check_change(plan: SelectPlan, rights: TableRights) -> None:
    """Refuse a change that these rights do not cover: of the first table of its query, which may read others.

    Raises:
        AuthenticationError: They do not.
        ProtocolError: The plan reads no table, so it is not that of a change.
    """
    if not plan.scans:
        raise ProtocolError(f"plan {plan.plan_id} is not the plan of a change: it reads no table")
    rights.check_write(plan.scans[0].table)
    rights.check_reads(plan.tables_read)


def check_ranges(tables: Sequence[TableDef], asked: GetRanges, rights: TableRights) -> None:
    """Refuse the ranges of a table that these rights do not cover.

    Raises:
        AuthenticationError: They do not.
    """
    for table in tables:
        if table.scheme.reference == asked.reference:
            rights.check_reads((table.name.casefold(),))
