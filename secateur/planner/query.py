"""A query bound to the catalog: every mention of a table is a scan with a relation name of its own.

The text that DuckDB runs is the user's own text with the table names exchanged, not a text made from a tree: what the user wrote is what runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType, exp

from secateur.engine.stage import stage_relation
from secateur.errors import NotSupportedError, UnknownTableError
from secateur.partitioning.table import TableDef
from secateur.planner.text.dialect import parse_query, quoted
from secateur.planner.text.folding import folded
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located

__all__ = ["Query", "Scan", "bind_query", "is_columns_call", "near_names", "renames_columns", "spliced"]

#: With these, how many rows an EXISTS looks at depends on the columns of its star.
_COUNTS_DISTINCT_ROWS: Final = ("distinct", "group", "having", "qualify", "limit", "offset")


@dataclass(frozen=True, slots=True)
class Scan:
    """One mention of a table.

    Attributes:
        relation: ``s0``, ``s1``, ... in the order of the text.
        table: The table.
        alias: The name by which the statement calls it.
        columns: The columns that the statement may need, in table order; at least one.
        node: The mention in the tree.
    """

    relation: str
    table: TableDef
    alias: str
    columns: tuple[str, ...]
    node: exp.Table


@dataclass(frozen=True, slots=True)
class Query:
    """A bound query.

    Attributes:
        text: The user's whole text, for positions.
        sql: The query's text with relation names for table names and ``$1`` to ``$n`` for parameters.
        gathered_sql: The same over the relations ``x0``, ``x1``, ..., which hold what was gathered of ``s0``, ``s1``, ...
        tree: sqlglot's tree of ``sql``.
        scans: In the order of the text.
        parameters: Its parameters.
    """

    text: str
    sql: str
    gathered_sql: str
    tree: exp.Expr
    scans: tuple[Scan, ...]
    parameters: Parameters


def bind_query(
    text: str, tokens: Sequence[Token], parameters: Parameters, find: Callable[[str], TableDef], rewritten: Sequence[tuple[int, int, str]] = ()
) -> Query:
    """Parse the tokens of one query and bind its tables.

    Args:
        text: The user's whole text.
        tokens: Those of the query, parameters already numbered.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name; raises UnknownTableError.
        rewritten: Spans of the text that the tokens say otherwise: first offset, offset behind, and what is to stand there.

    Raises:
        SqlSyntaxError: The text does not parse.
        UnknownTableError: With the position of the name.
    """
    tree = parse_query(text, tokens)
    words = {folded(token.text) for token in tokens if token.token_type not in (TokenType.STRING, TokenType.NUMBER)}
    everything, starred = _star_uses(tree)
    splices: list[tuple[int, int, str]] = []
    gathered: list[tuple[int, int, str]] = []
    scans: list[Scan] = []
    for node in _collect_tables(tree):
        table = _resolve(node, text, find)
        relation = f"s{len(scans)}"
        alias = node.alias or node.name
        start, end = int(node.this.meta["start"]), int(node.this.meta["end"]) + 1
        renamed = "" if node.alias else f" AS {quoted(alias)}"
        splices.append((start, end, f"{relation}{renamed}"))
        gathered.append((start, end, f"{stage_relation(len(scans))}{renamed}"))
        wide = everything or folded(alias) in starred or renames_columns(node)
        columns = tuple(column.name for column in table.columns if wide or folded(column.name) in words)
        scans.append(Scan(relation, table, alias, columns or table.primary_key[:1], node))
        node.set("this", exp.to_identifier(relation))
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    first, last = tokens[0].start, tokens[-1].end + 1
    numbered = [*rewritten, *((start, end, f"${index + 1}") for start, end, index in parameters.spans)]
    return Query(text, spliced(text, first, last, splices + numbered), spliced(text, first, last, gathered + numbered), tree, tuple(scans), parameters)


def _resolve(node: exp.Table, text: str, find: Callable[[str], TableDef]) -> TableDef:
    start, end = int(node.this.meta["start"]), int(node.this.meta["end"]) + 1
    if node.args.get("db") is not None:
        start = int(node.args["db"].meta.get("start", start))
        raise located(NotSupportedError, "a schema in front of a table name is not supported: tables have a name of one part", text, start, end - start)
    try:
        return find(node.name)
    except UnknownTableError as error:
        raise located(UnknownTableError, error.message, text, start, end - start, **error.details) from None


def _collect_tables(tree: exp.Expr) -> list[exp.Table]:
    """The mentions of tables in the order of the text. A name that a common table expression has taken is none, within its reach."""
    found: list[exp.Table] = []
    # Not recursive: a WHERE clause of ten thousand ORs is a tree as deep.
    pending: list[tuple[exp.Expr, frozenset[str]]] = [(tree, frozenset())]
    while pending:
        node, hidden = pending.pop()
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With):
            for cte in with_.expressions:
                name = folded(cte.alias)
                pending.append((cte.this, hidden | {name} if with_.args.get("recursive") else hidden))
                hidden = hidden | {name}
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and (node.args.get("db") is not None or folded(node.name) not in hidden):
            found.append(node)
        for key, value in node.args.items():
            if key != "with_":
                children = value if isinstance(value, list) else [value]
                pending.extend((child, hidden) for child in children if isinstance(child, exp.Expr))
    return sorted(found, key=lambda node: int(node.this.meta.get("start", 0)))


def _star_uses(tree: exp.Expr) -> tuple[bool, set[str]]:
    """Whether every column of every table may be needed, and the names of which, if they name a table, every column may be."""
    starred: set[str] = set()
    for node in tree.walk():
        if isinstance(node, exp.Star):
            holder = node.parent
            if isinstance(holder, exp.Column) and holder.table:
                starred.add(folded(holder.table))
            elif isinstance(holder, exp.Select):
                starred.update(() if _is_only_counted(holder) else (folded(table.alias or table.name) for table in _own_tables(holder)))
            elif not isinstance(holder, exp.Count):
                return True, starred
        elif is_columns_call(node) or isinstance(node, exp.Pivot) or (isinstance(node, exp.Join) and node.args.get("method")):
            # COLUMNS(...), PIVOT, NATURAL, ASOF and POSITIONAL joins look at columns that the text does not name.
            return True, starred
        elif isinstance(node, exp.Column) and not node.table:
            # A row as a value, ``SELECT t FROM t``, looks like a column named as the table.
            starred.add(folded(node.name))
    return False, starred


def _is_only_counted(select: exp.Select) -> bool:
    """Whether nobody sees the columns of a query: ``EXISTS (SELECT * FROM t WHERE ...)``."""
    return isinstance(select.parent, exp.Exists) and not any(select.args.get(clause) for clause in _COUNTS_DISTINCT_ROWS)


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    """The tables in the FROM clause of a query, whose columns its star stands for; those in subqueries pass through a select list, which names them."""
    pending = [clause for key in ("from_", "joins", "laterals") for clause in _children(select.args.get(key))]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Table):
            yield node
        if not isinstance(node, (exp.Select, exp.SetOperation)):
            pending.extend(child for value in node.args.values() for child in _children(value))


def _children(value: object) -> list[exp.Expr]:
    return [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, exp.Expr)]


def is_columns_call(node: exp.Expr) -> bool:
    """Whether a node is ``COLUMNS(...)``."""
    return isinstance(node, exp.Anonymous) and folded(node.name) == "columns"


def renames_columns(node: exp.Table) -> bool:
    """Whether a mention gives the columns other names: ``FROM t AS x(a, b)``."""
    alias = node.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.columns)


def spliced(text: str, first: int, last: int, splices: Sequence[tuple[int, int, str]]) -> str:
    """The text from ``first`` to before ``last`` with the spans that lie inside replaced."""
    parts: list[str] = []
    position = first
    for start, end, replacement in sorted(splice for splice in splices if first <= splice[0] and splice[1] <= last):
        parts.extend((text[position:start], replacement))
        position = end
    parts.append(text[position:last])
    return "".join(parts)


def near_names(name: str, names: Sequence[str]) -> str:
    """``did you mean a or b?`` for a name that is none of ``names``, or the names there are."""
    by_name = {candidate.casefold(): candidate for candidate in names}
    near = [by_name[match] for match in difflib.get_close_matches(name.casefold(), list(by_name), n=3)]
    return f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(by_name.values())}"
