"""``SHOW name`` and ``SHOW ALL``: the settings of the session, which only the client knows."""

from __future__ import annotations

import pyarrow as pa

from secateur.client.session import Session
from secateur.protocol.statements import ResultColumn, ShowSettings


def shown_settings(session: Session, statement: ShowSettings) -> tuple[pa.Table, tuple[ResultColumn, ...]]:
    """Return the result of SHOW, all VARCHAR.

    It is one row with the value under the setting's name, or a row of (name, value, default, description) for each.
    """
    values = {**session.settings(), "statement_timeout": session.statement_timeout.text}
    defaults = {"pruning": session.cluster_pruning.value}
    rows = [
        (name, values.get(name, default), defaults.get(name, default), description)
        for name, default, description in statement.settings
    ]
    found = {name: [value] for name, value, _, _ in rows}
    if not statement.is_single:
        found = dict(zip(("name", "value", "default", "description"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table({name: pa.array(column, pa.string()) for name, column in found.items()})
    return table, tuple(ResultColumn(name, "VARCHAR") for name in table.schema.names)
