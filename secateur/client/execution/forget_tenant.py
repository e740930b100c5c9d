"""FORGET TENANT: deletes the rows of one tenant from every table whose row policies know it, and says what is left.

Each table is changed by one DELETE, which is pruned as any other. What members do not reach is said in the receipt:
copies of the rows in logs, feeds and open results go by themselves, at a time that is named; backups are in folders
that the cluster does not know.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from secateur.client.execution.change import run_change
from secateur.client.execution.execute import planned
from secateur.client.execution.select import run_query
from secateur.client.session import Session
from secateur.errors import InternalError
from secateur.partitioning.types.arrow_form import array_of
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol import statements

COLUMNS: Final = (
    statements.ResultColumn("table_name", "VARCHAR"),
    statements.ResultColumn("column_name", "VARCHAR"),
    statements.ResultColumn("rows", "BIGINT"),
    statements.ResultColumn("partitions", "BIGINT"),
    statements.ResultColumn("members", "BIGINT"),
    statements.ResultColumn("rows_left", "BIGINT"),
    statements.ResultColumn("held_elsewhere", "VARCHAR"),
)
"""The receipt: a row for each table."""
_DATA_DIRECTORY: Final = "SELECT count(*) FROM secateur.settings WHERE name = 'data_directory' AND value <> ''"
_KINDS: Final = {"VARCHAR": pa.string(), "BIGINT": pa.int64()}
_BACKUPS: Final = "backups that were made before hold them: the cluster does not know their folders"
_IN_LOGS: Final = "the logs of its members hold them until their next checkpoints, when they have grown by 256 MB"
_IN_FEED: Final = "its change feed holds them until newer changes have taken their place"


def forget_tenant(session: Session, asked: statements.ForgetTenant) -> pa.Table:
    """Delete the rows of a tenant; returns the receipt, with the columns :data:`COLUMNS`.

    Tables are changed one after the other. After an error, those before are without the rows, and the statement may be
    repeated.

    Raises:
        Error: A table could not be changed.
    """
    ((on_disk,),) = run_query(session, _DATA_DIRECTORY).rows.take_all()
    receipt = []
    for target in asked.targets:
        where = f"FROM {quoted(target.table)} WHERE {quoted(target.column)} = ?"
        rows, partitions, members = _deleted(session, f"DELETE {where}", asked.value)
        ((left,),) = run_query(session, f"SELECT count(*) {where}", [asked.value]).rows.take_all()
        held = [_BACKUPS, *([_IN_LOGS] if on_disk else []), *([_IN_FEED] if target.has_feed else [])]
        receipt.append((target.table, target.column, rows, partitions, members, left, "; ".join(held)))
    columns = zip(COLUMNS, zip(*receipt, strict=True), strict=True)
    return pa.table(
        {column.name: array_of(values, _KINDS[column.type], name=column.name) for column, values in columns}
    )


def _deleted(session: Session, sql: str, value: str) -> tuple[int, int, int]:
    """Execute a DELETE; the rows that are gone, and how many partitions and members that concerned."""
    call = planned(session, sql, [value])
    if not isinstance(call.statement, (statements.ChangeStatement, statements.CoordinatedChange)):
        raise InternalError(f"{sql} was planned as {type(call.statement).__name__}")
    changed = run_change(call.of(call.statement))
    return changed.rows, changed.stats.partitions_read, changed.stats.members_touched
