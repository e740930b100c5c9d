"""A query bound to the catalog: every table reference is a scan with a relation name of its own.

DuckDB runs the user's own text with the table names exchanged, not a text printed from a tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from secateur.errors import DatabaseError, LimitExceededError, NotSupportedError, ProgrammingError, UnknownTableError
from secateur.partitioning.tables.row_ids import WITH_ROW_IDS
from secateur.partitioning.tables.table import Column, ExternalTable, TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import folded, quoted
from secateur.planner.binding.catalog_view import MAIN, find_relation
from secateur.planner.binding.functions import doubtful_calls, refuse_calls
from secateur.planner.binding.refused import WORDS as REFUSED_WORDS
from secateur.planner.binding.refused import refuse_parts
from secateur.planner.binding.session_claims import claim_splices, claim_text
from secateur.planner.system.information_schema import SCHEMA as INFORMATION_SCHEMA
from secateur.planner.system.show import described_relation_sql
from secateur.planner.system.tables import SCHEMA as SYSTEM_SCHEMA
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import Splice, Spliced, located, position_of, splice, spliced
from secateur.planner.text.syntax import Syntax, TableName, ctes_of, nodes_of, parse_query
from secateur.planner.text.tokens import Token, TokenKind, tokenize
from secateur.planner.views import FindRelation, ViewDef, ViewRead
from secateur.protocol.access import PolicyFilter

FindGuard: TypeAlias = Callable[[TableDef, bool], PolicyFilter | None]
"""The condition that row policies put on a scan of a table, and whether it is the table that the statement changes."""


_LEFT_OUT: Final = frozenset({MAIN, SYSTEM_SCHEMA, INFORMATION_SCHEMA})
_VIEWS_MAX: Final = 500
_RELATION_NAME: Final = re.compile(r"[sx]\d+")
"""Scans are ``s0``, ``s1``, ..., and the rows of stages ``x0``, ``x1``, ..."""


@dataclass(frozen=True, slots=True)
class TableReference:
    """One reference to a table.

    Attributes:
        relation: ``s0``, ``s1``, ... in the order of the text.
        table: The table.
        alias: The name by which the statement calls it.
        columns: The columns that the statement may need, in table order; at least one.
        system: The name of a system table; None for a table of the user.
        external: The external table; None for any other.
        has_row_ids: Whether the statement sees the row ids of a table without a primary key.
        guard: The condition that row policies put on its rows; None for none.
        guard_columns: The columns that are read for that alone.
    """

    relation: str
    table: TableDef
    alias: str
    columns: tuple[str, ...]
    system: str | None = None
    external: ExternalTable | None = None
    has_row_ids: bool = False
    guard: PolicyFilter | None = None
    guard_columns: frozenset[str] = frozenset()

    @property
    def visible_columns(self) -> tuple[Column, ...]:
        """The columns of the table that the statement can name, and that a star stands for."""
        return self.table.columns if self.has_row_ids else self.table.visible_columns

    @property
    def is_fetched(self) -> bool:
        """Whether no member stores its rows: the coordinator fetches them when the statement runs."""
        return self.system is not None or self.external is not None


@dataclass(frozen=True, slots=True)
class Query:
    """A bound query.

    Attributes:
        text: The user's whole text, for positions.
        spliced: The text with relation names, and where in ``text`` it comes from.
        scans: In the order of the text.
        parameters: Its parameters.
        views: The ids of the views and external tables that it reads.
        is_placed: Whether a common table expression has a name that relations of plans have, so that relations are
            named with their schema.
        is_ordered: Whether its rows are ordered, and not limited.
        settled: The text that runs, if functions of the clock have become a parameter in it; else empty.
    """

    text: str
    spliced: Spliced
    scans: tuple[TableReference, ...]
    parameters: Parameters
    views: tuple[int, ...] = ()
    is_placed: bool = False
    is_ordered: bool = False
    settled: str = ""

    @property
    def relations(self) -> dict[str, dict[str, SqlType]]:
        """The columns that it can name of each scan, by the name of its relation."""
        return {scan.relation: {column.name: column.type for column in scan.visible_columns} for scan in self.scans}

    def refusal(self, reason: str, location: int | None) -> str:
        """Return the reason why rows are gathered, with advice and with its place in the text, if that is known.

        A reason with advice has a colon before it. Any other reason gets the advice that always helps.
        """
        advised = reason if ": " in reason else f"{reason}: filter by the partitioning key to gather less"
        if location is None or self.settled:
            return advised
        line, column = position_of(self.text, self.spliced.origin(location)[0])
        return f"{advised} (line {line}, column {column})"

    @property
    def sql(self) -> str:
        """The text that runs: relation names for tables, queries for views, and ``$1`` to ``$n`` for parameters."""
        return self.settled or self.spliced.sql

    @property
    def syntax(self) -> Syntax:
        """The syntax tree of the text that runs. Costs half a millisecond."""
        return parse_query(self.sql, tokenize(self.sql))


def bind_query(
    text: str,
    tokens: Sequence[Token],
    parameters: Parameters,
    find: FindRelation,
    guard: FindGuard = lambda table, is_changed: None,
    *,
    every_column: bool = False,
    behind_barriers: bool = False,
) -> Query:
    """Parse the tokens of one query and bind its tables.

    Args:
        text: The user's whole text.
        tokens: Those of the query, parameters already numbered.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name; raises UnknownTableError.
        guard: The condition that row policies put on a table, and whether it is the one that the statement changes.
        every_column: Whether scans have all columns of their tables, even those that the statement does not name.
        behind_barriers: Whether the text sees no other rows than those that the guards let pass, and need not say so.

    Raises:
        SqlSyntaxError: The text does not parse.
        UnknownTableError: With the position of the name.
        NotSupportedError: With the position of the part.
        ProgrammingError: A view that has become invalid, with the position of its name.
    """
    syntax = parse_query(text, tokens, parameters)
    words = _words(tokens)
    if words & REFUSED_WORDS:
        refuse_parts(syntax, text)
    doubtful = doubtful_calls(tokens)
    if doubtful:
        refuse_calls(doubtful, syntax, text)
    is_placed = _has_relation_names(syntax, words)
    binder = _Binder(find, guard, parameters.claim_places, is_placed, every_column, behind_barriers)
    splices: list[Splice] = list(binder.bind(text, words, syntax))
    common = [
        *_qualified_columns(syntax, words, binder.scans),
        *((start, end, f"${index + 1}") for start, end, index in parameters.spans),
        *claim_splices(text, tokens, parameters.claim_places),
    ]
    own = splice(text, tokens[0].start, tokens[-1].end + 1, splices + common)
    views = tuple(sorted(binder.views))
    return Query(text, own, tuple(binder.scans), parameters, views, binder.is_placed, syntax.is_ordered)


@dataclass(slots=True)
class _Binder:
    """Resolves table names, including those in views.

    Attributes:
        find: As for :func:`bind_query`.
        guard: As there.
        claims: The index of the parameter of each claim.
        is_placed: Whether relations are named with their schema, which no common table expression can shadow.
        every_column: As there.
        behind_barriers: As there.
        scans: The references to tables so far, in the order of the text that runs.
        views: The ids of the views and external tables that were met.
    """

    find: FindRelation
    guard: FindGuard
    claims: Mapping[str, int]
    is_placed: bool
    every_column: bool
    behind_barriers: bool
    scans: list[TableReference] = field(default_factory=list)
    views: set[int] = field(default_factory=set)
    _opened: int = 0
    _inside: list[str] = field(default_factory=list)

    def bind(self, text: str, words: Set[str], syntax: Syntax) -> Iterator[Splice]:
        """The place of each reference to a table or view in a query, and the text that is to stand there."""
        everything, starred = syntax.stars()
        everything = everything or self.every_column
        for name in syntax.tables():
            wide = everything or name.renames or folded(name.alias or name.name) in starred
            try:
                match find_relation(name.catalog, name.schema, name.name, self.find):
                    case _ if name.word == "SHOW":
                        raise NotSupportedError("SHOW inside of a query is not supported: read secateur.tables")
                    case relation if name.word in ("DESCRIBE", "DESC"):
                        yield name.opening, name.end, described_relation_sql(relation)
                        continue
                    case (TableDef() | ExternalTable()) as found:
                        external = found if isinstance(found, ExternalTable) else None
                        table = found.table if isinstance(found, ExternalTable) else found
                        has_row_ids = name.schema == WITH_ROW_IDS and table.has_row_ids
                        if has_row_ids:
                            _check_apart(syntax, name, table)
                        reference = self._scan(name, table, None if wide else words, external, has_row_ids=has_row_ids)
                    case ViewDef() as view:
                        reference = self._open(name, view)
            except DatabaseError as error:
                if self._inside:
                    raise
                if isinstance(error, UnknownTableError) and _is_defined(name.name, syntax):
                    error = NotSupportedError(
                        f"{name.name!r} cannot be seen from its query: WITH in parentheses directly behind another WITH"
                        " is not supported; write one WITH"
                    )
                length = name.end - name.start
                raise located(type(error), error.message, text, name.start, length, **error.details) from None
            if name.word == "TABLE":
                yield name.opening, name.end, f"FROM {reference}"
            else:  # SUMMARIZE takes a name or a query
                yield name.start, name.end, f"SELECT * FROM {reference}" if name.word else reference

    def _scan(
        self,
        name: TableName,
        table: TableDef,
        words: Set[str] | None,
        external: ExternalTable | None,
        *,
        has_row_ids: bool,
    ) -> str:
        """Make a scan of the columns that are among the words of the statement; of all of them for None."""
        number = len(self.scans)
        alias = name.alias or name.name
        place, renamed = "temp." if self.is_placed else "", "" if name.alias else f" AS {quoted(alias)}"
        system = table.name if folded(name.schema) == SYSTEM_SCHEMA else None
        scan = TableReference(f"s{number}", table, alias, (), system, external, has_row_ids)
        columns = [column.name for column in scan.visible_columns if words is None or folded(column.name) in words]
        some = table.declared_key[:1] or (table.columns[0].name,)
        guard = None if external is not None else self.guard(table, name.schema == WITH_ROW_IDS)
        if guard is None:
            self.scans.append(replace(scan, columns=tuple(columns) or some))
            if external is not None:
                self.views.add(table.table_id)
            return f"{place}s{number}{renamed}"
        named = {column.name for column in scan.visible_columns} if words is None else set(columns or some)
        needed = named | set(guard.condition.columns)
        self.scans.append(
            replace(
                scan,
                columns=tuple(column.name for column in table.columns if column.name in needed),
                guard=guard,
                guard_columns=frozenset(needed - named),
            )
        )
        listed = ", ".join(quoted(column.name) for column in scan.visible_columns if column.name in named)
        if self.behind_barriers:
            return f"(SELECT {listed} FROM {place}s{number}){renamed}"
        condition = guard.condition.sql(lambda claim: claim_text(claim, self.claims))
        return f"(SELECT {listed} FROM {place}s{number} WHERE {condition}){renamed}"

    def _open(self, name: TableName, view: ViewDef) -> str:
        """Return the query of a view in parentheses.

        Raises:
            ProgrammingError: The view reads itself, or a table that it reads has changed.
            LimitExceededError: The statement opens too many views.
        """
        inside = folded(view.name)
        self._opened += 1
        if self._opened > _VIEWS_MAX:
            raise LimitExceededError(
                f"the statement expands more than {_VIEWS_MAX} views, nested ones included: store the"
                " rows of one of them in a table"
            )
        if inside in self._inside:
            raise ProgrammingError(f"view {view.name!r} reads itself")
        if view.view_id:
            self.views.add(view.view_id)
        self._inside.append(inside)
        before = len(self.scans)
        try:
            tokens = tokenize(view.query)
            words = _words(tokens)
            syntax = parse_query(view.query, tokens)
            self.is_placed = self.is_placed or _has_relation_names(syntax, words)
            found = [
                *self.bind(view.query, words, syntax),
                *_qualified_columns(syntax, words, self.scans[before:]),
                *claim_splices(view.query, tokens, self.claims),
            ]
        except UnknownTableError as error:
            raise UnknownTableError(f"view {view.name!r} cannot be read: {error.message}", **error.details) from None
        finally:
            self._inside.pop()
        changed = view.stale_read(reads_of(self.scans[before:]))
        if changed is not None:
            raise ProgrammingError(
                f"view {view.name!r} cannot be read: table {changed.table!r} has other columns than when it was made;"
                " CREATE OR REPLACE it"
            )
        length = len(view.query)
        return _as_subquery(spliced(view.query, 0, length, found), view, name)


def _check_apart(syntax: Syntax, name: TableName, table: TableDef) -> None:
    """Refuse a change of a table without a primary key that takes its rows whole: they would have their hidden ids.

    Raises:
        NotSupportedError: It does, or may do so.
    """
    if syntax.takes_whole_rows(name.alias or name.name, {folded(column.name) for column in table.visible_columns}):
        raise NotSupportedError(
            f"{name.alias or name.name}.*, COLUMNS(...), #1 and rows as values are not supported in a change of"
            f" {table.name}, which has no primary key: name the columns, and give tables of subqueries another alias",
            table=table.name,
        )


def reads_of(scans: Sequence[TableReference]) -> tuple[ViewRead, ...]:
    """Return the reads of some scans in the form that a view stores."""
    return tuple(
        ViewRead(
            scan.table.name,
            tuple((name, str(scan.table.column(name).type)) for name in scan.columns if name not in scan.guard_columns),
        )
        for scan in scans
    )


def _is_defined(name: str, syntax: Syntax) -> bool:
    """Whether a name is that of a common table expression, which DuckDB's parser has lost."""
    return any(
        folded(token.text) == folded(name) and behind.word == "AS" and opening.word == "("
        for token, behind, opening in zip(syntax.tokens, syntax.tokens[1:], syntax.tokens[2:], strict=False)
    )


def _as_subquery(query: str, view: ViewDef, name: TableName) -> str:
    columns = f"({', '.join(map(quoted, view.renamed))})" if view.renamed else ""
    if not name.alias:
        return f"({query}) AS {quoted(name.name)}{columns}"
    return f"(SELECT * FROM ({query}) AS {quoted(view.name)}{columns})" if columns else f"({query})"


def _words(tokens: Sequence[Token]) -> Set[str]:
    """The names and keywords of a text, folded."""
    return {folded(token.text) for token in tokens if token.kind not in (TokenKind.STRING, TokenKind.NUMBER)}


def _qualified_columns(syntax: Syntax, words: Set[str], scans: Sequence[TableReference]) -> Iterator[Splice]:
    """``main.`` in front of ``t.k`` and of ``t``, which is to be left out: relations are in no schema.

    Not where it may be the name of a column, whose field has precedence over a table.
    """
    if words.isdisjoint(_LEFT_OUT):
        return
    nodes = list(nodes_of(syntax.node))
    tables = {folded(node["table_name"]) for node in nodes if node.get("type") == "BASE_TABLE"}
    aliases = {folded(node["alias"]) for node in nodes if "alias" in node}
    ctes = {name for node in nodes for name, _ in ctes_of(node)}
    columns = {folded(column.name) for scan in scans for column in scan.table.visible_columns}
    if not _LEFT_OUT.isdisjoint(aliases | ctes | columns):
        return
    for node in nodes:
        names = [folded(name) for name in node.get("column_names", ()) if "class" in node]
        is_row = len(names) == 2 and names[0] == MAIN not in tables and names[1] in tables  # of a table, as a value
        if is_row or (len(names) > 2 and names[0] in _LEFT_OUT):
            at = syntax.token_at(syntax.start(node))
            yield syntax.tokens[at].start, syntax.tokens[at + 2].start, ""


def _has_relation_names(syntax: Syntax, words: Set[str]) -> bool:
    """Whether a common table expression has a name that a relation of a plan may have, which it would shadow."""
    return "with" in words and any(
        _RELATION_NAME.fullmatch(name) for node in nodes_of(syntax.node) for name, _ in ctes_of(node)
    )
