"""Replaces references to common table expressions by subqueries or by rows that are computed once.

An expression with one reference becomes a subquery, one with several references becomes rows computed once. A recursive
one always becomes rows computed once: each step of the recursion needs the rows of the step before, on whichever
members they are. A UNION of WITH RECURSIVE that does not refer to itself is computed as a recursive one too, because
DuckDB casts its second part to the types of its first part there, as in a recursion, and not both to a common type.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import may_recur
from secateur.planner.fragments.qualified import NotDistributable
from secateur.planner.placement.select_blocks import same_union
from secateur.planner.placement.table_references import exchanged_reference, relation_of


def without_ctes(tree: exp.Expr, compute: Callable[[exp.CTE], str], recurse: Callable[[exp.CTE], str]) -> exp.Expr:
    """Return a tree without common table expressions.

    Args:
        tree: Changed in place.
        compute: Adds the stages that compute the rows of one; returns their relation.
        recurse: The same for a UNION of WITH RECURSIVE.

    Raises:
        NotDistributable: A reference has more than a name.
    """
    if tree.find(exp.With) is None:
        return tree
    for clause in tree.find_all(exp.With):
        _check_operand(clause)
    _drop_unused(tree)
    for holder in list(tree.walk(bfs=True)):
        with_ = holder.args.get("with_")
        if not isinstance(with_, exp.With):
            continue
        while with_.expressions:
            cte = with_.expressions[0]
            cte.pop()
            recurs = may_recur(with_, cte)
            _put(holder, cte, recurse if recurs else compute, once=not recurs)
        holder.set("with_", None)
    return tree


def _check_operand(with_: exp.With) -> None:
    """Refuse a WITH that keeps DuckDB from reading two UNIONs as one."""
    union = with_.parent
    around = None if union is None else union.parent
    while isinstance(around, exp.Subquery):
        around = around.parent
    if isinstance(around, exp.SetOperation) and same_union(around.this, around) is union:
        raise NotDistributable("a UNION with common table expressions of its own is an operand of another UNION")


def _drop_unused(tree: exp.Expr) -> None:
    """Take those out that nothing mentions, or only others that nothing mentions.

    DuckDB does not evaluate them either.
    """
    for with_ in reversed(list(tree.find_all(exp.With))):
        for cte in reversed(list(with_.expressions)):
            holder, name = with_.parent, folded(cte.alias)
            inside = {id(node) for node in cte.find_all(exp.Table)}
            if holder is not None and not any(
                is_mention(node, name) and id(node) not in inside and not _is_taken(node, name, holder)
                for node in holder.find_all(exp.Table)
            ):
                cte.pop()


def _is_taken(reference: exp.Table, name: str, holder: exp.Expr) -> bool:
    """Whether a query between a reference and ``holder`` has a common table expression of that name itself.

    The reference then means that one.
    """
    node: exp.Expr = reference
    while node.parent is not None and node.parent is not holder:
        around = node.parent
        with_ = around if isinstance(around, exp.With) else around.args.get("with_")
        if isinstance(with_, exp.With):
            if with_.parent is None or with_.parent is holder:
                return False
            # A definition can refer to those before it, and in a recursive WITH to itself.
            reached = (
                with_.expressions
                if with_ is not around
                else with_.expressions[: int(node.index or 0) + bool(with_.args.get("recursive"))]
            )
            if any(folded(cte.alias) == name for cte in reached):
                return True
            around = with_.parent
        node = around
    return False


def _put(holder: exp.Expr, cte: exp.CTE, compute: Callable[[exp.CTE], str], *, once: bool) -> None:
    """Replace the references to one, in later common table expressions and in the query itself.

    ``once`` allows a subquery if there is only one reference.
    """
    name = folded(cte.alias)
    if any(folded(inner.alias) == name for inner in holder.find_all(exp.CTE)):
        raise NotDistributable(f"two common table expressions are named {cte.alias}: rename one")
    found = [node for node in holder.find_all(exp.Table) if is_mention(node, name)]
    if not found:
        return
    strange = [
        key for node in found for key, value in node.args.items() if value and key not in ("this", "alias", "joins")
    ]
    if strange:
        raise NotDistributable(f"a common table expression with {strange[0].upper()} is not divided into stages")
    if len(found) == 1 and once:
        (node,) = found
        body = cte.this
        query = body.this if isinstance(body, exp.Subquery) and not _modified(body) else body
        node.replace(_with_joins(exp.Subquery(this=query, alias=_alias(node, cte)), node))
        return
    relation = compute(cte)
    for node in found:
        node.replace(_with_joins(exchanged_reference(relation, _alias(node, cte)), node))


def _with_joins(item: exp.Expr, node: exp.Table) -> exp.Expr:
    """Return an item of FROM with the joins of a reference in parentheses: ``(cte JOIN t ON ...)``."""
    item.set("joins", node.args.get("joins"))
    return item


def is_mention(node: exp.Table, name: str) -> bool:
    """Whether a table reference may mean the common table expression of a folded name."""
    plain = isinstance(node.this, exp.Identifier) and node.args.get("db") is None
    return plain and relation_of(node) is None and folded(node.name) == name


def _modified(subquery: exp.Subquery) -> bool:
    return any(value for key, value in subquery.args.items() if key != "this")


def _alias(node: exp.Table, cte: exp.CTE) -> exp.TableAlias:
    """The alias of a reference, with the names that it or the definition gives to columns."""
    given, defined = node.args.get("alias"), cte.args["alias"]
    renamed = list(given.columns) if isinstance(given, exp.TableAlias) else []
    columns = [*renamed, *defined.columns[len(renamed) :]]
    identifier = given.this if isinstance(given, exp.TableAlias) and given.this is not None else node.this
    return exp.TableAlias(this=identifier.copy(), columns=[column.copy() for column in columns])
