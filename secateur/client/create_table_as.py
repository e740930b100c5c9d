"""The rows of ``CREATE TABLE ... AS``: the controller has made the table, this process brings them. If they do not arrive, the table goes again."""

from __future__ import annotations

from contextlib import suppress

from secateur.client.insert import insert_select
from secateur.client.session import Session
from secateur.client.statement import CreatedTable, InsertSelect
from secateur.errors import Error, InterfaceError

__all__ = ["fill_table"]


def fill_table(session: Session, created: CreatedTable) -> int:
    """Insert the rows of the query; returns their number.

    Raises:
        DuplicateKeyError, NullKeyError: The key does not tell the rows of the query apart; there is no table then.
        Error: As :func:`~secateur.client.insert.insert_select`; there is no table then.
    """
    if created.insert is None:
        return 0
    try:
        prepared = session.prepare_anew(created.insert, [])
        if not isinstance(prepared, InsertSelect):
            raise InterfaceError(f"{created.insert!r} should be an INSERT of a query")
        return insert_select(session, created.insert, [], prepared).rows
    except BaseException:
        name = created.name.replace('"', '""')
        with suppress(Error):
            session.prepare_anew(f'DROP TABLE IF EXISTS "{name}"', [])
        raise
