"""Reads a statement of any kind: its first word says which parser it has, and which queries are planned for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from msgspec.structs import replace as with_fields
from sqlglot import Token

from secateur.errors import NotSupportedError, ParameterError
from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.catalog_view import PlanningCatalog
from secateur.planner.binding.dialect_check import check_dialect
from secateur.planner.binding.functions import refuse_calls_of
from secateur.planner.binding.refused import STATEMENTS as REFUSED_STATEMENTS
from secateur.planner.binding.statements_as_queries import as_queries
from secateur.planner.cached_plan import Params, arrange, with_values
from secateur.planner.cost_model import CostModel
from secateur.planner.ddl.alter_table import read_alter_table
from secateur.planner.ddl.create_external_table import at_create_external_table, read_create_external_table
from secateur.planner.ddl.create_index import read_create_index, read_drop_index
from secateur.planner.ddl.create_table import read_create_table, read_drop_table
from secateur.planner.ddl.create_table_as import is_create_table_as, read_create_table_as
from secateur.planner.dml.backup import read_backup, read_restore
from secateur.planner.dml.copy import read_copy
from secateur.planner.dml.insert import InsertValues, read_insert
from secateur.planner.dml.merge import read_merge
from secateur.planner.dml.searched_change import read_searched_change
from secateur.planner.dml.with_clause import split_with
from secateur.planner.explain.read_explain import read_explain
from secateur.planner.query_planner import QueryPlanner
from secateur.planner.select import BoundSelect
from secateur.planner.set_option import is_show_settings, read_reset, read_set, read_show_settings
from secateur.planner.statement import (
    CreateIndex,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    ExplainStatement,
)
from secateur.planner.system.kill import read_kill
from secateur.planner.system.maintenance import read_maintenance
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.views.create_view import read_create_view, read_drop_view
from secateur.protocol.clocks import CLOCKS
from secateur.protocol.statements import ChangeStatement, CoordinatedChange, CopyFrom, CopyTo, InsertSelect, Statement

_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})

_READ_HERE: Final = (
    *(InsertSelect, ChangeStatement, CoordinatedChange, CopyFrom, CopyTo),
    *(CreateView, DropView, DropTable, CreateIndex, DropIndex),
)
"""Statements of the dialect that parsers of our own read.

CREATE TABLE and ALTER TABLE are not: they have clauses that DuckDB does not know.
"""


class StatementPlanner:
    """Plans one statement whose plan is not cached.

    Args:
        catalog: The tables, statistics and settings to plan with.
        cost_model: The costs that a session has unless it sets them.
    """

    def __init__(self, catalog: PlanningCatalog, cost_model: CostModel) -> None:
        self._catalog = catalog
        self._cost_model = cost_model
        self._queries = QueryPlanner(catalog)

    def plan(self, sql: str, tokens: Sequence[Token], parameters: Parameters, params: Params) -> Statement:
        """Plan a statement, or what follows EXPLAIN.

        Args:
            sql: The text.
            tokens: The tokens of the statement.
            parameters: Its parameters.
            params: Their values as they were given.

        Returns:
            The statement; an INSERT whose rows have yet to be evaluated.

        Raises:
            Error: As :meth:`~secateur.planner.planner.Planner.prepare`.
        """
        written = None if _word(tokens[0]) == "EXPLAIN" else as_queries(sql, tokens, parameters)
        if written is not None:
            if parameters.lists:
                raise NotSupportedError("lists are not taken out of statements with others inside")
            values = arrange(parameters, params) or ()
            return written.plan(lambda text, own_tokens, own: self.plan(text, own_tokens, own, values))
        planned = self._read(sql, tokens, parameters, params)
        if isinstance(planned, InsertValues):
            check_dialect(sql, tokens, planned.rows)
            refuse_calls_of([token for token in tokens if planned.rows.start <= token.start < planned.rows.end], sql)
        elif isinstance(planned, _READ_HERE):
            check_dialect(sql, tokens)
        return planned

    def _read(self, sql: str, tokens: Sequence[Token], parameters: Parameters, params: Params) -> Statement:
        cursor = TokenCursor(sql, tokens)
        first = _word(tokens[0])
        if parameters.lists and first not in _QUERIES and first != "EXPLAIN":
            raise NotSupportedError(f"lists are not taken out of {first}")
        ctes, changing = split_with(tokens)
        if ctes is not None:
            if parameters.lists:
                raise NotSupportedError("lists are not taken out of statements that change rows")
            cursor, first = TokenCursor(sql, changing), changing[0].text.upper()
        if first in _QUERIES:
            return self._queries.select(sql, tokens, parameters, arrange(parameters, params))
        if first in _CHANGES and not CLOCKS.keys().isdisjoint(folded(token.text) for token in tokens):
            parameters = parameters.with_clock()  # all queries of a change get the same parameters
        match first:
            case "EXPLAIN":
                return self._explain(cursor, parameters, params)
            case "INSERT":
                insert = read_insert(cursor, parameters, self._catalog.table, ctes)
                return self._queries.changes(sql, parameters, parameters.arrange(params)).insert(insert)
            case "UPDATE" | "DELETE" | "TRUNCATE":
                change = read_searched_change(cursor, parameters, self._catalog.table, ctes)
                if change.sources is not None:
                    # The query has the sources in its middle, where more than sources would read strangely.
                    check_dialect(sql, tokens)
                return self._queries.changes(sql, parameters, arrange(parameters, params)).searched(change)
            case "MERGE":
                return self._queries.changes(sql, parameters, arrange(parameters, params)).merge(
                    read_merge(cursor, parameters, self._catalog.table, ctes)
                )
            case "CREATE" if cursor.at("CREATE", "VIEW") or cursor.at("CREATE", "OR", "REPLACE", "VIEW"):
                _refuse_parameters(parameters, sql)
                return self._create_view(cursor, parameters)
            case "DROP" if cursor.at("DROP", "VIEW"):
                return read_drop_view(cursor)
            case "CREATE" if is_create_table_as(cursor):
                values = parameters.arrange(params)
                created = read_create_table_as(cursor).statement(
                    lambda query: self._queries.select(sql, query, parameters, values)
                )
                return (
                    created
                    if created.select is None
                    else with_fields(created, select=replace(created.select, params=values))
                )
            case "CREATE":
                _refuse_parameters(parameters, sql)
                if at_create_external_table(cursor):
                    return read_create_external_table(cursor)
                if cursor.at("CREATE", "INDEX") or cursor.at("CREATE", "UNIQUE", "INDEX"):
                    return read_create_index(cursor, self._catalog.table)
                return read_create_table(cursor)
            case "COPY":
                copy = read_copy(cursor, parameters, self._catalog.table)
                if isinstance(copy, CopyFrom):
                    return copy
                values = parameters.arrange(params)
                return CopyTo(replace(self._queries.select_composed(copy.query, values), params=values), copy.file)
            case "BACKUP":
                _refuse_parameters(parameters, sql)
                return read_backup(cursor, self._catalog.table)
            case "RESTORE":
                _refuse_parameters(parameters, sql)
                return read_restore(cursor)
            case "KILL":
                _refuse_parameters(parameters, sql)
                return read_kill(cursor)
            case "ALTER":
                _refuse_parameters(parameters, sql)
                return read_alter_table(cursor, self._catalog.table)
            case "DROP":
                _refuse_parameters(parameters, sql)
                return read_drop_index(cursor) if cursor.at("DROP", "INDEX") else read_drop_table(cursor)
            case "SET":
                _refuse_parameters(parameters, sql)
                return read_set(cursor)
            case "RESET":
                _refuse_parameters(parameters, sql)
                return read_reset(cursor)
            case "ANALYZE" | "VACUUM":
                _refuse_parameters(parameters, sql)
                return self._queries.select_made(read_maintenance(cursor, self._catalog.relation), parameters, ())
            case "SHOW" if is_show_settings(cursor, self._catalog.relation):
                _refuse_parameters(parameters, sql)
                return read_show_settings(cursor, self._cost_model)
            case "SHOW" | "DESCRIBE" | "DESC" | "SUMMARIZE":
                return self._queries.show(cursor, parameters, arrange(parameters, params))
            case _ if first in REFUSED_STATEMENTS:
                raise cursor.unsupported(first, REFUSED_STATEMENTS[first])
            case _:
                raise cursor.expected(
                    "SELECT, INSERT, UPDATE, DELETE, TRUNCATE, MERGE, COPY, PIVOT, UNPIVOT, CREATE, ALTER, DROP,"
                    " BACKUP, RESTORE, KILL, EXPLAIN, SHOW, DESCRIBE, SUMMARIZE, SET, RESET, PREPARE, EXECUTE,"
                    " DEALLOCATE, ANALYZE or VACUUM"
                )

    def _create_view(self, cursor: TokenCursor, parameters: Parameters) -> CreateView:
        written = read_create_view(cursor)
        find = written.finder(self._catalog.relation)
        query = BoundSelect(
            cursor.sql,
            written.query,
            parameters,
            (),
            find,
            self._catalog.version,
            self._catalog.settings,
            self._catalog.statistics_snapshot,
        )
        return CreateView(
            written.view(cursor.sql, query.planned().plan, self._catalog.relation),
            written.or_replace,
            written.if_not_exists,
        )

    def _explain(self, cursor: TokenCursor, parameters: Parameters, params: Params) -> ExplainStatement:
        form, analyze = read_explain(cursor)
        what = TokenCursor(cursor.sql, cursor.rest())
        target = self.plan(cursor.sql, cursor.rest(), parameters, params)
        if target.is_cached:
            target = with_values(target, arrange(parameters, params), parameters.lists, self._catalog.version)
        elif analyze:
            first = cursor.rest()[0].text.upper()
            raise what.unsupported(
                f"EXPLAIN ANALYZE of {first}", "it runs queries, INSERT, UPDATE, DELETE and MERGE; use EXPLAIN"
            )
        return ExplainStatement(target, form, analyze, what.offset)


def _word(token: Token) -> str:
    return token.text.upper().split()[0]


def _refuse_parameters(parameters: Parameters, sql: str) -> None:
    if parameters.count:
        start, end, _ = parameters.spans[0]
        raise located(ParameterError, "this statement takes no parameters: write the value", sql, start, end - start)
