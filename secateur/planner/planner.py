"""The planner: turns a SQL text into a statement."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, assert_never

from msgspec.structs import replace as with_fields
from sqlglot import Token, TokenType

from secateur.errors import Error, LimitExceededError, NotSupportedError, ParameterError
from secateur.planner.binding.catalog_view import CatalogView, PlanningCatalog
from secateur.planner.binding.dialect_check import check_dialect
from secateur.planner.binding.functions import refuse_calls_of
from secateur.planner.binding.parameter_types import sample_value, types_of
from secateur.planner.binding.pivot import read_pivot, read_unpivot
from secateur.planner.binding.refused import STATEMENTS as REFUSED_STATEMENTS
from secateur.planner.cost_model import CostModel
from secateur.planner.ddl.alter_table import read_alter_table
from secateur.planner.ddl.create_external_table import at_create_external_table, read_create_external_table
from secateur.planner.ddl.create_index import read_create_index, read_drop_index
from secateur.planner.ddl.create_table import read_create_table, read_drop_table
from secateur.planner.ddl.create_table_as import is_create_table_as, read_create_table_as
from secateur.planner.dml.backup import read_backup, read_restore
from secateur.planner.dml.change_planner import ChangePlanner
from secateur.planner.dml.composed import Composed
from secateur.planner.dml.copy import read_copy
from secateur.planner.dml.delete import read_delete, read_truncate
from secateur.planner.dml.insert import InsertValues, read_insert
from secateur.planner.dml.literal_insert import with_literal_rows
from secateur.planner.dml.merge import read_merge
from secateur.planner.dml.target import read_relation
from secateur.planner.dml.update import read_update
from secateur.planner.dml.with_clause import split_with
from secateur.planner.explain.read_explain import read_explain
from secateur.planner.plan_settings import PlanSettings
from secateur.planner.select import BoundSelect
from secateur.planner.set_option import is_show_settings, read_set, read_show_settings
from secateur.planner.statement import (
    AlterTable,
    CreateExternalTable,
    CreateIndex,
    CreateTable,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    ExplainStatement,
    KillJob,
    KillStatement,
    PlannedSelect,
    SetGlobalPruning,
    Statement,
)
from secateur.planner.steps.join_keys import PlanStep
from secateur.planner.steps.materialize import RULE as MATERIALIZE_SUBQUERY
from secateur.planner.steps.materialize import materialize_subqueries
from secateur.planner.system.kill import read_kill
from secateur.planner.system.show import (
    DescribedQuery,
    ShowQuery,
    SummarizedQuery,
    described_sql,
    read_show,
    summarized_sql,
)
from secateur.planner.system.tables import SCHEMA as SYSTEM_SCHEMA
from secateur.planner.text.dialect import tokenize
from secateur.planner.text.folding import folded
from secateur.planner.text.hoisted_lists import HOISTED_CHARS_MIN, HoistedText, hoist_lists, readings_of
from secateur.planner.text.literal_rows import LITERAL_ROWS_CHARS_MIN, take_literal_rows
from secateur.planner.text.parameters import Parameters, read_parameters
from secateur.planner.text.positions import located, syntax_error
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.views.create_view import read_create_view, read_drop_view
from secateur.protocol.clocks import CLOCKS
from secateur.protocol.statements import (
    BackupTo,
    ChangeStatement,
    CoordinatedChange,
    CopyFrom,
    CopyTo,
    CreateTableAs,
    EvaluatedInsert,
    InsertSelect,
    RestoreFrom,
    SetOption,
    SetPruning,
    SetTimeout,
    ShowSettings,
)

__all__ = ["Planner"]

Params: TypeAlias = Sequence[Any] | Mapping[str, Any]

_STATEMENT_CHARS_MAX: Final = 4_000_000
_CACHED_MAX: Final = 1024
_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})


@dataclass(frozen=True, slots=True)
class _CacheKey:
    """Everything that a plan depends on."""

    text: str | HoistedText
    types: tuple[str, ...]
    catalog_version: int
    settings: PlanSettings


_Planned: TypeAlias = (
    PlannedSelect
    | InsertSelect[PlannedSelect]
    | InsertValues
    | ChangeStatement[PlannedSelect]
    | CoordinatedChange[PlannedSelect]
)
"""A cached plan; it is evaluated and given its values at each call."""

_READ_HERE: Final = (
    *(InsertSelect, ChangeStatement, CoordinatedChange, CopyFrom, CopyTo),
    *(CreateView, DropView, DropTable, CreateIndex, DropIndex),
)
"""Statements of the dialect that parsers of our own read.

CREATE TABLE and ALTER TABLE are not: they have clauses that DuckDB does not know.
"""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A plan, and the version of the statistics that it was made with; None when they had no say in it."""

    planned: _Planned
    statistics_version: int | None


class Planner:
    """Turns texts into statements, and caches their plans.

    Thread-safe: several statements may be planned at once.

    Args:
        cached_max: How many plans to keep.
        cost_model: The costs by which plans are chosen, unless a session has set a number of it.
    """

    def __init__(self, cached_max: int = _CACHED_MAX, cost_model: CostModel | None = None) -> None:
        self._cost_model = cost_model or CostModel()
        self._cached_max = cached_max
        self._cache: OrderedDict[_CacheKey, _Remembered] = OrderedDict()
        self._styles: OrderedDict[str | HoistedText, Parameters] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(
        self,
        sql: str,
        params: Params,
        view: CatalogView,
        settings: Mapping[str, Any] | None = None,
        *,
        anew: bool = False,
    ) -> Statement:
        """Plan one statement.

        Args:
            sql: The text of exactly one statement, with or without a semicolon.
            params: Its parameters: a sequence for ``?`` and ``$1``, a mapping for ``$name``. A query may be planned
                without any, to be explained or bound later.
            view: The tables.
            settings: Those of the session; a plan depends on :class:`~secateur.planner.plan_settings.PlanSettings`.
            anew: Whether to plan with the statistics of now, even where an earlier plan would do: its estimates may be
                old.

        Returns:
            The statement; INSERT ... VALUES comes evaluated.
            Cost: a few milliseconds for a new text, some 10 microseconds for one with a plan in the cache.

        Raises:
            SqlSyntaxError: The text does not parse; message and details have the position.
            UnknownTableError, UnknownColumnError: An unknown name, with suggestions.
            ParameterError: The parameters are not those of the statement.
            SchemeError: A CREATE TABLE with an invalid scheme.
            NotSupportedError: A valid statement that is not supported.
            LimitExceededError: The text is too long.
        """
        catalog = PlanningCatalog(view, PlanSettings.of(settings, self._cost_model))
        known = self._styles.get(sql)
        if known is not None and not anew:
            cached = self._cached(sql, known, params, catalog)
            if cached is not None:
                return cached
        if len(sql) > _STATEMENT_CHARS_MAX:
            raise LimitExceededError(
                f"the statement has {len(sql):,} characters, at most {_STATEMENT_CHARS_MAX:,} are allowed:"
                " pass values as parameters, or load a table"
            )
        taken = take_literal_rows(sql) if len(sql) >= LITERAL_ROWS_CHARS_MIN and not params else None
        if taken is not None:
            # If planning fails, the error has its place in the user's text, or DuckDB can convert a value.
            with suppress(Error):
                inserted = with_literal_rows(self._prepare_new(taken.text, taken.text, {}, (), catalog), taken)
                if inserted is not None:
                    return inserted
        hoisted = hoist_lists(sql) if len(sql) >= HOISTED_CHARS_MIN else None
        if hoisted is not None:
            text, lists = hoisted
            for reading in readings_of(lists):
                try:
                    return self._prepare_hoisted(text, reading, params, catalog, anew=anew)
                except Error:
                    # With another reading, or as written, it is valid, or has its error at a place in the user's text.
                    continue
        return self._prepare_new(sql, sql, {}, params, catalog)

    def _prepare_hoisted(
        self,
        hoisted: HoistedText,
        lists: tuple[list[Any], ...],
        params: Params,
        catalog: PlanningCatalog,
        *,
        anew: bool,
    ) -> Statement:
        """Plan a statement whose long lists have been taken out."""
        known = self._styles.get(hoisted)
        cached = None if known is None or anew else self._cached(hoisted, replace(known, lists=lists), params, catalog)
        return cached or self._prepare_new(
            hoisted, hoisted.text, dict(zip(hoisted.offsets, lists, strict=True)), params, catalog
        )

    def _cached(
        self, text: str | HoistedText, parameters: Parameters, params: Params, catalog: PlanningCatalog
    ) -> Statement | None:
        values = _arrange(parameters, params)
        key = _CacheKey(text, types_of(values, parameters.total), catalog.version, catalog.settings)
        with self._lock:
            cached = self._cache.get(key)
            if cached is None or cached.statistics_version not in (None, catalog.statistics_snapshot.version):
                return None
            self._cache.move_to_end(key)
        return _with_params(cached.planned, values, parameters.lists, catalog.version)

    def _prepare_new(
        self,
        key: str | HoistedText,
        sql: str,
        hidden: Mapping[int, list[Any]],
        params: Params,
        catalog: PlanningCatalog,
    ) -> Statement:
        tokens, parameters = read_parameters(sql, _one_statement(sql, tokenize(sql)), hidden)
        parameters.refuse_gaps(sql)
        statement = self._plan(sql, tokens, parameters, params, catalog)
        planned = _planned(statement)
        if planned is None:
            assert not isinstance(statement, InsertValues)
            return statement
        values = _arrange(parameters, params)
        remembered = _Remembered(planned, catalog.statistics_snapshot.version if _is_estimated(planned) else None)
        self._remember(
            _CacheKey(key, types_of(values, parameters.total), catalog.version, catalog.settings),
            replace(parameters, lists=()),
            remembered,
        )
        return _with_params(planned, values, parameters.lists, catalog.version)

    def _plan(
        self, sql: str, tokens: Sequence[Token], parameters: Parameters, params: Params, catalog: PlanningCatalog
    ) -> Statement | InsertValues:
        planned = self._plan_read(sql, tokens, parameters, params, catalog)
        if isinstance(planned, InsertValues):
            check_dialect(sql, tokens, planned.rows)
            refuse_calls_of([token for token in tokens if planned.rows.start <= token.start < planned.rows.end], sql)
        elif isinstance(planned, _READ_HERE):
            check_dialect(sql, tokens)
        return planned

    def _plan_read(
        self, sql: str, tokens: Sequence[Token], parameters: Parameters, params: Params, catalog: PlanningCatalog
    ) -> Statement | InsertValues:
        cursor = TokenCursor(sql, tokens)
        first = tokens[0].text.upper().split()[0]
        if parameters.lists and first not in _QUERIES and first != "EXPLAIN":
            raise NotSupportedError(f"lists are not taken out of {first}")
        ctes, changing = split_with(tokens)
        if ctes is not None:
            if parameters.lists:
                raise NotSupportedError("lists are not taken out of statements that change rows")
            cursor, first = TokenCursor(sql, changing), changing[0].text.upper()
        if first in _QUERIES:
            return self._select(sql, tokens, parameters, _arrange(parameters, params), catalog)
        if first in _CHANGES and not CLOCKS.keys().isdisjoint(folded(token.text) for token in tokens):
            parameters = parameters.with_clock()  # all queries of a change get the same parameters
        match first:
            case "EXPLAIN":
                return self._explain(cursor, parameters, params, catalog)
            case "INSERT":
                insert = read_insert(cursor, parameters, catalog.table, ctes)
                return self._changes(sql, parameters, parameters.arrange(params), catalog).insert(insert)
            case "UPDATE":
                update = read_update(cursor, parameters, catalog.table, ctes)
                if update.sources is not None:
                    check_dialect(
                        sql, tokens
                    )  # the query has the sources in its middle, where more than sources would read strangely
                return self._changes(sql, parameters, _arrange(parameters, params), catalog).update(update)
            case "DELETE":
                delete = read_delete(cursor, parameters, catalog.table, ctes)
                if delete.sources is not None:
                    check_dialect(sql, tokens)
                return self._changes(sql, parameters, _arrange(parameters, params), catalog).delete(delete)
            case "TRUNCATE":
                return self._changes(sql, parameters, _arrange(parameters, params), catalog).delete(
                    read_truncate(cursor, parameters, catalog.table)
                )
            case "MERGE":
                return self._changes(sql, parameters, _arrange(parameters, params), catalog).merge(
                    read_merge(cursor, parameters, catalog.table, ctes)
                )
            case "CREATE" if cursor.at("CREATE", "VIEW") or cursor.at("CREATE", "OR", "REPLACE", "VIEW"):
                _refuse_parameters(parameters, sql)
                return self._create_view(cursor, parameters, catalog)
            case "DROP" if cursor.at("DROP", "VIEW"):
                return read_drop_view(cursor)
            case "CREATE" if is_create_table_as(cursor):
                values = parameters.arrange(params)
                created = read_create_table_as(cursor).statement(
                    lambda query: self._select(sql, query, parameters, values, catalog)
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
                    return read_create_index(cursor, catalog.table)
                return read_create_table(cursor)
            case "PIVOT":
                return self._select_composed(
                    read_pivot(cursor, parameters, ctes), _arrange(parameters, params), catalog
                )
            case "UNPIVOT":
                return self._select_composed(
                    read_unpivot(cursor, parameters, ctes), _arrange(parameters, params), catalog
                )
            case "COPY":
                copy = read_copy(cursor, parameters, catalog.table)
                if isinstance(copy, CopyFrom):
                    return copy
                values = parameters.arrange(params)
                return CopyTo(replace(self._select_composed(copy.query, values, catalog), params=values), copy.file)
            case "BACKUP":
                _refuse_parameters(parameters, sql)
                return read_backup(cursor, catalog.table)
            case "RESTORE":
                _refuse_parameters(parameters, sql)
                return read_restore(cursor)
            case "KILL":
                _refuse_parameters(parameters, sql)
                return read_kill(cursor)
            case "ALTER":
                _refuse_parameters(parameters, sql)
                return read_alter_table(cursor, catalog.table)
            case "DROP":
                _refuse_parameters(parameters, sql)
                return read_drop_index(cursor) if cursor.at("DROP", "INDEX") else read_drop_table(cursor)
            case "SET":
                _refuse_parameters(parameters, sql)
                return read_set(cursor)
            case "SHOW" if is_show_settings(cursor, catalog.relation):
                _refuse_parameters(parameters, sql)
                return read_show_settings(cursor, self._cost_model)
            case "SHOW" | "DESCRIBE" | "DESC" | "SUMMARIZE":
                return self._show(cursor, parameters, _arrange(parameters, params), catalog)
            case _ if first in REFUSED_STATEMENTS:
                raise cursor.unsupported(first, REFUSED_STATEMENTS[first])
            case _:
                raise cursor.expected(
                    "SELECT, INSERT, UPDATE, DELETE, TRUNCATE, MERGE, COPY, PIVOT, UNPIVOT, CREATE, ALTER, DROP,"
                    " BACKUP, RESTORE, KILL, EXPLAIN, SHOW, DESCRIBE, SUMMARIZE or SET"
                )

    def _select(
        self,
        sql: str,
        tokens: Sequence[Token],
        parameters: Parameters,
        values: Sequence[Any] | None,
        catalog: PlanningCatalog,
    ) -> PlannedSelect:
        unbound = [*[None] * parameters.count, *parameters.lists, *([] if parameters.clock is None else [_now()])]
        given = [sample_value(value) for value in (unbound if values is None else values)]
        types = types_of(values, parameters.total)

        def bind(text: str, tokens: Sequence[Token], parameters: Parameters, subqueries: int) -> BoundSelect:
            return bind_with(
                text, tokens, parameters, subqueries, lambda step, before: plan_step(step, subqueries + before)
            )

        def plan_step(text: str, before: int) -> PlannedSelect:
            tokens, own = read_parameters(text, tokenize(text))
            own = replace(own, count=parameters.total + before, clock=parameters.clock)
            return bind_with(text, tokens, own, before, None).planned()

        def bind_with(
            text: str, tokens: Sequence[Token], own: Parameters, values: int, plan_step: PlanStep | None
        ) -> BoundSelect:
            own_given, own_types = [*given, *[None] * values], (*types, *["subquery"] * values)
            return BoundSelect(
                text,
                tokens,
                own,
                own_given,
                catalog.relation,
                catalog.version,
                own_types,
                catalog.settings,
                catalog.statistics_snapshot,
                plan_step,
            )

        query = bind(sql, tokens, parameters, 0)
        if query.reads_clock and parameters.clock is None:
            values = None if values is None else (*values, _now())
            return self._select(sql, tokens, parameters.with_clock(), values, catalog)
        whole = query.planned()
        return (
            whole
            if query.skips_steps or MATERIALIZE_SUBQUERY in catalog.settings.disabled_rules
            else materialize_subqueries(whole, sql, tokens, parameters, bind, catalog.settings.cost_model)
        )

    def _show(
        self, cursor: TokenCursor, parameters: Parameters, values: Sequence[Any] | None, catalog: PlanningCatalog
    ) -> PlannedSelect:
        sql = cursor.sql
        match read_show(cursor, lambda cursor: read_relation(cursor, catalog.relation)):
            case ShowQuery(text):
                return self._select_made(text, parameters, values, catalog)
            case DescribedQuery(tokens):
                return self._select_made(
                    described_sql(self._select(sql, tokens, parameters, values, catalog).plan.columns),
                    parameters,
                    values,
                    catalog,
                )
            case SummarizedQuery(tokens):
                self._select(
                    sql, tokens, parameters, values, catalog
                )  # what is wrong with it is said of the user's own text
                return self._select_made(
                    summarized_sql(sql[tokens[0].start : tokens[-1].end + 1]), parameters, values, catalog
                )

    def _select_composed(
        self, query: Composed, values: Sequence[Any] | None, catalog: PlanningCatalog
    ) -> PlannedSelect:
        """A query that is put together of pieces of the user's statement."""
        return query.plan(lambda text, tokens, own: self._select(text, tokens, own, values, catalog))

    def _select_made(
        self, text: str, parameters: Parameters, values: Sequence[Any] | None, catalog: PlanningCatalog
    ) -> PlannedSelect:
        """A query that is made of the user's statement, whose parameters it has, or some of them."""
        tokens, own = read_parameters(text, tokenize(text))
        return self._select(text, tokens, replace(own, count=parameters.count, names=parameters.names), values, catalog)

    def _create_view(self, cursor: TokenCursor, parameters: Parameters, catalog: PlanningCatalog) -> CreateView:
        written = read_create_view(cursor)
        find = written.finder(catalog.relation)
        query = BoundSelect(
            cursor.sql,
            written.query,
            parameters,
            (),
            find,
            catalog.version,
            (),
            catalog.settings,
            catalog.statistics_snapshot,
        )
        return CreateView(
            written.view(cursor.sql, query.planned().plan, catalog.relation), written.or_replace, written.if_not_exists
        )

    def _changes(
        self, sql: str, parameters: Parameters, values: tuple[Any, ...] | None, catalog: PlanningCatalog
    ) -> ChangePlanner:
        """The planner of a statement that changes rows, to which the queries that it consists of come back."""
        unbound: list[Any] = [None] * parameters.count
        if parameters.clock is not None:
            unbound, values = [*unbound, _now()], None if values is None else (*values, _now())
        given, types = unbound if values is None else list(values), types_of(values, parameters.total)

        def plan(text: str, tokens: Sequence[Token], own: Parameters) -> PlannedSelect:
            select = BoundSelect(
                text,
                tokens,
                own,
                given,
                catalog.relation,
                catalog.version,
                types,
                catalog.settings,
                catalog.statistics_snapshot,
            )
            return _without_fetched_tables(select.planned())

        def plan_with_action(text: str, tokens: Sequence[Token], own: Parameters) -> PlannedSelect:
            own = replace(
                own,
                count=parameters.total + 1,
                clock=parameters.clock,
                names=(*parameters.names, *(["action"] if parameters.names else [])),
            )
            select = BoundSelect(
                text,
                tokens,
                own,
                [*given, ""],
                catalog.relation,
                catalog.version,
                (*types, "str"),
                catalog.settings,
                catalog.statistics_snapshot,
            )
            return _without_fetched_tables(select.planned())

        def plan_source(text: str, tokens: Sequence[Token], own: Parameters) -> PlannedSelect:
            return self._select(text, tokens, own, values, catalog)

        return ChangePlanner(sql, plan, plan_with_action, plan_source)

    def _explain(
        self, cursor: TokenCursor, parameters: Parameters, params: Params, catalog: PlanningCatalog
    ) -> ExplainStatement:
        form, analyze = read_explain(cursor)
        what = TokenCursor(cursor.sql, cursor.rest())
        target = self._plan(cursor.sql, cursor.rest(), parameters, params, catalog)
        planned = _planned(target)
        if planned is not None:
            target = _with_params(planned, _arrange(parameters, params), parameters.lists, catalog.version)
        elif analyze:
            first = cursor.rest()[0].text.upper()
            raise what.unsupported(
                f"EXPLAIN ANALYZE of {first}", "it runs queries, INSERT, UPDATE, DELETE and MERGE; use EXPLAIN"
            )
        assert not isinstance(target, InsertValues)
        return ExplainStatement(target, form, analyze, what.offset)

    def _remember(self, key: _CacheKey, parameters: Parameters, remembered: _Remembered) -> None:
        with self._lock:
            self._styles[key.text] = parameters
            self._styles.move_to_end(key.text)
            self._cache[key] = remembered
            self._cache.move_to_end(key)
            while len(self._styles) > self._cached_max:
                self._styles.popitem(last=False)
            while len(self._cache) > self._cached_max:
                self._cache.popitem(last=False)


def _planned(statement: Statement | InsertValues) -> _Planned | None:
    """The statement as one with a plan to keep, which is given its values at each call; None where it has none."""
    match statement:
        case PlannedSelect() | InsertSelect() | InsertValues() | ChangeStatement() | CoordinatedChange():
            return statement
        case (
            CreateTable()
            | CreateExternalTable()
            | AlterTable()
            | DropTable()
            | CreateView()
            | DropView()
            | CreateIndex()
            | DropIndex()
            | CreateTableAs()
            | EvaluatedInsert()
            | CopyFrom()
            | CopyTo()
            | BackupTo()
            | RestoreFrom()
            | KillStatement()
            | KillJob()
            | SetPruning()
            | SetGlobalPruning()
            | SetTimeout()
            | SetOption()
            | ShowSettings()
            | ExplainStatement()
        ):
            return None
        case _:
            assert_never(statement)


def _with_params(
    planned: _Planned, values: tuple[Any, ...] | None, lists: tuple[list[Any], ...], catalog_version: int
) -> Statement:
    match planned:
        case InsertValues():
            return planned.evaluate(values or (), catalog_version)
        case PlannedSelect():
            return PlannedSelect(
                planned.plan,
                planned.bounds,
                _bound(planned, values),
                lists,
                planned.materialized,
                planned.rewrites,
                planned.colocated,
                planned.filters,
                planned.estimated_rows,
            )
        case InsertSelect() | ChangeStatement() | CoordinatedChange():
            return with_fields(planned, select=replace(planned.select, params=_bound(planned.select, values)))


def _is_estimated(planned: _Planned) -> bool:
    match planned:
        case InsertValues():
            return False
        case PlannedSelect():
            return planned.plan.is_estimated
        case InsertSelect() | ChangeStatement() | CoordinatedChange():
            return planned.select.plan.is_estimated


def _arrange(parameters: Parameters, params: Params) -> tuple[Any, ...] | None:
    """Return the values in order; None when a query has parameters and none are given.

    Such a query is planned to be explained, or bound later.
    """
    return None if parameters.count and not params else parameters.arrange(params)


def _one_statement(sql: str, tokens: list[Token]) -> list[Token]:
    """The tokens without semicolons at the end.

    Raises:
        SqlSyntaxError: The text is empty, or has several statements.
    """
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise syntax_error("the statement is empty", sql, 0)
    for position, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            behind = tokens[position + 1]
            raise syntax_error(
                "one statement at a time: a second one begins here", sql, behind.start, behind.end - behind.start + 1
            )
    return tokens


def _now() -> datetime:
    return datetime.now(UTC)


def _bound(select: PlannedSelect, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """The values of the user and the lists of the text, with the time if the query reads it."""
    return (*values, _now()) if values is not None and select.plan.reads_clock else values


def _without_fetched_tables(select: PlannedSelect) -> PlannedSelect:
    external = [scan.table for scan in select.plan.scans if scan.external is not None]
    if external:
        raise NotSupportedError(
            f"a change that reads the external table {external[0]} is not supported: INSERT its rows into a table"
            " first, and read that"
        )
    if select.plan.system_tables:
        listed = ", ".join(f"{SYSTEM_SCHEMA}.{name}" for name in select.plan.system_tables)
        raise NotSupportedError(
            f"a change that reads system tables ({listed}) is not supported: read them first, and pass their values as"
            " parameters"
        )
    return select


def _refuse_parameters(parameters: Parameters, sql: str) -> None:
    if parameters.count:
        start, end, _ = parameters.spans[0]
        raise located(ParameterError, "this statement takes no parameters: write the value", sql, start, end - start)
