"""Plans statements that change rows: from their parsed form to what members and clients execute.

A change takes the shortest correct way: VALUES become a load of rows, a query becomes a load of its rows, changes of
single rows are made by their owners, and everything else becomes row changes that one member computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from functools import cache
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from secateur.engine.sql.keyed_change import KeyedChange, ReturnedRow
from secateur.engine.sql.row_changes import RowAction
from secateur.errors import Error
from secateur.partitioning.tables.table import TableDef
from secateur.planner.dml.composed import Composed
from secateur.planner.dml.insert import Insert, InsertValues, ValuesRows
from secateur.planner.dml.insert_row_changes import InsertedRows, PlanQuery
from secateur.planner.dml.merge import Merge
from secateur.planner.dml.row_changes import Change
from secateur.planner.dml.searched_change import SearchedChange, check_columns, check_reading, is_local
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.positions import syntax_error
from secateur.protocol.access import TableGuard, WriteKind
from secateur.protocol.changes import ROW_CHANGES
from secateur.protocol.statements import (
    ChangeKind,
    ChangeStatement,
    CoordinatedChange,
    InsertMode,
    InsertSelect,
    Statement,
    TextualParameters,
)
from secateur.protocol.tokens import Privilege

_EVERY_ROW: Final = "every row is deleted: add WHERE to delete some of them"


@dataclass(frozen=True, slots=True)
class ChangePlanner:
    """Plans one statement.

    Attributes:
        plan_query: Plans a query.
        plan_with_action: Plans one that has a parameter more, the action of a row.
        plan_source: Plans a query whose rows a client will fetch, in steps where that prunes more.
        guards: The row policies on a table; None without any.
        may_wait: Whether a query that few executions need may be planned when one does; till then it keeps
            ``plan_query``.
    """

    plan_query: PlanQuery
    plan_with_action: PlanQuery
    plan_source: PlanQuery
    guards: Callable[[TableDef], TableGuard | None]
    may_wait: bool

    def plan(self, change: Insert | Merge | SearchedChange, textual: TextualParameters) -> Statement:
        """Plan a statement.

        Raises:
            Error: The statement is invalid; with the position.
        """
        planned: Statement
        match change:
            case Insert():
                planned = self._insert(change)
            case Merge():
                planned = self._merge(change)
            case SearchedChange():
                planned = self._searched(change)
        if isinstance(planned, InsertValues):
            return with_fields(planned, textual=textual)
        return planned.with_queries(lambda query: with_fields(query, textual=textual)) if textual else planned

    def _searched(self, change: SearchedChange) -> ChangeStatement[PlannedSelect] | CoordinatedChange[PlannedSelect]:
        in_place = None
        if change.stays:
            query, columns = change.in_partitions()
            check_reading(change, query)
            select = query.plan(self.plan_query)
            if change.action is RowAction.UPDATE:
                check_columns(change, columns, select)
            elif change.where is None:
                scans = tuple(replace(scan, reason=scan.reason and _EVERY_ROW) for scan in select.plan.scans)
                select = with_fields(select, plan=replace(select.plan, scans=scans, plan_id="").named())
            if is_local(select):
                in_place = ChangeStatement(change.table, change.kind, _needing(select, change.privileges))
                if change.returning is None:
                    return in_place
        changes = change.row_changes()
        check_reading(change, changes)
        planned = self._coordinated(change, changes)
        if in_place is not None:
            plan, deletes = in_place.select.plan, in_place.kind is ChangeKind.DELETE
            if KeyedChange.of(plan, in_place.table, deletes=deletes) is not None:
                return _returning_row(planned, in_place.select, in_place.kind)
        return planned

    def _merge(self, merge: Merge) -> CoordinatedChange[PlannedSelect]:
        columns = merge.source_query().plan(self.plan_query).plan.columns if merge.needs_columns else ()
        return self._coordinated(merge, merge.row_changes([name for name, _ in columns]))

    def _insert(self, insert: Insert) -> InsertValues | InsertSelect[PlannedSelect] | CoordinatedChange[PlannedSelect]:
        if isinstance(insert.source, ValuesRows):
            assert insert.columns is not None
            if self._is_load(insert) and insert.ctes is None:
                if not insert.is_computed:
                    return insert.values()
                select = insert.query().plan(self.plan_source)
                if not _needs_one_moment(select, insert):
                    return InsertSelect(insert.table, insert.columns, select, insert.mode)
            change = self._values_changed(insert, insert.source, insert.columns)
            # A statement that reads other rows would read them from before the first change, not from before its own.
            if len(change.select.plan.scans) != 1:
                return change
            return replace(change, batch=insert.batch(is_row_compiled=change.select.plan.upsert is not None))
        select = insert.query().plan(self.plan_source)
        names = [name for name, _ in select.plan.columns]
        table, columns = insert.table, insert.columns
        if columns is None:
            columns = tuple(table.visible_column(name).name for name in names)
        if len(columns) != len(names):
            raise syntax_error(
                f"the query has {len(names)} columns for the {len(columns)} columns {', '.join(columns)}",
                insert.sql,
                insert.source.start,
            )
        is_partial = insert.mode is InsertMode.UPSERT and len(columns) < len(table.columns)
        if not self._is_load(insert) or is_partial or _needs_one_moment(select, insert):
            return self._coordinated(insert, self._inserted(insert, columns).changes())
        if [str(table.column(name).type) for name in columns] != [text for _, text in select.plan.columns]:
            select = insert.cast_query(columns).plan(self.plan_source)
        return InsertSelect(table, columns, select, insert.mode)

    def _values_changed(
        self, insert: Insert, values: ValuesRows, columns: Sequence[str]
    ) -> CoordinatedChange[PlannedSelect]:
        """Plan an INSERT of VALUES that changes existing rows.

        Where its form without DuckDB has what nearly all executions need, the query for its row is planned later.
        """
        rows = self._inserted(insert, columns)
        changes, stays = rows.changes(), rows.keeps_plain_keys
        is_one_row = stays and len(values.values) == 1 and not insert.table.replicated
        if insert.mode is InsertMode.UPSERT:
            is_one_row = is_one_row and not self._may_replace_hidden_row(insert)
        found = rows.upsert(self.plan_query) if is_one_row else None
        if found is None:
            changes_found = insert.mode is not InsertMode.APPEND and not rows.asks_owners
            is_single_partition = stays and changes_found and insert.returning is None
            return self._coordinated(insert, changes, is_single_partition=is_single_partition)
        upsert, uses = found
        if insert.returning is not None:
            select = rows.keys().plan(self.plan_query)
            plan = replace(select.plan, upsert=upsert, is_upsert_only=True, empty=None)
            row = _needing(with_fields(select, plan=plan, type_uses=select.type_uses | uses), insert.privileges)
            return _returning_row(self._coordinated(insert, changes), row, ROW_CHANGES)

        @cache
        def whole() -> PlannedSelect:
            select = self._coordinated(insert, changes).select
            return with_fields(select, plan=replace(select.plan, upsert=upsert, plan_id="").named())

        try:
            keys = rows.keys().plan(self.plan_query) if self.may_wait else None
        except Error:  # the query for the row changes says what is wrong, in the user's words
            keys = None
        if keys is None:
            select = whole()
        else:
            # The plan that is made later is the same for all statements with the id of this one.
            origin = blake2b((keys.plan.origin + changes.text).encode(), digest_size=12).hexdigest()
            plan = replace(keys.plan, upsert=upsert, is_upsert_only=True, empty=None, origin=origin)
            keys = with_fields(keys, plan=plan, type_uses=keys.type_uses | uses, plan_whole=whole)
            select = _needing(keys, insert.privileges)
        return CoordinatedChange(
            insert.table, select, insert.duplicate_match, is_single_partition=True, privileges=insert.privileges
        )

    def _coordinated(
        self, change: Change, changes: Composed, *, is_single_partition: bool = False
    ) -> CoordinatedChange[PlannedSelect]:
        """Plan a change that one member computes.

        Args:
            change: The statement.
            changes: The query for its row changes.
            is_single_partition: Whether the primary of a partition can execute it for a key of that partition, if that
                is all that it reads.
        """
        returning, names_action = None, False
        if change.returning is not None:
            names_action = change.returning.names_action
            returning = change.returning.query.plan(self.plan_with_action if names_action else self.plan_query)
        select = _needing(changes.plan(self.plan_query), change.privileges)
        return CoordinatedChange(
            change.table,
            select,
            change.duplicate_match,
            returning,
            names_action,
            is_single_partition
            and len(select.plan.scans) == 1
            and not change.table.replicated
            and not self._may_replace_hidden_row(change),
            privileges=change.privileges,
        )

    def _inserted(self, insert: Insert, columns: Sequence[str]) -> InsertedRows:
        is_guarded = self.guards(insert.table) is not None
        return InsertedRows(insert, columns, asks_owners=is_guarded and insert.mode is InsertMode.IGNORE)

    def _is_load(self, insert: Insert) -> bool:
        return insert.is_load and (insert.mode is not InsertMode.UPSERT or not self._may_replace_hidden_row(insert))

    def _may_replace_hidden_row(self, change: Change) -> bool:
        """Whether only a query says if a row that is there may be changed: its key, and what is given, do not.

        The row may be one that policies hide: then it is looked for, and is an error.
        """
        table, guards = change.table, self.guards(change.table)
        if guards is None:
            return False
        of_insert, of_update = guards.writes[WriteKind.INSERT], guards.writes[WriteKind.UPDATE]
        is_by_key = guards.replaced_by(WriteKind.UPSERT) <= set(table.primary_key)
        return not is_by_key or of_insert.condition != of_update.condition


def _returning_row(
    change: CoordinatedChange[PlannedSelect], row: PlannedSelect, operation: str
) -> CoordinatedChange[PlannedSelect]:
    """The change of one row with RETURNING, with the query for the primary of its key where that computes all of it."""
    returning = change.returning
    if (
        returning is None
        or change.names_action
        or change.table.replicated
        or returning.plan.parameter_count != row.plan.parameter_count
        or returning.plan.reads_clock != row.plan.reads_clock
        or ReturnedRow.of(returning.plan, change.table) is None
    ):
        return change
    return replace(change, row=row, row_operation=operation)


def _needing(select: PlannedSelect, privileges: tuple[Privilege, ...]) -> PlannedSelect:
    """The query of a change, whose plan says what it needs."""
    return with_fields(select, plan=replace(select.plan, privileges=privileges, plan_id="").named())


def _needs_one_moment(select: PlannedSelect, insert: Insert) -> bool:
    """Whether no other write may come between the reading of a query and the writing of its rows.

    Rows that a client fetches and then sends to their owners may be outdated when they arrive. Rows that replace
    others, or depend on those of the same table, could then undo writes made in between; new rows of other tables are
    only late.
    """
    plan = select.plan
    if any(scan.table_id == insert.table.table_id for scan in plan.scans):
        return True
    return insert.mode is InsertMode.UPSERT and bool(plan.scans) and not plan.reads_fetched_rows
