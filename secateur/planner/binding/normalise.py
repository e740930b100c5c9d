"""Makes a bound plan plain: common table expressions where they are read, EXISTS and IN as semi joins."""

from __future__ import annotations

from msgspec.structs import replace

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types, relations_in
from secateur.planner.tree.rewriting import (
    column_of,
    conjuncts,
    inputs_of,
    over_all_columns,
    over_columns,
    rebased,
    uncast,
    with_mark,
)
from secateur.planner.tree.stability import unstable_call

_DEDUP = "__duckdb_delim_dedup_"


def normalised(root: rel.AnyRelation) -> rel.AnyRelation:
    """The same query in a plainer form."""
    return _marks_joined(_inlined(over_all_columns(root)))


def _inlined(relation: rel.AnyRelation) -> rel.AnyRelation:
    """Common table expressions that are read once in the place where they are."""
    if isinstance(relation, rel.LogicalWith):
        definition, query = relation.children
        if relation.ctename.startswith(_DEDUP):
            query = _without_dedup(query, relation.table_index)
        definition, query = _inlined(definition), _with_outer_columns(_inlined(query), relation.table_index)
        if _references(query, relation.table_index) <= 1:
            return _exchanged(query, relation.table_index, definition)
        return replace(relation, children=(definition, query))
    return replace(relation, children=tuple(_inlined(child) for child in relation.children))


def _exchanged(relation: rel.AnyRelation, index: int, definition: rel.AnyRelation) -> rel.AnyRelation:
    if isinstance(relation, rel.LogicalWithReference) and relation.cte_index == index:
        return definition
    return replace(relation, children=tuple(_exchanged(child, index, definition) for child in relation.children))


def _references(relation: rel.AnyRelation, index: int) -> int:
    return sum(isinstance(one, rel.LogicalWithReference) and one.cte_index == index for one in relations_in(relation))


def _with_outer_columns(relation: rel.AnyRelation, index: int) -> rel.AnyRelation:
    """A correlated EXISTS or IN as a join with the outer rows themselves.

    DuckDB joins the rows of the subquery with the distinct values of the outer columns that it reads, and the outer
    rows with the result by these columns. For the question whether there is such a row, the outer rows will do.

    Source: the magic sets of "Unnesting Arbitrary Queries" (Neumann and Kemper, 2015), undone where they save nothing.
    """
    match relation:
        case rel.LogicalJoin(join_type="MARK", children=(rel.LogicalWithReference() as outer, inner)) if (
            outer.cte_index == index
        ):
            joined = _existing(relation, inner, index)
            return relation if joined is None else joined
        case rel.LogicalProject(children=(child,)):
            return replace(relation, children=(_with_outer_columns(child, index),))
        case _:
            return relation


def _existing(join: rel.LogicalJoin, inner: rel.AnyRelation, index: int) -> rel.AnyRelation | None:
    """The mark of EXISTS or IN over the outer rows; None where the subquery does more than filter its rows."""
    made: list[int | None] = list(range(len(column_types(inner))))
    while isinstance(inner, rel.LogicalProject):
        columns = [one.index if isinstance(one, ex.InputColumn) else None for one in inner.expressions]
        made = [None if place is None else columns[place] for place in made]
        (inner,) = inner.children
    match inner:
        case rel.LogicalFilter(
            expressions=conditions,
            children=(
                rel.LogicalCross(
                    children=(
                        rows,
                        rel.LogicalAggregate(
                            groups=groups, expressions=(), children=(rel.LogicalWithReference(cte_index=read),)
                        ),
                    )
                ),
            ),
        ) if read == index and not _references(rows, index) and unstable_call(conditions) is None:
            width = len(column_types(rows))
        case _:
            return None
    outer = [group.index for group in groups if isinstance(group, ex.InputColumn)]
    pairs = {
        (one.left.index, made[one.right.index])
        for one in join.conditions[: len(join.mark_types)]
        if one.comparison == "COMPARE_NOT_DISTINCT_FROM"
        and isinstance(one.left, ex.InputColumn)
        and isinstance(one.right, ex.InputColumn)
    }
    if len(outer) != len(groups) or pairs != {(column, width + place) for place, column in enumerate(outer)}:
        return None
    lefts = len(column_types(join.children[0]))
    places = {**{column: lefts + column for column in range(width)}, **dict(enumerate(outer, width))}
    asked = tuple(rel.JoinCondition(left=over_columns(one, places)) for one in conjuncts(conditions))
    own = {column: place for column, place in enumerate(made) if place is not None and place < width}
    compared = []
    for comparison in join.conditions[len(join.mark_types) :]:
        value = comparison.right
        if value is None or not inputs_of([value]) <= own.keys():
            return None
        compared.append(replace(comparison, right=over_columns(value, own)))
    return replace(
        join,
        children=(join.children[0], rows),
        conditions=(*asked, *compared),
        mark_types=tuple(ex.BOOLEAN for _ in asked),
    )


def _without_dedup(relation: rel.AnyRelation, index: int) -> rel.AnyRelation:
    """Without the semi joins by which DuckDB reduces a correlated subquery to the keys of the outer rows.

    The join with the outer rows by the same keys, which follows, leaves out the same rows, but takes NULL for equal to
    NULL: rows that the semi join leaves out for a NULL are filtered instead.
    """
    match relation:
        case rel.LogicalJoin(
            join_type="SEMI", children=(left, rel.LogicalWithReference() as keys), conditions=conditions
        ) if keys.cte_index == index:
            present = tuple(
                ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", return_type=ex.BOOLEAN, children=(one.left,))
                for one in conditions
                if one.comparison != "COMPARE_NOT_DISTINCT_FROM"
            )
            left = _without_dedup(left, index)
            return rel.LogicalFilter(children=(left,), expressions=present) if present else left
        case _:
            return replace(relation, children=tuple(_without_dedup(child, index) for child in relation.children))


def _marks_joined(relation: rel.AnyRelation) -> rel.AnyRelation:
    """Filters by the mark of a join as semi and anti joins."""
    if isinstance(relation, rel.LogicalJoin):
        relation = _membership(relation)
    if isinstance(relation, rel.LogicalFilter):
        relation = _below_projection(relation)
    if isinstance(relation, rel.LogicalFilter):
        relation = _mark_joined(relation)
    return replace(relation, children=tuple(_marks_joined(child) for child in relation.children))


def _membership(relation: rel.LogicalJoin) -> rel.AnyRelation:
    """``k = ANY(list)``, which DuckDB reads as a join with the elements, as an expression."""
    match relation:
        case rel.LogicalJoin(
            join_type="MARK",
            mark_types=(),
            children=(left, right),
            conditions=(condition,),
        ) if (
            condition.comparison == "COMPARE_EQUAL"
            and condition.right is not None
            and isinstance(uncast(condition.right, tried=False), ex.InputColumn)
            and (values := _listed(right)) is not None
        ):
            mark = ex.Written(sql="({0} = ANY({1}))", return_type=ex.BOOLEAN, children=(condition.left, values))
            columns = (column_of(index, type_) for index, type_ in enumerate(column_types(left)))
            return rel.LogicalProject(children=(left,), expressions=(*columns, mark))
        case _:
            return relation


def _listed(relation: rel.AnyRelation) -> ex.AnyExpression | None:
    """The list whose elements are the rows of a relation; None for any other relation."""
    match relation:
        case rel.LogicalProject(
            expressions=(ex.InputColumn(index=1),),
            children=(rel.LogicalUnnestRows(children=(rel.LogicalNothing(),), expressions=(ex.Unnest(child=values),)),),
        ) if not inputs_of([values]):
            return values
        case _:
            return None


def _below_projection(relation: rel.LogicalFilter) -> rel.AnyRelation:
    """A filter of computed columns as one of what they are computed from."""
    below = relation.children[0]
    if isinstance(below, rel.LogicalJoin):
        below = _membership(below)
    if not isinstance(below, rel.LogicalProject) or unstable_call(below.expressions) is not None:
        return relation
    columns = below.expressions
    conditions = tuple(rebased(one, lambda column: columns[column.index]) for one in relation.expressions)
    filtered = rel.LogicalFilter(children=below.children, expressions=conditions)
    return replace(below, children=(filtered,))


def _mark_joined(relation: rel.LogicalFilter) -> rel.AnyRelation:
    join = relation.children[0]
    if not isinstance(join, rel.LogicalJoin) or join.join_type != "MARK":
        return relation
    conditions = list(conjuncts(relation.expressions))
    mark = len(column_types(join.children[0]))
    asked = [one for one in conditions if mark in inputs_of([one])]
    others = [one for one in conditions if one not in asked]
    if len(asked) != 1:
        return relation
    match asked[0]:
        case ex.InputColumn():
            kind = "SEMI"
        case ex.BoundOperation(type="OPERATOR_NOT", children=(ex.InputColumn(),)) if len(join.conditions) == len(
            join.mark_types
        ):
            kind = "ANTI"
        case _:
            return relation
    left = join.children[0]
    if others:
        left = _mark_joined(rel.LogicalFilter(children=(left,), expressions=tuple(others)))
    return with_mark(replace(join, join_type=kind, children=(left, join.children[1])), mark=kind == "SEMI")
