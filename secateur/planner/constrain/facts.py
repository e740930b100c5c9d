"""Facts: conditions that hold for every row of a relation, and columns in which no two rows agree.

A side of a join passes them to the other side. The rows of ``(SELECT * FROM dept WHERE id = 7) d`` have ``id = 7``, so
a row of ``emp`` that joins with one of them on ``dept_id = id`` has ``dept_id = 7``. A fact may be about columns that
the relation does not show; they then belong to some row of an input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, assert_never

from secateur.partitioning.tables.table import TableDef
from secateur.planner.constrain import nodes
from secateur.planner.constrain.condition import Condition, distinct, either, with_equal_columns
from secateur.planner.constrain.equivalence import columns_in
from secateur.planner.constrain.implication import Implication
from secateur.planner.constrain.numbering import Numbering
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import STRICT, compared
from secateur.planner.tree.equal_columns import equated
from secateur.planner.tree.rewriting import bare_column, column_of, inputs_of, uncast
from secateur.planner.tree.stability import unstable_call

_UNITED_MAX: Final = 64
"""The facts of inputs of UNION are an OR with a branch for each: of more inputs than this, nothing is said."""


class Facts:
    """The facts of the relations of a plan."""

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._known: dict[int, list[Condition]] = {}

    def of(self, relation: nodes.Relation) -> list[Condition]:
        """The facts of a relation."""
        found = self._known.get(id(relation))  # the plan has each as long as this
        if found is None:
            found = self._known[id(relation)] = distinct(self._derived(relation))
        return found

    def _derived(self, relation: nodes.Relation) -> Sequence[Condition]:
        match relation:
            case nodes.ScannedTable():
                return ()
            case nodes.Apart(facts=facts):
                return facts
            case nodes.JoinBlock(inputs=inputs, conditions=conditions):
                return [*(fact for one in inputs for fact in self.of(one)), *conditions]
            case nodes.Join():
                return self._of_join(relation)
            case nodes.Barrier():
                return self._of_barrier(relation)
            case nodes.SetOperation():
                return self._of_set(relation)
            case nodes.With(query=query):
                return self.of(query)
            case nodes.Reference(index=index, made=made, sources=sources):
                return self._shown(self.of(self._numbering.definitions[index]), made, sources)
            case _:
                assert_never(relation)

    def _of_join(self, join: nodes.Join) -> list[Condition]:
        above = {
            source.index: column_of(column, source.return_type)
            for column, source in join.filled.items()
            if isinstance(source, ex.InputColumn)
        }
        left, right = self.of(join.left), self.of(join.right)
        left_shown, right_shown = (side.columns & above.keys() for side in (join.left, join.right))
        match join.kind:
            case "SEMI":
                found = [*left, *right, *join.on]
            case "LEFT" | "SINGLE":
                found = [*left, *_of_matches([*right, *join.on], right_shown)]
            case "ANTI" | "MARK":
                found = left
            case "RIGHT":
                found = [*right, *_of_matches([*left, *join.on], left_shown)]
            case _:
                found = [*_of_matches(left, left_shown), *_of_matches(right, right_shown)]
        return [one.over(above) for one in found]

    def _of_barrier(self, barrier: nodes.Barrier) -> list[Condition]:
        facts = self.of(barrier.input)
        found: list[Condition] = []
        if barrier.keeps_facts:
            # A fact of a stopped column and one that is not would let a condition on the one pass by the other.
            stopped = inputs_of(barrier.stopped.values())
            made = [column_of(column, source.return_type) for column, source in barrier.stopped.items()]
            found += [one for one in facts if one.columns.isdisjoint(stopped)]
            found += self._shown(facts, made, tuple(barrier.stopped.values()))
        for column, source in (barrier.chosen or {}).items():
            # The value of one row below, unless there was none.
            if isinstance(source, ex.InputColumn):
                known = Implication(facts, self._numbering.known).about({source.index})
                shown = {source.index: column_of(column, source.return_type)}
                found += [
                    Condition(one.over(shown).expression, is_moved=True, unless_null=column)
                    for one in known
                    if one.columns == {source.index} and one.unless_null is None
                ]
            elif not inputs_of([source]) and unstable_call([source]) is None:
                fact = compared("COMPARE_EQUAL", column_of(column, source.return_type), source)
                found.append(Condition(fact, is_moved=True, unless_null=column))
        return found

    def _of_set(self, relation: nodes.SetOperation) -> list[Condition]:
        inputs = zip(relation.inputs, relation.sources, strict=True)
        match relation.kind:
            case "UNION":
                if len(relation.inputs) > _UNITED_MAX:
                    return []
                given = [self._shown(self.of(one), relation.made, sources) for one, sources in inputs]
                found = either([[one for one in facts if one.unless_null is None] for facts in given])
                return [] if found is None else [found]
            case "INTERSECT":
                return [one for input, sources in inputs for one in self._shown(self.of(input), relation.made, sources)]
            case _:
                return self._shown(self.of(relation.inputs[0]), relation.made, relation.sources[0])

    def _shown(
        self, facts: Iterable[Condition], made: Sequence[ex.InputColumn], sources: Sequence[ex.AnyExpression]
    ) -> list[Condition]:
        """Facts about columns that have other numbers above; what is not shown may differ from reader to reader."""
        found: list[Condition] = []
        above: dict[int, ex.InputColumn] = {}
        for column, source in zip(made, sources, strict=True):
            bare = bare_column(source)
            if bare is not None and bare.index not in above:
                above[bare.index] = column
            elif bare is not None:
                if above[bare.index].return_type == column.return_type:
                    same = compared("COMPARE_NOT_DISTINCT_FROM", above[bare.index], column)
                    found.append(Condition(same, is_moved=True))
            elif not inputs_of([source]):
                fact = compared("COMPARE_NOT_DISTINCT_FROM", column, source)
                found.append(Condition(fact, is_moved=True))
        hidden: dict[int, ex.InputColumn] = {}
        given = list(facts)
        certain = Implication(given, self._numbering.known).about(above.keys())
        for one in (*certain, *(fact for fact in given if fact.unless_null is not None)):
            if one.columns and one.columns.isdisjoint(above):
                continue
            for index, column in columns_in(one.expression).items():
                if index not in above and index not in hidden:
                    hidden[index] = self._numbering.column(column.return_type)
            shown = with_equal_columns(one.expression, {**hidden, **above})
            unless = None if one.unless_null is None else {**hidden, **above}[one.unless_null].index
            found.append(Condition(shown, is_moved=True, unless_null=unless))
        return found


def _of_matches(facts: Iterable[Condition], shown: Set[int]) -> Iterator[Condition]:
    """Facts of the rows of an outer join that have a match, where a column of the filled side is not NULL."""
    for one in facts:
        own = one.columns & shown
        if own and one.unless_null is None:
            yield Condition(one.expression, is_moved=True, unless_null=min(own))


def keys_of(facts: Iterable[Condition]) -> frozenset[bytes]:
    """What facts say."""
    return frozenset(one.key for one in facts)


def matches_once(join: nodes.Join, side: nodes.Relation, tables: Mapping[str, TableDef]) -> bool:
    """Whether a row of the other side certainly matches one row of a side at most, and no row of it raises an error.

    Such a side of an outer join changes nothing: each row of the other side comes once, with or without a match.

    ::

        SELECT emp.name FROM emp LEFT JOIN (SELECT DISTINCT id FROM dept) d ON emp.dept_id = d.id
        SELECT emp.name FROM emp

    The text that runs keeps the join, so every scan of the side reads no partition: the side is unique without rows as
    well. Sides and conditions with expressions that might raise an error about a row are left out.

    Source: Rao, Pirahesh, Zuzarte, "Canonical Abstraction for Outerjoin Optimization" (2004); Calcite
        (``ProjectJoinRemoveRule``), MariaDB ("table elimination").
    """
    keys: set[int] = set()
    for one in join.on:
        ours = [column.index for column in equated(one.expression) or () if column.index in side.columns]
        if len(ours) != 1:
            return False
        keys.update(ours)
    return _never_raises(side) and is_unique(side, frozenset(keys), tables)


def is_unique(relation: nodes.Relation, columns: frozenset[int], tables: Mapping[str, TableDef]) -> bool:
    """Whether no two rows agree in all of some columns. False when that is not certain."""
    match relation:
        case nodes.ScannedTable(table=table, names=names, own=own):
            key = tables[table].primary_key if table in tables else ()
            return bool(key) and set(key) <= {
                name for name, column in zip(names, own, strict=True) if column.index in columns
            }
        case nodes.JoinBlock(inputs=(input,)):
            return is_unique(input, columns, tables)
        case nodes.Barrier(input=input, unique=unique, groups=groups):
            if unique is not None and bool(unique) and unique <= columns:
                return True
            return not groups and not relation.stopped and is_unique(input, columns, tables)
        case _:
            return False


def _never_raises(relation: nodes.Relation) -> bool:
    match relation:
        case nodes.ScannedTable():
            return True
        case nodes.JoinBlock(inputs=(input,), conditions=conditions):
            return all(map(_compares_as_is, conditions)) and _never_raises(input)
        case nodes.Barrier(input=input, unique=unique):
            return unique is not None and not relation.chosen and _never_raises(input)
        case _:
            return False


def _compares_as_is(condition: Condition) -> bool:
    """Whether a condition compares a column with a literal, and casts the column for no row."""
    match condition.expression:
        case ex.Call(type=type_, children=(ex.InputColumn(), value)) if type_ in STRICT:
            return isinstance(uncast(value), ex.BoundConstant)  # DuckDB casts each literal
        case ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", children=(ex.InputColumn(),)):
            return True
        case _:
            return False
