"""A query bound to the catalog: every table reference is a scan with a relation name of its own.

DuckDB runs the user's own text with the table names exchanged, not a text printed from a tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import Token, TokenType, exp

from secateur.errors import DatabaseError, LimitExceededError, NotSupportedError, ProgrammingError, UnknownTableError
from secateur.partitioning.tables.external_table import ExternalTable
from secateur.partitioning.tables.identifier import folded, quoted
from secateur.partitioning.tables.table import TableDef
from secateur.planner.binding.functions import doubtful_calls, refuse_calls
from secateur.planner.binding.refused import WORDS as REFUSED_WORDS
from secateur.planner.binding.refused import refuse_parts
from secateur.planner.system.information_schema import SCHEMA as INFORMATION_SCHEMA
from secateur.planner.system.names import MAIN, find_relation
from secateur.planner.system.show import described_relation_sql
from secateur.planner.system.tables import SCHEMA as SYSTEM_SCHEMA
from secateur.planner.text.dialect import parse_query, tokenize
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located, position_of
from secateur.planner.text.splicing import Splice, Spliced, splice, spliced
from secateur.planner.text.trees import children_of, nodes_in
from secateur.planner.views.view import ViewDef, ViewRead

_LEFT_OUT: Final = frozenset({MAIN, SYSTEM_SCHEMA, INFORMATION_SCHEMA})
_VIEWS_MAX: Final = 500
_DESCRIBE: Final = re.compile(r"\bDESC(?:RIBE)?\s+(?:TABLE\s+)?$", re.IGNORECASE)
_RELATION_NAME: Final = re.compile(r"[sx]\d+")
"""Scans are ``s0``, ``s1``, ..., and the rows of stages ``x0``, ``x1``, ..."""

_COUNTS_DISTINCT_ROWS: Final = ("distinct", "group", "having", "qualify", "limit", "offset")
"""With these clauses, the number of rows that an EXISTS sees depends on the columns of its star."""


@dataclass(frozen=True, slots=True)
class TableReference:
    """One reference to a table.

    Attributes:
        relation: ``s0``, ``s1``, ... in the order of the text.
        table: The table.
        alias: The name by which the statement calls it.
        columns: The columns that the statement may need, in table order; at least one.
        node: The reference in the tree.
        system: The name of a system table; None for a table of the user.
        external: The external table; None for any other.
    """

    relation: str
    table: TableDef
    alias: str
    columns: tuple[str, ...]
    node: exp.Table
    system: str | None = None
    external: ExternalTable | None = None

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
        tree: sqlglot's tree of ``sql``.
        scans: In the order of the text.
        parameters: Its parameters.
        views: The ids of the views and external tables that it reads.
        is_placed: Whether a common table expression has a name that relations of plans have, so that relations are
            named with their schema.
        settled: The text that runs, if functions of the clock have become a parameter in it; else empty.
    """

    text: str
    spliced: Spliced
    tree: exp.Expr
    scans: tuple[TableReference, ...]
    parameters: Parameters
    views: tuple[int, ...] = ()
    is_placed: bool = False
    settled: str = ""

    def refusal(self, reason: str, location: int | None) -> str:
        """Return the reason why rows are gathered, with advice and with its place in the text, if that is known.

        A reason with advice has a colon before it. Any other reason gets the advice that always helps.

        Args:
            reason: The reason.
            location: Where the text that runs needs the rows.
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


def bind_query(
    text: str,
    tokens: Sequence[Token],
    parameters: Parameters,
    find: Callable[[str], TableDef | ViewDef | ExternalTable],
    *,
    every_column: bool = False,
) -> Query:
    """Parse the tokens of one query and bind its tables.

    Args:
        text: The user's whole text.
        tokens: Those of the query, parameters already numbered.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name; raises UnknownTableError.
        every_column: Whether scans have all columns of their tables, even those that the statement does not name.

    Raises:
        SqlSyntaxError: The text does not parse.
        UnknownTableError: With the position of the name.
        NotSupportedError: With the position of the part.
        ProgrammingError: A view that has become invalid, with the position of its name.
    """
    tree = parse_query(text, tokens)
    words = _words(tokens)
    if words & REFUSED_WORDS:
        refuse_parts(tree, text)
    doubtful = doubtful_calls(tokens)
    if doubtful:
        refuse_calls(doubtful, tree.find_all(exp.Anonymous), text)
    binder = _Binder(find, is_placed=_has_relation_names(tree, words), every_column=every_column)
    splices: list[Splice] = []
    for (start, end), reference in binder.bind(text, words, tree):
        splices.append((start, end, reference))
    qualified = _qualified_columns(tree, words)
    first, last = tokens[0].start, tokens[-1].end + 1
    common = [*qualified, *((start, end, f"${index + 1}") for start, end, index in parameters.spans)]
    own = splice(text, first, last, splices + common)
    is_reread = bool(binder.is_rewritten or qualified or binder.is_placed)
    if is_reread:
        # More than names was replaced in the text that runs, so its tree is parsed from itself.
        tree = parse_query(own.sql, tokenize(own.sql))
        scans = tuple(replace(scan, node=node) for scan, node in zip(binder.scans, _relation_nodes(tree), strict=True))
    else:
        scans = tuple(binder.scans)
        for scan in scans:
            scan.node.set("this", exp.to_identifier(scan.relation))
            scan.node.set("db", None)
            scan.node.set("catalog", None)
            if not scan.node.alias:
                scan.node.set("alias", exp.TableAlias(this=exp.to_identifier(scan.alias, quoted=True)))
    return Query(text, own, tree, scans, parameters, tuple(sorted(binder.views)), binder.is_placed)


class _Binder:
    """Resolves table names, including those in views.

    Attributes:
        scans: The references to tables so far, in the order of the text that runs.
        views: The ids of the views and external tables that were met.
        is_rewritten: Whether more than names was replaced in the text that runs, such as a view by its query.
        is_placed: Whether relations are named with their schema, which no common table expression can shadow.
    """

    def __init__(
        self, find: Callable[[str], TableDef | ViewDef | ExternalTable], *, is_placed: bool, every_column: bool
    ) -> None:
        self.scans: list[TableReference] = []
        self.views: set[int] = set()
        self.is_placed = is_placed
        self.is_rewritten = False
        self._find = find
        self._every_column = every_column
        self._opened = 0
        self._inside: list[str] = []

    def bind(self, text: str, words: Set[str], tree: exp.Expr) -> Iterator[tuple[tuple[int, int], str]]:
        """The place of each reference to a table or view in a query, and the text that is to stand there."""
        everything, starred = _star_uses(tree)
        everything = everything or self._every_column
        for node in _collect_tables(tree):
            wide = (
                everything
                or isinstance(node.parent, exp.Summarize)
                or folded(node.alias or node.name) in starred
                or renames_columns(node)
            )
            try:
                match find_relation(node.catalog, node.db, node.name, self._find):
                    case relation if isinstance(node.parent, exp.Describe):
                        self.is_rewritten = True
                        yield _span_of_description(text, node), described_relation_sql(relation)
                        continue
                    case (TableDef() | ExternalTable()) as found:
                        external = found if isinstance(found, ExternalTable) else None
                        table = found.table if isinstance(found, ExternalTable) else found
                        named = [column.name for column in table.columns if wide or folded(column.name) in words]
                        reference = self._scan(node, table, named, external)
                    case ViewDef() as view:
                        reference = self._open(node, view)
            except DatabaseError as error:
                if self._inside:
                    raise
                start, end = _span(node)
                if isinstance(error, UnknownTableError) and folded(node.name) == "show":
                    error = NotSupportedError("SHOW inside of a query is not supported: read secateur.tables")
                raise located(type(error), error.message, text, start, end - start, **error.details) from None
            yield _span(node), reference

    def _scan(self, node: exp.Table, table: TableDef, columns: Sequence[str], external: ExternalTable | None) -> str:
        number = len(self.scans)
        alias = node.alias or node.name
        place, renamed = "temp." if self.is_placed else "", "" if node.alias else f" AS {quoted(alias)}"
        system = table.name if folded(node.db) == SYSTEM_SCHEMA else None
        some = table.primary_key[:1] or (table.columns[0].name,)
        self.scans.append(TableReference(f"s{number}", table, alias, tuple(columns) or some, node, system, external))
        if external is not None:
            self.views.add(table.table_id)
        reference = f"{place}s{number}{renamed}"
        return self._as_query(reference) if isinstance(node.parent, exp.Summarize) else reference

    def _as_query(self, reference: str) -> str:
        """Return a query for a name in a place that allows a name or a query: ``SUMMARIZE t``."""
        self.is_rewritten = True
        return f"SELECT * FROM {reference}"

    def _open(self, node: exp.Table, view: ViewDef) -> str:
        """Return the query of a view in parentheses.

        Raises:
            ProgrammingError: The view reads itself, or a table that it reads has changed.
            LimitExceededError: The statement opens too many views.
        """
        name = folded(view.name)
        self._opened += 1
        self.is_rewritten = True
        if self._opened > _VIEWS_MAX:
            raise LimitExceededError(
                f"the statement expands more than {_VIEWS_MAX} views, nested ones included: store the"
                " rows of one of them in a table"
            )
        if name in self._inside:
            raise ProgrammingError(f"view {view.name!r} reads itself")
        if view.view_id:
            self.views.add(view.view_id)
        self._inside.append(name)
        before = len(self.scans)
        try:
            tokens = tokenize(view.query)
            words = _words(tokens)
            tree = parse_query(view.query, tokens)
            self.is_placed = self.is_placed or _has_relation_names(tree, words)
            found = list(self.bind(view.query, words, tree))
            qualified = _qualified_columns(tree, words)
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
        query = spliced(view.query, 0, length, [*((*span, reference) for span, reference in found), *qualified])
        return _as_subquery(query, view, node)


def reads_of(scans: Sequence[TableReference]) -> tuple[ViewRead, ...]:
    """Return the reads of some scans in the form that a view stores."""
    return tuple(
        ViewRead(scan.table.name, tuple((name, str(scan.table.column(name).type)) for name in scan.columns))
        for scan in scans
    )


def _as_subquery(query: str, view: ViewDef, node: exp.Table) -> str:
    names = f"({', '.join(map(quoted, view.renamed))})" if view.renamed else ""
    if not node.alias:
        return f"({query}) AS {quoted(node.name)}{names}"
    return f"(SELECT * FROM ({query}) AS {quoted(view.name)}{names})" if names else f"({query})"


def _span(node: exp.Table) -> tuple[int, int]:
    """The span of a name in the text, with the schema in front of it."""
    parts = [part for part in (node.args.get("catalog"), node.args.get("db"), node.this) if part is not None]
    return int(parts[0].meta["start"]), int(parts[-1].meta["end"]) + 1


def _span_of_description(text: str, node: exp.Table) -> tuple[int, int]:
    """The span of ``DESCRIBE t``.

    Raises:
        NotSupportedError: There is more between the two, such as a comment.
    """
    start, end = _span(node)
    word = _DESCRIBE.search(text, 0, start)
    if word is None:
        raise NotSupportedError(
            "DESCRIBE of a table with something between the two inside of a query is not supported: write DESCRIBE t"
        )
    return word.start(), end


def _words(tokens: Sequence[Token]) -> Set[str]:
    """The names and keywords of a text, folded."""
    return {folded(token.text) for token in tokens if token.token_type not in (TokenType.STRING, TokenType.NUMBER)}


def _qualified_columns(tree: exp.Expr, words: Set[str]) -> list[Splice]:
    """``main.`` in front of ``t.k`` and of ``t``, which is to be left out: relations are in no schema."""
    if words.isdisjoint(_LEFT_OUT) or any(folded(alias.name) in _LEFT_OUT for alias in tree.find_all(exp.TableAlias)):
        return []
    found: list[Splice] = []
    tables = {folded(table.name) for table in tree.find_all(exp.Table)}
    for column in tree.find_all(exp.Column):
        schema, table = column.args.get("db"), column.args.get("table")
        if (
            schema is None
            and table is not None
            and folded(table.name) == MAIN not in tables
            and folded(column.name) in tables
            and "start" in table.meta
        ):
            found.append(
                (int(table.meta["start"]), int(column.this.meta["start"]), "")
            )  # the row of a table, as a value
        if (
            schema is not None
            and table is not None
            and column.args.get("catalog") is None
            and folded(schema.name) in _LEFT_OUT
            and "start" in schema.meta
        ):
            found.append((int(schema.meta["start"]), int(table.meta["start"]), ""))
    return found


def _has_relation_names(tree: exp.Expr, words: Set[str]) -> bool:
    """Whether a common table expression has a name that a relation of a plan may have, which it would shadow."""
    return "with" in words and any(_RELATION_NAME.fullmatch(folded(cte.alias)) for cte in tree.find_all(exp.CTE))


def _relation_nodes(tree: exp.Expr) -> list[exp.Table]:
    """The references to relations in the tree of the text that runs, in their order."""
    nodes = [node for node in _collect_tables(tree) if _RELATION_NAME.fullmatch(node.name)]
    return sorted(nodes, key=lambda node: int(node.name[1:]))


def _collect_tables(tree: exp.Expr) -> list[exp.Table]:
    """The references to tables in the order of the text.

    A name that a common table expression has taken is none, within its reach.
    """
    found: list[exp.Table] = []
    # Not recursive: a WHERE clause of ten thousand ORs is a tree as deep.
    pending: list[tuple[exp.Expr, frozenset[str]]] = [(tree, frozenset())]
    first_parts: dict[int, str] = {}
    while pending:
        node, hidden = pending.pop()
        hidden -= {first_parts.get(id(node), "")}
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With):
            for cte in with_.expressions:
                name = folded(cte.alias)
                pending.append((cte.this, hidden | {name} if may_recur(with_, cte) else hidden))
                if name not in hidden and (first := _first_part(cte)) is not None:
                    first_parts[id(first)] = name
                hidden = hidden | {name}
        if (
            isinstance(node, exp.Table)
            and isinstance(node.this, exp.Identifier)
            and (node.args.get("db") is not None or folded(node.name) not in hidden)
        ):
            found.append(node)
        for key, value in node.args.items():
            if key != "with_":
                pending.extend((child, hidden) for child in nodes_in(value))
    return sorted(found, key=lambda node: int(node.this.meta.get("start", 0)))


def _star_uses(tree: exp.Expr) -> tuple[bool, set[str]]:
    """Return whether every column of every table may be needed, and names of tables that may need every column."""
    starred: set[str] = set()
    for node in tree.walk():
        if isinstance(node, exp.Star):
            holder = node.parent
            if isinstance(holder, exp.Column) and holder.table:
                starred.add(folded(holder.table))
            elif isinstance(holder, exp.Select):
                starred.update(
                    ()
                    if _is_only_counted(holder)
                    else (folded(table.alias or table.name) for table in _own_tables(holder))
                )
            elif not isinstance(holder, exp.Count):
                return True, starred
        elif (
            is_columns_call(node)
            or isinstance(node, (exp.Pivot, exp.PositionalColumn))
            or (isinstance(node, exp.Join) and joins_unnamed(node))
        ):
            # COLUMNS(...), #2, PIVOT, NATURAL and POSITIONAL joins read columns that the text does not name.
            return True, starred
        elif isinstance(node, exp.Column) and (not node.table or folded(node.table) == MAIN):
            # A row as a value, ``SELECT t FROM t`` or ``SELECT main.t FROM t``, looks like a column named as the table.
            starred.add(folded(node.name))
    return False, starred


def _is_only_counted(select: exp.Select) -> bool:
    """Whether the columns of a query are not used: ``EXISTS (SELECT * FROM t WHERE ...)``."""
    return isinstance(select.parent, exp.Exists) and not any(
        select.args.get(clause) for clause in _COUNTS_DISTINCT_ROWS
    )


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    """Yield the tables in the FROM clause of a query, whose columns its star stands for.

    Those in subqueries are behind a select list, which names their columns.
    """
    pending = [clause for key in ("from_", "joins", "laterals") for clause in nodes_in(select.args.get(key))]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Table):
            yield node
        if not isinstance(node, (exp.Select, exp.SetOperation)):
            pending.extend(children_of(node))


def is_columns_call(node: exp.Expr) -> bool:
    """Whether a node is ``COLUMNS(...)``."""
    return isinstance(node, exp.Anonymous) and folded(node.name) == "columns"


def may_recur(with_: exp.With, cte: exp.CTE) -> bool:
    """Whether a common table expression refers to itself by its own name: in WITH RECURSIVE, one that is a UNION.

    In any other the name is that of a table.
    """
    return bool(with_.args.get("recursive")) and isinstance(cte.this.unnest(), exp.Union)


def _first_part(cte: exp.CTE) -> exp.Expr | None:
    """The part of a UNION that is evaluated before the recursion, where the expression's name is that of a table.

    None where a WITH clause in front of it may take the name as well.
    """
    body = cte.this.unnest()
    has_names = body.args.get("with_") is not None or cte.this.args.get("with_") is not None
    return body.this if isinstance(body, exp.Union) and not has_names else None


def joins_unnamed(join: exp.Join) -> bool:
    """Whether a join reads columns that it does not name."""
    return str(join.args.get("method") or "").upper() not in ("", "ASOF")


def renames_columns(node: exp.Table) -> bool:
    """Whether an alias stands for all columns of a table, or names them by position: ``FROM t AS x(a, b)``.

    The alias may be that of parentheses around the table, or around a join that it is part of: DuckDB parses ``FROM (t
    JOIN u ON ...) AS x`` as a query of all columns, ``(SELECT * FROM t JOIN u ON ...) AS x``.
    """
    item: exp.Expr | None = node
    while item is not None:
        if isinstance(item, exp.Join):
            # In parentheses the joins belong to the first item, whose own alias does not apply to them.
            first = item.parent
            item = None if isinstance(first, (exp.Select, exp.SetOperation)) or first is None else first.parent
            continue
        if not isinstance(item, exp.Table) and (not isinstance(item, exp.Subquery) or holds_query(item)):
            return False
        alias = item.args.get("alias")
        if isinstance(alias, exp.TableAlias) and (alias.columns or isinstance(item, exp.Subquery)):
            return True
        item = item.parent
    return False


def holds_query(node: exp.Subquery) -> bool:
    """Whether parentheses are around a query.

    Around a join, or a query with a name of its own, they hold an item of FROM: ``((SELECT 1 AS a) x JOIN t)``.
    """
    inside = node.this
    while isinstance(inside, exp.Subquery):
        if any(inside.args.get(key) for key in ("alias", "joins")):
            return False
        inside = inside.this
    return isinstance(inside, (exp.Query, exp.Values))
