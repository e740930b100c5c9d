"""Reads a statement of any kind: one table says by which words each begins, and what reads it.

Readers of a few lines are here, longer ones in the folder of their kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from secateur.engine.kernels.duckdb.errors import syntax_error_position
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DatabaseError, NotSupportedError, ParameterError, ProgrammingError
from secateur.partitioning.types.sql_text import CLOCKS, folded, text_literal
from secateur.planner.binding.catalog_view import ANYBODY, PlanningCatalog
from secateur.planner.binding.functions import refuse_calls_of
from secateur.planner.binding.refused import STATEMENTS as REFUSED_STATEMENTS
from secateur.planner.cached_plan import Params, arrange, with_values
from secateur.planner.cost_model import CostModel
from secateur.planner.ddl.access import (
    read_create_policy,
    read_create_role,
    read_drop_policy,
    read_forget_tenant,
    read_grant,
)
from secateur.planner.ddl.alter_table import read_alter_table, read_comment_on
from secateur.planner.ddl.column_type import read_create_type
from secateur.planner.ddl.create_external_table import read_create_external_table
from secateur.planner.ddl.create_index import read_create_index
from secateur.planner.ddl.create_table import read_create_table
from secateur.planner.ddl.create_table_as import is_create_table_as, read_create_table_as
from secateur.planner.ddl.create_view import read_create_view
from secateur.planner.ddl.drop import read_drop
from secateur.planner.ddl.resource_group import read_alter_resource_group, read_create_resource_group
from secateur.planner.dml.change_planner import ChangePlanner
from secateur.planner.dml.composed import Composed
from secateur.planner.dml.copy import read_backup, read_copy, read_restore
from secateur.planner.dml.insert import Insert, InsertValues, read_insert
from secateur.planner.dml.merge import Merge, read_merge
from secateur.planner.dml.row_changes import ChangeText
from secateur.planner.dml.searched_change import SearchedChange, read_searched_change
from secateur.planner.dml.target import read_relation
from secateur.planner.explain.explain import read_explain
from secateur.planner.query_planner import QueryPlanner
from secateur.planner.select import BoundSelect
from secateur.planner.set_option import is_show_settings, read_reset, read_set, read_show_settings
from secateur.planner.statement import ExplainStatement, KillJob, KillStatement, PlannedSelect
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TextSpan, TokenCursor
from secateur.planner.text.tokens import Token, TokenKind
from secateur.planner.views import FindRelation
from secateur.protocol.access import PolicyCommand
from secateur.protocol.statements import InsertMode, Statement, as_texts
from secateur.protocol.tokens import Privilege

_ONE_ROW = "VALUES (0)"
_WHY_NEEDLESS: Final = {
    "ANALYZE": "ANALYZE is not needed: members count and sample their rows by themselves as they change",
    "VACUUM": "VACUUM is not needed: members merge changes into their partitions, and free memory, by themselves",
}
_STATEMENT_ID: Final = re.compile(r"(.+):([0-9]{1,18})")
_CHANGES_BEHIND_WITH: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


@dataclass(frozen=True, slots=True)
class _Unread:
    """A statement of which only the first words are known; ``cursor`` is behind its WITH clause."""

    catalog: PlanningCatalog
    cost_model: CostModel
    sql: str
    tokens: Sequence[Token]
    ctes: TextSpan | None
    cursor: TokenCursor
    parameters: Parameters
    params: Params

    @property
    def queries(self) -> QueryPlanner:
        return QueryPlanner(self.catalog)

    @property
    def values(self) -> tuple[Any, ...] | None:
        """The values of its parameters in order; None for a statement that is bound later."""
        return arrange(self.parameters, self.params)

    @property
    def given_values(self) -> tuple[Any, ...]:
        """The same for a statement that is not bound later.

        Raises:
            ParameterError: There are none.
        """
        return self.parameters.arrange(self.params)

    def bound(self, query: PlannedSelect) -> PlannedSelect:
        """A query of a statement that is not bound later, with its values."""
        return replace(query, params=self.given_values, hidden=self.parameters.hidden)

    def at_one_time(self) -> _Unread:
        """The statement with the time as a parameter, if it reads the clock: all queries of a change get the same."""
        reads_clock = not CLOCKS.keys().isdisjoint(folded(token.text) for token in self.tokens)
        return replace(self, parameters=self.parameters.with_clock()) if reads_clock else self

    def changes(self, values: tuple[Any, ...] | None, command: PolicyCommand) -> ChangePlanner:
        return self.queries.changes(self.parameters, values, command)


class StatementPlanner:
    """Plans one statement whose plan is not cached."""

    def __init__(self, catalog: PlanningCatalog, cost_model: CostModel) -> None:
        self._catalog = catalog
        self._cost_model = cost_model

    def plan(self, sql: str, tokens: Sequence[Token], parameters: Parameters, params: Params) -> Statement:
        """Plan a statement, or what follows EXPLAIN.

        Returns:
            The statement; one that is cached has yet to be given its values.

        Raises:
            Error: As :meth:`~secateur.planner.planner.Planner.prepare`.
        """
        ctes, behind = split_with(tokens)
        cursor = TokenCursor(sql, behind)
        unread = _Unread(self._catalog, self._cost_model, sql, tokens, ctes, cursor, parameters, params)
        kind = _kind_of(_word(behind[0]), unread)
        if parameters.lists and not kind.takes_lists:
            raise NotSupportedError("lists are taken out of queries only")
        if parameters.count and not kind.takes_parameters:
            start, end, _ = parameters.spans[0]
            message = "this statement takes no parameters: write the value"
            raise located(ParameterError, message, sql, start, end - start)
        planned = kind.read(unread)
        if isinstance(planned, InsertValues):
            check_dialect(sql, tokens, planned.rows)
            refuse_calls_of([token for token in tokens if planned.rows.start <= token.start < planned.rows.end], sql)
        elif kind.is_of_dialect:
            check_dialect(sql, tokens)
        return planned


def _query(unread: _Unread) -> Statement:
    return unread.queries.select(unread.sql, unread.tokens, unread.parameters, unread.values)


def _change(read: Callable[[ChangeText], Insert | Merge | SearchedChange]) -> Callable[[_Unread], Statement]:
    """A reader of a statement that changes rows."""

    def planned(unread: _Unread) -> Statement:
        unread = unread.at_one_time()
        change = read(ChangeText(unread.cursor, unread.parameters, unread.catalog.view.table, unread.ctes))
        if isinstance(change, SearchedChange) and change.sources is not None:
            # The query has the sources in its middle, where more than sources would read strangely.
            check_dialect(unread.sql, unread.tokens)
        textual = change.textual_parameters()
        values = unread.given_values if isinstance(change, Insert) else unread.values
        planner = unread.changes(None if values is None else as_texts(values, textual), _policies_of(change))
        return planner.plan(change, textual)

    return planned


def _policies_of(change: Insert | Merge | SearchedChange) -> PolicyCommand:
    """Whose policies hold for the rows that are there."""
    if isinstance(change, Insert):
        # DO NOTHING leaves a row alone whose key is there, whoever may change it.
        return PolicyCommand.SELECT if change.mode is InsertMode.IGNORE else PolicyCommand.UPDATE
    if Privilege.UPDATE in change.privileges:
        return PolicyCommand.ALL if Privilege.DELETE in change.privileges else PolicyCommand.UPDATE
    return PolicyCommand.DELETE if Privilege.DELETE in change.privileges else PolicyCommand.SELECT


def _copy(unread: _Unread) -> Statement:
    def plan(query: Composed) -> PlannedSelect:
        values = unread.given_values
        return unread.bound(query.plan(lambda text, tokens, own: unread.queries.select(text, tokens, own, values)))

    return read_copy(unread.cursor, unread.parameters, unread.catalog.view.table, plan)


def _create_view(unread: _Unread) -> Statement:
    catalog = replace(unread.catalog, viewer=ANYBODY)

    def plan(query: Sequence[Token], find: FindRelation) -> SelectPlan:
        parameters = replace(unread.parameters, claims=())  # they are those of whoever reads the view
        return BoundSelect(unread.sql, query, parameters, (), catalog, find=find).planned().plan

    return read_create_view(unread.cursor, catalog.view.relation, plan)


def _create_table_as(unread: _Unread) -> Statement:
    return read_create_table_as(
        unread.cursor,
        lambda query: unread.bound(unread.queries.select(unread.sql, query, unread.parameters, unread.given_values)),
    )


def _explain(unread: _Unread) -> Statement:
    form, analyze = read_explain(unread.cursor)
    tokens = unread.cursor.rest()
    what, parameters = TokenCursor(unread.sql, tokens), unread.parameters
    planner = StatementPlanner(unread.catalog, unread.cost_model)
    target = planner.plan(unread.sql, tokens, parameters, unread.params)
    if target.is_cached:
        target = with_values(target, unread.values, parameters.hidden, unread.catalog.view.version)
    elif analyze:
        raise what.unsupported(
            f"EXPLAIN ANALYZE of {tokens[0].text.upper()}",
            "it runs queries, INSERT, UPDATE, DELETE and MERGE; use EXPLAIN",
        )
    return ExplainStatement(target, form, analyze, what.offset)


def _maintenance(unread: _Unread) -> Statement:
    answer = read_maintenance(unread.cursor, unread.catalog.view.relation)
    return unread.queries.select_made(answer, unread.parameters, ())


def _show(unread: _Unread) -> Statement:
    return unread.queries.show(unread.cursor, unread.parameters, unread.values)


def _refused(unread: _Unread) -> Statement:
    word = _word(unread.tokens[0])
    raise unread.cursor.unsupported(word, REFUSED_STATEMENTS[word])


@dataclass(frozen=True, slots=True)
class _Kind:
    """The statements that one function reads.

    Attributes:
        words: The words by which they begin; an error names the first of them.
        read: Reads and plans one.
        when: Which of those with these words it is; None for all.
        takes_parameters: Whether they may have parameters. A reader that ignored a parameter would ignore its value.
        takes_lists: Whether long lists are taken out of their texts.
        is_of_dialect: Whether DuckDB knows all of their clauses: then its parser has to accept the text too.
    """

    words: tuple[str, ...]
    read: Callable[[_Unread], Statement]
    when: Callable[[_Unread], bool] | None = None
    takes_parameters: bool = False
    takes_lists: bool = False
    is_of_dialect: bool = False


_PIVOTS: Final = ("PIVOT", "PIVOT_WIDER", "UNPIVOT", "PIVOT_LONGER")
_QUERY_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", *_PIVOTS)

_KINDS: Final = (
    _Kind(_QUERY_WORDS, _query, takes_parameters=True, takes_lists=True),
    _Kind(("INSERT",), _change(read_insert), takes_parameters=True, is_of_dialect=True),
    _Kind(("UPDATE",), _change(read_searched_change), takes_parameters=True, is_of_dialect=True),
    _Kind(("DELETE",), _change(read_searched_change), takes_parameters=True, is_of_dialect=True),
    _Kind(("TRUNCATE",), _change(read_searched_change), takes_parameters=True, is_of_dialect=True),
    _Kind(("MERGE",), _change(read_merge), takes_parameters=True, is_of_dialect=True),
    _Kind(("COPY",), _copy, takes_parameters=True, is_of_dialect=True),
    _Kind(("CREATE ROLE",), lambda unread: read_create_role(unread.cursor)),
    _Kind(("DROP ROLE", "DROP RESOURCE"), lambda unread: read_drop(unread.cursor)),
    _Kind(("GRANT",), lambda unread: read_grant(unread.cursor, unread.catalog.view.relation)),
    _Kind(("REVOKE",), lambda unread: read_grant(unread.cursor, unread.catalog.view.relation)),
    _Kind(("CREATE POLICY",), lambda unread: read_create_policy(unread.cursor, unread.catalog.view.table)),
    _Kind(("DROP POLICY",), lambda unread: read_drop_policy(unread.cursor, unread.catalog.view.table)),
    _Kind(("CREATE RESOURCE",), lambda unread: read_create_resource_group(unread.cursor)),
    _Kind(("ALTER RESOURCE",), lambda unread: read_alter_resource_group(unread.cursor)),
    _Kind(("CREATE VIEW", "CREATE OR REPLACE VIEW"), _create_view, is_of_dialect=True),
    _Kind(("CREATE EXTERNAL", "CREATE OR REPLACE EXTERNAL"), lambda unread: read_create_external_table(unread.cursor)),
    _Kind(
        ("CREATE INDEX", "CREATE UNIQUE INDEX"),
        lambda unread: read_create_index(unread.cursor, unread.catalog.view.table),
        is_of_dialect=True,
    ),
    _Kind(("CREATE",), _create_table_as, lambda unread: is_create_table_as(unread.cursor), takes_parameters=True),
    _Kind(
        ("CREATE TYPE", "CREATE OR REPLACE TYPE"), lambda unread: read_create_type(unread.cursor), is_of_dialect=True
    ),
    _Kind(("CREATE",), lambda unread: read_create_table(unread.cursor, unread.catalog.view.types)),
    _Kind(("COMMENT",), lambda unread: read_comment_on(unread.cursor, unread.catalog.view.table), is_of_dialect=True),
    _Kind(
        ("ALTER",), lambda unread: read_alter_table(unread.cursor, unread.catalog.view.table, unread.catalog.view.types)
    ),
    _Kind(("DROP",), lambda unread: read_drop(unread.cursor), is_of_dialect=True),
    _Kind(("FORGET",), lambda unread: read_forget_tenant(unread.cursor)),
    _Kind(("BACKUP",), lambda unread: read_backup(unread.cursor, unread.catalog.view.table)),
    _Kind(("RESTORE",), lambda unread: read_restore(unread.cursor)),
    _Kind(("KILL",), lambda unread: read_kill(unread.cursor)),
    _Kind(("EXPLAIN",), _explain, takes_parameters=True, takes_lists=True),
    _Kind(
        ("SHOW",),
        lambda unread: read_show_settings(unread.cursor, unread.cost_model),
        lambda unread: is_show_settings(unread.cursor, unread.catalog.view.relation),
    ),
    _Kind(("SHOW",), _show, takes_parameters=True),
    _Kind(("DESCRIBE", "DESC"), _show, takes_parameters=True),
    _Kind(("SUMMARIZE",), _show, takes_parameters=True),
    _Kind(("SET",), lambda unread: read_set(unread.cursor)),
    _Kind(("RESET",), lambda unread: read_reset(unread.cursor)),
    _Kind(("PREPARE",), _refused, takes_parameters=True),  # a connection answers these three, and gets here with
    _Kind(("EXECUTE",), _refused, takes_parameters=True),  # what it cannot read
    _Kind(("DEALLOCATE",), _refused, takes_parameters=True),
    _Kind(("ANALYZE",), _maintenance),
    _Kind(("VACUUM",), _maintenance),
)
"""All statements that there are; of those with the same first words, the first one that fits."""


def _kind_of(first: str, unread: _Unread) -> _Kind:
    """The kind of a statement with this first word.

    Raises:
        NotSupportedError: There is such a statement in the dialect, and not here.
        SqlSyntaxError: There is none.
    """
    for kind in _KINDS:
        for words in kind.words:
            begins = words == first or (words.startswith(f"{first} ") and unread.cursor.at(*words.split()))
            if begins and (kind.when is None or kind.when(unread)):
                return kind
    if first in REFUSED_STATEMENTS:
        raise unread.cursor.unsupported(first, REFUSED_STATEMENTS[first])
    *listed, last = dict.fromkeys(kind.words[0].split()[0] for kind in _KINDS)
    raise unread.cursor.expected(f"{', '.join(listed)} or {last}")


def _word(token: Token) -> str:
    return token.text.upper().split()[0]


def check_dialect(sql: str, tokens: Sequence[Token], rows: TextSpan | None = None) -> None:
    """Refuse a statement whose text DuckDB's parser refuses.

    Our own parsers read statements that change rows, and DDL that is in the dialect. If such a parser took a word for
    something harmless, as in ``UPDATE t ONLY SET ...`` for an alias, the statement would be executed without the user's
    intention. Every such text is therefore also given to DuckDB's parser, and is refused if that refuses it.

    Args:
        sql: The user's whole text.
        tokens: Those of the statement.
        rows: A VALUES clause in it, which is skipped: it is parsed where it is evaluated, and may be long.

    Raises:
        SqlSyntaxError, NotSupportedError: DuckDB refuses it; with the position.

    Cost: some 50 microseconds.
    """
    start, end = tokens[0].start, tokens[-1].end + 1
    text = sql[start:end] if rows is None else sql[start : rows.start] + _ONE_ROW + sql[rows.end : end]
    try:
        default_kernel().parse(text)
    except DatabaseError as error:
        error_position = syntax_error_position(text)
        if error_position is None:
            raise
        offset = start + error_position.offset
        if rows is not None and offset > rows.start:
            offset += rows.end - rows.start - len(_ONE_ROW)
        message = f"the statement does not parse: {error_position.message.strip()}"
        raise located(type(error), message, sql, offset, error_position.length, **error.details) from None


def read_maintenance(cursor: TokenCursor, find: Callable[[str], Any]) -> str:
    """Read ``ANALYZE [t]``, ``VACUUM [t]`` or ``VACUUM ANALYZE [t]``; return the query that answers it.

    Tools send these statements. The answer is one row, which says why there is nothing to do.

    Raises:
        UnknownTableError: With the position of the name.
    """
    words = [cursor.take().text.upper()]
    if words == ["VACUUM"] and cursor.accept("ANALYZE"):
        words.append("ANALYZE")
    if not cursor.at_end:
        read_relation(cursor, find)
    cursor.expect_end()
    answer = "; ".join(_WHY_NEEDLESS[word] for word in words)
    return f"SELECT {text_literal(answer)} AS notice"


def read_kill(cursor: TokenCursor) -> KillStatement | KillJob:
    """Read ``KILL 'm2:17'``, ``KILL 'controller:4'`` or ``KILL JOB 'id or name'``.

    It ends a running statement, of whichever connection, or a job.

    Raises:
        ProgrammingError: The text is not the id of a statement.
    """
    cursor.expect("KILL")
    is_job = cursor.accept("JOB")
    offset = cursor.offset
    text = cursor.string(f"the id of a {'job' if is_job else 'statement'}, as 'text'")
    length = cursor.end - offset
    cursor.expect_end()
    if is_job:
        return KillJob(text)
    found = _STATEMENT_ID.fullmatch(text)
    if found is None:
        raise cursor.error(
            ProgrammingError,
            f"{text!r} is not the id of a statement, such as 'm1:17': SELECT id, statement FROM secateur.statements"
            " WHERE state NOT IN ('done', 'failed') lists those that can be killed",
            offset,
            length,
        )
    return KillStatement(found[1], int(found[2]))


def split_with(tokens: Sequence[Token]) -> tuple[TextSpan | None, Sequence[Token]]:
    """Split the WITH clause from a statement that changes rows.

    As in ``WITH q AS (...) DELETE FROM t ...``.

    Returns None and all tokens for any other statement.
    """
    if tokens[0].text.upper() != "WITH":
        return None, tokens
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        closes = position and tokens[position - 1].word == ")"
        if closes and not depth and token.text.upper() in _CHANGES_BEHIND_WITH and token.kind is not TokenKind.QUOTED:
            return TextSpan(tokens[0].start, tokens[position - 1].end + 1), tokens[position:]
    return None, tokens
