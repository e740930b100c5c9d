"""The tables and views of a cluster, with the statements that make them, and rows of queries as they come."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from secateur.client.dbapi.rows import StreamedRows, as_table
from secateur.client.execution.select import RunOptions, run_select
from secateur.client.execution.statement_call import StatementCall
from secateur.client.session import Session
from secateur.errors import InterfaceError
from secateur.protocol.statements import SelectStatement

_RELATIONS: Final = "SELECT table_name, table_type, sql, partitioning FROM secateur.tables ORDER BY table_id"
_RANGES: Final = (
    "SELECT table_name, partition, range FROM secateur.partitions WHERE range IS NOT NULL ORDER BY partition"
)
_TYPES: Final = "SELECT type_name, sql FROM secateur.types ORDER BY type_name"
_TABLE: Final = "BASE TABLE"
_VIEW: Final = "VIEW"


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, external table or view.

    Attributes:
        name: Its name.
        kind: Its kind, as ``secateur.tables`` says it.
        sql: The statement that makes it; None for an external table that no statement has made.
        partitioning: The text after PARTITION BY, for tables.
    """

    name: str
    kind: str
    sql: str | None
    partitioning: str | None

    @property
    def is_table(self) -> bool:
        """Whether members keep its rows."""
        return self.kind == _TABLE

    @property
    def is_view(self) -> bool:
        return self.kind == _VIEW

    @property
    def word(self) -> str:
        """The word for it in DROP."""
        return _VIEW if self.is_view else "TABLE"


def relations_of(session: Session) -> list[Relation]:
    """All relations, in the order in which they were made."""
    return [Relation(*row) for row in _rows(session, _RELATIONS)]


def types_of(session: Session) -> list[tuple[str, str]]:
    """The named types: the name of each, and the statement that makes it."""
    return [(name, sql) for name, sql in _rows(session, _TYPES)]


def ranges_of(session: Session) -> dict[str, list[tuple[int, str]]]:
    """The partitions of tables with ranges, each with its range, by the name of the table."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name, partition, text in _rows(session, _RANGES):
        found.setdefault(name, []).append((partition, text))
    return found


def tables_of(session: Session, sql: str) -> Generator[pa.Table]:
    """The rows of a query, as they come; close the iterator to leave the rest."""
    prepared, cached = session.prepare(sql, [])
    if not isinstance(prepared, SelectStatement):
        raise InterfaceError(f"{sql!r} should be a query")
    call = StatementCall(session, sql, [], prepared, cached, time.perf_counter(), time.time())
    selected = run_select(call, RunOptions.ROWS_IN_PARTS)
    first = as_table(selected.result, selected.columns)
    if selected.rest is None:
        yield first
        return
    rows = StreamedRows(first, selected.rest, selected.columns)
    try:
        yield from rows.tables()
    finally:
        rows.close()


def _rows(session: Session, sql: str) -> Iterator[tuple[Any, ...]]:
    for table in tables_of(session, sql):
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)
