"""Checks rows that a principal under row policies writes, before they are stored: whoever has made them.

A plan has the conditions on the rows that a change finds. What it writes is compared with the policies here, at the
primary, as are rows that come without a plan.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from secateur.duckdb_expressions import RowChecks
from secateur.errors import PolicyError
from secateur.partitioning.tables.table import CheckDef, Column, TableDef
from secateur.partitioning.types.sql_text import text_literal
from secateur.protocol.access import NO_ROW, PolicyFilter, Rights, WriteKind
from secateur.protocol.tokens import GrantedToken
from secateur.storage.delta import FewRows
from secateur.wire import ShortTable

_KEPT_MAX: Final = 1000
_Check = Callable[[pa.Table | FewRows | ShortTable], None]
"""A short table has all columns, or for a DELETE those of the key."""


class RowGuards:
    """The checks, compiled. Lives on the member's event loop.

    Args:
        rights_of: What the bearer of a token may do, for whom the controller asks.

    Attributes:
        rights_of: As given.
    """

    def __init__(self, rights_of: Callable[[GrantedToken | None], Rights | None]) -> None:
        self.rights_of = rights_of
        self._kept: OrderedDict[tuple[int, int, bool, PolicyFilter, tuple[str | None, ...]], _Check] = OrderedDict()

    def of(self, rights: Rights | None, table: TableDef, kind: WriteKind) -> _Check | None:
        """The check of rows that are written to a table; None where nothing is to be checked.

        Args:
            rights: Those of whoever writes.
            table: The table.
            kind: What is done with the rows.

        Raises:
            PolicyError: Rows that policies hide might be replaced, so that nobody under these policies may do it.
        """
        guards = None if rights is None else rights.guards.get(table.origin)
        if rights is None or guards is None:
            return None
        hidden = guards.replaced_by(kind) - set(table.primary_key)
        if hidden:
            raise PolicyError(
                f"table {table.name}: a row that policies hide could be replaced or deleted by its key, since they read"
                f" {', '.join(sorted(hidden))}, which is not of the key: use UPDATE, DELETE or INSERT",
                table=table.name,
            )
        guard = guards.writes[kind]
        values = tuple(map(rights.claim, guard.condition.claims))
        are_keys = kind is WriteKind.DELETE
        known = table.table_id, table.version, are_keys, guard, values
        check = self._kept.get(known)
        if check is None:
            columns = [table.column(name) for name in table.primary_key] if are_keys else table.columns
            check = self._kept[known] = _compiled(table, columns, guard, values)
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return check

    def check(
        self,
        rights: Rights | None,
        table: TableDef,
        kind: WriteKind,
        rows: pa.Table | ShortTable,
    ) -> None:
        """Check rows of a table, or keys to delete.

        Raises:
            PolicyError: One of them may not be written; nothing was done.
        """
        check = self.of(rights, table, kind)
        if check is not None:
            check(rows)


def _compiled(table: TableDef, columns: Sequence[Column], guard: PolicyFilter, values: Sequence[str | None]) -> _Check:
    if guard.condition == NO_ROW:
        return lambda rows: _refuse(table, guard) if rows.num_rows else None
    compared = guard.condition.compared_text(table)
    if compared is None:
        return _checked_by_condition(table, columns, guard, values)
    (wanted,) = values
    place = [column.name for column in columns].index(compared)

    def check(rows: pa.Table | FewRows | ShortTable) -> None:
        if wanted is None:
            passes = False
        elif isinstance(rows, pa.Table):
            passes = pc.all(pc.equal(rows.column(compared), wanted), skip_nulls=False).as_py() is True
        else:
            given = rows.columns[place] if place < len(rows.columns) else (None,)
            passes = all(value == wanted for value in given)
        if not passes and rows.num_rows:
            _refuse(table, guard)

    return check


def _checked_by_condition(
    table: TableDef, columns: Sequence[Column], guard: PolicyFilter, values: Sequence[str | None]
) -> _Check:
    general, fields = _GuardedRows(table, guard, values), [(column.name, column.type) for column in columns]

    def check(rows: pa.Table | FewRows | ShortTable) -> None:
        if isinstance(rows, ShortTable):
            rows = rows.to_table(fields)
        general.check(rows.to_table() if isinstance(rows, FewRows) else rows)

    return check


def _refuse(table: TableDef, guard: PolicyFilter) -> NoReturn:
    which = ", ".join(guard.policies) or "none of which lets this principal write"
    raise PolicyError(
        f"table {table.name}: a row is not one that the row policies of the table ({which}) let this principal write;"
        " nothing was changed",
        table=table.name,
    )


class _GuardedRows(RowChecks):
    """The condition of policies as a check, which a row fails for which it is not TRUE."""

    def __init__(self, table: TableDef, guard: PolicyFilter, values: Sequence[str | None]) -> None:
        given = dict(zip(guard.condition.claims, values, strict=True))
        condition = guard.condition.sql(lambda claim: _literal(given[claim]))
        columns = guard.condition.columns or table.primary_key[:1]
        check = CheckDef(", ".join(guard.policies), f"({condition}) IS TRUE", columns)
        super().__init__(replace(table, checks=(check,)))
        self._guard = guard

    def _failed(self, check: CheckDef, row: pa.Table) -> Any:
        _refuse(self._table, self._guard)


def _literal(value: str | None) -> str:
    return "NULL" if value is None else text_literal(value)
