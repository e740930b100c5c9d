"""Tables that are created for rows: if these do not come, the table goes again, unless somebody has begun to use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from secateur.client.session import Session
from secateur.errors import Error
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import DropUnusedTable


def drop_unused(session: Session, table: TableDef) -> bool:
    """Drop a table that never had a row, of which no load waits at a member, and that has no index and no view.

    Another table of that name stays, too. Costs two round trips from the controller to all members.

    Args:
        session: Where.
        table: The table, as it was created.

    Returns:
        Whether the table is not there any more.

    Raises:
        AuthenticationError: The token of the session may not create tables either.
        Error: A member or the controller could not be reached; the table stays.
    """
    return session.ask(DropUnusedTable(table.name, table.table_id)).message.is_gone


@contextmanager
def dropped_on_failure(session: Session, table: TableDef) -> Iterator[None]:
    """Around the first load into a table that was created for it: if it fails, drop the table, unless it is used.

    A cluster that is out of reach is no reason to hide the first error; the table then stays, without rows.
    """
    try:
        yield
    except BaseException:
        before = session.work_for(None)  # also of a statement that was ended
        try:
            with suppress(Error):
                drop_unused(session, table)
        finally:
            session.work_for(before)
        raise
