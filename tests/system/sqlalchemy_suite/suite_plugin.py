"""A plugin of pytest for SQLAlchemy's suite of tests for dialects, in a process of its own.

The suite takes two things for granted that secateur does not have, and which are no subject of most of its tests: keys
that the server makes, and tables without keys. Python numbers the rows instead. It rolls back behind each test, and has
tables with foreign keys, so the engine is told to accept both.
"""

from __future__ import annotations

import itertools
from typing import Any

from sqlalchemy import Column, ColumnDefault, Integer, Table, event
from sqlalchemy.dialects import registry
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: F403

from secateur.sqlalchemy_dialect import SecateurDialect


class SuiteDialect(SecateurDialect):
    supports_statement_cache = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"leave_out_constraints": True, "skip_autocommit_rollback": True, **kwargs})


@event.listens_for(Table, "before_create")
def number_rows(table: Table, connection: Any, **_: Any) -> None:
    """Python numbers the rows of a table whose key the server was to make; one without a key gets one."""
    for column in table.columns:
        column.identity = None
    if not table.primary_key.columns and len(table.columns) == 1 and table.name == "t":  # values of one type
        table.append_column(Column("suite_key", Integer, primary_key=True))
    elif not table.primary_key.columns:
        next(iter(table.columns)).index = True  # the key of a table that has no other
    numbered = table.autoincrement_column
    if numbered is not None and (numbered.default is None or numbered.server_default is not None):
        numbered.server_default = None
        numbers = itertools.count(1)
        ColumnDefault(lambda: next(numbers))._set_parent(numbered)


for name in ("secateur", "secateur.secateur"):
    registry.register(name, "suite_plugin", "SuiteDialect")
