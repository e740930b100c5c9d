"""Table references: the scans (``s0``, ...) and moved rows (``x0``, ...) that tables of a tree were replaced by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from secateur.planner.binding.query import Query
from secateur.planner.text.trees import copied, tables_in

_RELATION: Final = "relation"
_PASSES: Final = "passes"


def tagged_tree(query: Query) -> exp.Expr:
    """A copy of a query's tree in which the references of its scans are known as such."""
    for scan in query.scans:
        scan.node.meta[_RELATION] = scan.relation
    return copied(query.tree)


def relation_of(node: exp.Expr) -> str | None:
    """The relation of a reference; None for anything else, such as a common table expression or a table function."""
    relation = node.meta.get(_RELATION) if isinstance(node, exp.Table) else None
    return None if relation is None else str(relation)


def table_references(tree: exp.Expr) -> Iterator[tuple[exp.Table, str]]:
    """The references in a tree with their relations."""
    for node in tables_in(tree):
        relation = relation_of(node)
        if relation is not None:
            yield node, relation


def relations_in(tree: exp.Expr) -> list[str]:
    """The relations that a tree mentions, without repetitions."""
    return list(dict.fromkeys(relation for _, relation in table_references(tree)))


def as_table_reference(node: exp.Table, relation: str) -> exp.Table:
    """Mark a table as the reference of a relation."""
    node.meta[_RELATION] = relation
    return node


def exchanged_reference(relation: str, alias: exp.TableAlias | None = None) -> exp.Table:
    """A reference of moved rows."""
    return as_table_reference(exp.Table(this=exp.to_identifier(relation), alias=alias), relation)


def exchanged_query(relation: str) -> exp.Select:
    """All moved rows of a relation."""
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exchanged_reference(relation)))
    query.meta[_PASSES] = relation
    return query


def passed_through_relation(query: exp.Expr) -> str | None:
    """Return the relation all of whose rows a query returns unchanged; None for any other query."""
    relation = query.meta.get(_PASSES)
    plain = isinstance(query, exp.Select) and not any(
        value for key, value in query.args.items() if key not in ("expressions", "from_")
    )
    return str(relation) if relation is not None and plain else None


def pass_through_relation(query: exp.Expr) -> bool:
    """Whether a query is a projection of one relation, row by row, independent of its other rows."""
    if not isinstance(query, exp.Select) or any(
        value for key, value in query.args.items() if key not in ("expressions", "from_")
    ):
        return False
    if not all(
        isinstance(item.unalias(), exp.Column) or (isinstance(item, exp.Star) and not any(item.args.values()))
        for item in query.expressions
    ):
        return False
    from_ = query.args.get("from_")
    source = None if from_ is None else from_.this
    if source is None or any(value for key, value in source.args.items() if key not in ("this", "alias")):
        return False
    return pass_through_relation(source.this) if isinstance(source, exp.Subquery) else relation_of(source) is not None
