"""Which tables a statement reads with all their columns, though it does not name them.

A column is read when its name is a word of the statement, or when something in it stands for columns: ``*``, ``COLUMNS(...)``, PIVOT, a NATURAL join, a row as
a value. What a ``*`` stands for are the columns of its own FROM clause: those of a table in a subquery pass through the subquery's select list, which names
them or has a star of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from secateur.planner.text.folding import folded

__all__ = ["Stars", "is_columns_call", "read_stars"]

#: With these, how many rows a query has depends on the columns of its star, and so does whether it has one behind an OFFSET.
_COUNTS_DISTINCT_ROWS = ("distinct", "group", "having", "qualify", "limit", "offset")


@dataclass(frozen=True, slots=True)
class Stars:
    """What stands for columns in a statement.

    Attributes:
        everything: Every column of every table may be needed.
        names: All columns of the tables that the statement calls so, folded.
        mentions: All columns of these mentions of tables, by identity of the node.
    """

    everything: bool
    names: frozenset[str]
    mentions: frozenset[int]

    def reach(self, mention: exp.Table) -> bool:
        """Whether all columns of a mention of a table may be needed."""
        return self.everything or id(mention) in self.mentions or folded(mention.alias or mention.name) in self.names


def read_stars(tree: exp.Expr) -> Stars:
    """Find what stands for columns. What is in a form that is not known stands for everything. Cost: one walk of the tree."""
    names: set[str] = set()
    mentions: set[int] = set()
    for node in tree.walk():
        if isinstance(node, exp.Star):
            holder = node.parent
            if isinstance(holder, exp.Column) and holder.table:
                names.add(folded(holder.table))
            elif isinstance(holder, exp.Select):
                mentions.update(() if _is_only_counted(holder) else map(id, _own_tables(holder)))
            elif not isinstance(holder, exp.Count):
                return Stars(True, frozenset(), frozenset())
        elif is_columns_call(node) or isinstance(node, exp.Pivot) or (isinstance(node, exp.Join) and node.args.get("method")):
            # COLUMNS(...), PIVOT, NATURAL, ASOF and POSITIONAL joins look at columns that the text does not name.
            return Stars(True, frozenset(), frozenset())
        elif isinstance(node, exp.Column) and not node.table:
            # A row as a value, ``SELECT t FROM t``, looks like a column named as the table.
            names.add(folded(node.name))
    return Stars(False, frozenset(names), frozenset(mentions))


def is_columns_call(node: exp.Expr) -> bool:
    """Whether a node is ``COLUMNS(...)``."""
    return isinstance(node, exp.Anonymous) and folded(node.name) == "columns"


def _is_only_counted(select: exp.Select) -> bool:
    """Whether nobody sees the columns of a query: ``EXISTS (SELECT * FROM t WHERE ...)``."""
    return isinstance(select.parent, exp.Exists) and not any(select.args.get(clause) for clause in _COUNTS_DISTINCT_ROWS)


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    """The mentions of tables in the FROM clause of a query, those in parentheses among them, those in subqueries not."""
    pending: list[exp.Expr] = [clause for key in ("from_", "joins", "laterals") for clause in _expressions(select.args.get(key))]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Table):
            yield node
        if not isinstance(node, (exp.Select, exp.SetOperation)):
            pending.extend(child for value in node.args.values() for child in _expressions(value))


def _expressions(value: object) -> list[exp.Expr]:
    return [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, exp.Expr)]
