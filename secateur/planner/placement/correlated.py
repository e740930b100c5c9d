"""Decorrelation: a correlated subquery becomes rows by key that are computed once.

A subquery that equates columns of its own with columns of the outer rows is evaluated for each of these rows, so each
member would need all rows that it reads. The same subquery for all keys at once is a query of its own, which can be
computed where its rows are; only a look-up by key remains::

    x > (SELECT 0.5 * sum(q) FROM t WHERE t.k = o.k AND t.d < 7)
    x > (SELECT v FROM rows WHERE k0 = o.k)          rows: SELECT k AS k0, 0.5 * sum(q) AS v FROM t WHERE d < 7 GROUP BY
    k

    EXISTS (SELECT * FROM t WHERE t.k = o.k AND t.d < 7)
    EXISTS (SELECT 1 FROM rows WHERE k0 = o.k)       rows: SELECT DISTINCT k AS k0 FROM t WHERE d < 7

The rows are restricted to keys that the outer rows can have, as far as a filter of one table, or IN with a subquery,
allows.

Source: Kim, "On Optimizing an SQL-like Nested Query" (1982), with the care for empty groups of Ganski and Wong (1987);
magic sets (Mumick et al., 1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.aggregates import NODES
from secateur.planner.placement.scan_rows import is_applied
from secateur.planner.placement.select_blocks import nested_queries
from secateur.planner.placement.table_references import exchanged_reference, relation_of
from secateur.planner.predicates.predicate import flat
from secateur.planner.relations.names import VisibleNames
from secateur.planner.text.trees import children_of

_PLAIN: Final = frozenset({"expressions", "from_", "joins", "where"})
_NULL_OF_NONE: Final = tuple(node for node, aggregate in NODES.items() if aggregate.of_nothing is None)
_STRICT: Final = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Neg,
    exp.Paren,
    exp.Cast,
    exp.Literal,
    exp.DataType,
    exp.DataTypeParam,
)
"""Operators that are NULL where an operand is NULL."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A correlated subquery as a look-up in rows by key.

    Attributes:
        rows: The rows for all keys: the keys ``k0``, ``k1``, ..., and for a value ``v``.
        outer: The outer expressions that the keys are compared with.
        has_value: Whether it yields a value; otherwise it tests whether there are rows.
    """

    rows: exp.Select
    outer: tuple[exp.Expr, ...]
    has_value: bool

    def over(self, relation: str) -> exp.Select:
        """The subquery over the computed rows."""
        conditions = [
            exp.EQ(this=_column(f"k{position}"), expression=outer.copy()) for position, outer in enumerate(self.outer)
        ]
        condition = exp.and_(*conditions, copy=False)
        item: exp.Expr = _column("v") if self.has_value else exp.Literal.number(1)
        return exp.Select(
            expressions=[item], from_=exp.From(this=exchanged_reference(relation)), where=exp.Where(this=condition)
        )


def lookup_of(query: exp.Expr, names: VisibleNames) -> Lookup | None:
    """Return a correlated subquery as a look-up, or None where that is not possible.

    Args:
        query: A subquery of WHERE or of a SELECT list: in parentheses for a value, bare inside of EXISTS.
        names: Those of its own FROM clause, without the outer ones.
    """
    select = query.this if isinstance(query, exp.Subquery) else query
    has_value = isinstance(query, exp.Subquery)
    if not isinstance(select, exp.Select) or not (
        _is_value(query) if has_value else isinstance(query.parent, exp.Exists)
    ):
        return None
    if any(value for key, value in select.args.items() if key not in _PLAIN) or not all(
        source.complete for source in names.sources
    ):
        return None
    where = select.args.get("where")
    if where is None or (has_value and not _is_null_of_none(select)):
        return None
    own: list[exp.Expr] = []
    keys: list[exp.Expr] = []
    outer: list[exp.Expr] = []
    for conjunct in flat(where.this, exp.And):
        if _is_own(conjunct, names):
            own.append(conjunct)
            continue
        sides = _key_and_outer(conjunct, names)
        if sides is None:
            return None
        keys.append(sides[0])
        outer.append(sides[1])
    if not keys or (has_value and not _is_own(select.expressions[0], names)):
        return None
    rows = select.copy()
    items: list[exp.Expr] = [exp.alias_(key.copy(), f"k{position}") for position, key in enumerate(keys)]
    if has_value:
        items.append(exp.alias_(select.expressions[0].unalias().copy(), "v"))
        rows.set("group", exp.Group(expressions=[exp.Literal.number(position + 1) for position in range(len(keys))]))
    else:
        rows.set("distinct", exp.Distinct())
    rows.set("expressions", items)
    rows.set("where", exp.Where(this=exp.and_(*(conjunct.copy() for conjunct in own), copy=False)) if own else None)
    return Lookup(rows, tuple(outer), has_value)


def with_asked_keys(lookup: Lookup, around: exp.Select, names: VisibleNames) -> Lookup:
    """A look-up without the keys that no row around asks for.

    Args:
        lookup: The look-up.
        around: The SELECT in which it stands.
        names: Those of the FROM clause around.
    """
    where = around.args.get("where")
    conjuncts = list(flat(where.this, exp.And)) if isinstance(where, exp.Where) else []
    found: list[exp.Expr] = []
    for item, outer in zip(lookup.rows.expressions, lookup.outer, strict=False):
        key = item.unalias()
        for conjunct in conjuncts:
            subquery = (
                conjunct.args.get("query") if isinstance(conjunct, exp.In) and conjunct.this.unnest() == outer else None
            )
            if isinstance(subquery, exp.Expr) and not any(
                names.is_local(column) for column in subquery.find_all(exp.Column)
            ):
                found.append(exp.In(this=key.copy(), query=subquery.copy()))
        asked = _asked_keys(outer, around, conjuncts, names)
        if asked is not None:
            found.append(exp.In(this=key.copy(), query=exp.Subquery(this=asked)))
    if not found:
        return lookup
    rows = lookup.rows.copy()
    own = rows.args.get("where")
    rows.set("where", exp.Where(this=exp.and_(*([own.this] if isinstance(own, exp.Where) else []), *found, copy=False)))
    return replace(lookup, rows=rows)


def _asked_keys(
    outer: exp.Expr, around: exp.Select, conjuncts: Sequence[exp.Expr], names: VisibleNames
) -> exp.Select | None:
    """Return the keys of the outer table's rows that pass its own filter; None if no filter leaves out many rows."""
    if not isinstance(outer, exp.Column):
        return None
    holders = [
        source.alias
        for source in names.sources
        if source.has(folded(outer.name)) and folded(outer.table or source.alias or "") == source.alias
    ]
    items = [around.args["from_"], *(around.args.get("joins") or [])]
    tables = [
        item.this for item in items if isinstance(item.this, exp.Table) and [folded(item.this.alias_or_name)] == holders
    ]
    if len(tables) != 1 or tables[0].args.get("joins"):
        return None
    relation = relation_of(tables[0])
    applied = [conjunct for conjunct in conjuncts if relation is not None and is_applied(conjunct, relation)]
    if not any(isinstance(conjunct, (exp.EQ, exp.In, exp.Like)) for conjunct in applied):
        return None
    condition = exp.and_(*(conjunct.copy() for conjunct in applied), copy=False)
    return exp.Select(
        expressions=[outer.copy()],
        distinct=exp.Distinct(),
        from_=exp.From(this=tables[0].copy()),
        where=exp.Where(this=condition),
    )


def _is_value(query: exp.Expr) -> bool:
    """Whether a subquery in parentheses is used as the value of its one row, and not as rows."""
    if any(value for key, value in query.args.items() if key not in ("this", "alias")):
        return False
    if isinstance(query.parent, exp.In):
        return query.arg_key == "this"
    return not isinstance(
        query.parent,
        (exp.From, exp.Join, exp.Lateral, exp.Any, exp.All, exp.Exists, exp.Array, exp.Anonymous, exp.Query),
    )


def _is_null_of_none(select: exp.Select) -> bool:
    """Whether a SELECT makes one value of all its rows, NULL if there are none."""
    if len(select.expressions) != 1:
        return False
    found = False
    pending = [select.expressions[0].unalias()]
    while pending:
        node = pending.pop()
        if isinstance(node, _NULL_OF_NONE):
            found = True
        elif isinstance(node, _STRICT):
            pending.extend(children_of(node))
        else:
            return False
    return found


def _key_and_outer(conjunct: exp.Expr, names: VisibleNames) -> tuple[exp.Expr, exp.Expr] | None:
    """The own and the outer side of an equality."""
    if not isinstance(conjunct, exp.EQ):
        return None
    sides = conjunct.this.unnest(), conjunct.expression.unnest()
    for mine, theirs in (sides, sides[::-1]):
        if (
            isinstance(mine, exp.Column)
            and isinstance(theirs, exp.Column)
            and names.is_local(mine)
            and _is_foreign(theirs, names)
        ):
            return mine, theirs
    return None


def _is_foreign(column: exp.Column, names: VisibleNames) -> bool:
    qualified = bool(column.table)
    return not names.is_local(column) and (
        qualified or not any(source.may_have(column.name.casefold()) for source in names.sources)
    )


def _is_own(part: exp.Expr, names: VisibleNames) -> bool:
    """Whether an expression refers only to the subquery's own rows."""
    if nested_queries(part) or isinstance(part, exp.Query):
        return False
    return all(names.is_local(column) for column in part.find_all(exp.Column))


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name))
