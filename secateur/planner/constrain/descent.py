"""Which conditions reach which scan.

There is one rule for each relation. All follow from one law: a condition passes to an input when every row of the
input, whether it is present or left out, influences only rows of the relation that have the same value in each column
of the condition. A condition that does not pass is kept as a note, so that EXPLAIN can say why a scan is not pruned.

Source: "RelNode Prunability Rules" of the Hazelcast SQL seed, where a join is prunable only if both its sides are, and
as a whole; here each scan has its own conditions, and a join passes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, assert_never

from secateur.engine.kernels.duckdb.cancellation import check_cancelled
from secateur.partitioning.tables.table import TableDef
from secateur.planner.constrain import nodes
from secateur.planner.constrain.condition import NEVER, Condition, distinct, of_all, plain, said
from secateur.planner.constrain.equivalence import columns_in
from secateur.planner.constrain.facts import Facts, keys_of, matches_once
from secateur.planner.constrain.implication import Implication
from secateur.planner.constrain.null_rejection import NOT_TRUE, NULL, Truths, is_never_true, rejected
from secateur.planner.constrain.numbering import Numbering, ScanColumn
from secateur.planner.prune.shown import shown
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.rewriting import Join, bare_column, column_of, exchanged, rebased, with_join_types
from secateur.planner.tree.stability import unstable_call

Reached = list[tuple[nodes.ScannedTable, list[Condition]]]
_REDUCED: Final = frozenset({"LEFT", "RIGHT", "FULL", "MARK"})
"""Joins that the plan has in their reduced form; a SINGLE join also refuses a second match, and stays."""
_JOINED: Final = "{predicate} only joins the key: compare either side with a value"


class _Descent:
    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._facts = Facts(numbering)
        self._read: dict[int, list[tuple[bool, list[Condition]]]] = {}
        self.reduced: list[tuple[Join, str]] = []
        self.reached: Reached = []

    def visit(self, relation: nodes.Relation, passed: Sequence[Condition]) -> None:
        """Pass conditions to the scans below a relation."""
        check_cancelled()  # of a hundred joins on one key, this takes long
        match relation:
            case nodes.ScannedTable():
                self.reached.append((relation, list(passed)))
            case nodes.JoinBlock(inputs=inputs, conditions=conditions):
                # Conditions nearer to the rows come first, as they are evaluated first.
                self._region(inputs, [*conditions, *passed])
            case nodes.Join():
                self._join(relation, passed)
            case nodes.Barrier():
                self._barrier(relation, passed)
            case nodes.SetOperation():
                self._set_operation(relation, passed)
            case nodes.With(index=index, definition=definition, query=query):
                self.visit(query, passed)
                self.visit(definition, self._of_readers(index))
            case nodes.Reference(index=index, made=made, sources=sources):
                below = {column.index: source for column, source in zip(made, sources, strict=True)}
                self._read.setdefault(index, []).append((relation.is_outer, [one.over(below) for one in passed]))
            case nodes.Apart(inputs=inputs):
                for one in inputs:
                    self.visit(one, ())
            case _:
                assert_never(relation)

    def _of_readers(self, index: int) -> list[Condition]:
        """What holds for the rows of a common table expression that matter to one of its readers."""
        found = self._read.pop(index, [])
        # What makes rows for values of the outer rows makes none that matter for the others.
        readers = [told for is_outer, told in found if is_outer] or [told for _, told in found]
        if not readers:
            return []
        notes = [one for reader in readers for one in reader if one.blocked is not None]
        return [*of_all([list(plain(reader)) for reader in readers]), *notes]

    def _region(self, inputs: Sequence[nodes.Relation], held: Sequence[Condition]) -> None:
        facts = [self._facts.of(one) for one in inputs]
        implication = Implication([*plain(held), *(fact for one in facts for fact in one)], self._numbering.known)
        for one, own in zip(inputs, facts, strict=True):
            known = keys_of(own) - keys_of(held)
            self.visit(one, [*implication.about(one.columns, known), *_notes(held, one.columns)])

    def _join(self, join: nodes.Join, passed: Sequence[Condition]) -> None:
        reduced = self._reduced(join, passed)
        if reduced != join.kind and join.kind in _REDUCED:
            self.reduced.append((join.bound, reduced))
        lefts, rights = self._facts.of(join.left), self._facts.of(join.right)
        held = list(plain(passed))
        both = [*held, *lefts, *rights]
        match reduced:
            case "INNER":
                told = [self._merged(join, one, join.left).over(join.filled) for one in passed]
                self._region((join.left, join.right), [*join.on, *told])
            case "SEMI":
                # A row of the left without a match is removed, and one of the right matters only to its matches.
                self._region((join.left, join.right), [*join.on, *passed])
            case "ANTI":
                self._side(join.left, [*held, *lefts], passed, lefts)
                self._side(join.right, [*join.on, *both], (), rights)
            case "MARK":
                self._side(join.left, [*held, *lefts], passed, lefts)
                self._side(join.right, [*self._exact(join, both), *both], (), rights)
            case "LEFT" | "SINGLE":
                told = [self._merged(join, one, join.left).over(join.lefts) for one in passed]
                self._side(join.left, [*plain(told), *lefts], told, lefts)
                self._filled(join, join.right, [*join.on, *plain(told), *lefts, *rights], passed)
            case "RIGHT":
                told = [self._merged(join, one, join.right).over(join.rights) for one in passed]
                self._side(join.right, [*plain(told), *rights], told, rights)
                self._filled(join, join.left, [*join.on, *plain(told), *lefts, *rights], passed)
            case _:
                for side, own in ((join.left, lefts), (join.right, rights)):
                    merged = [self._merged(join, one, side) for one in held]
                    lost = [one for one, told in zip(held, merged, strict=True) if one.expression is told.expression]
                    self._side(side, [*merged, *own], self._filled_notes(join, lost, side), own)

    def _filled(
        self, join: nodes.Join, side: nodes.Relation, held: Sequence[Condition], passed: Sequence[Condition]
    ) -> None:
        """Pass conditions to the side that is filled with NULL, of which a row matters to its matches alone.

        No row matters where nothing is read of them, and a row of the other side has one match at most.
        """
        numbering = self._numbering
        is_unread = join.kind != "SINGLE" and numbering.read.isdisjoint(join.filled_of(side))
        if is_unread and matches_once(join, side, numbering.tables):
            self.visit(side, [NEVER])
        else:
            self._side(side, held, self._filled_notes(join, passed, side), self._facts.of(side))

    def _side(
        self, side: nodes.Relation, held: Sequence[Condition], noted: Sequence[Condition], facts: Sequence[Condition]
    ) -> None:
        notes = _notes(noted, side.columns)
        known = keys_of(facts) - keys_of(noted)
        self.visit(side, [*Implication(held, self._numbering.known).about(side.columns, known), *notes])

    def _reduced(self, join: nodes.Join, passed: Sequence[Condition]) -> str:
        """What a join is under conditions that reject the rows that it fills with NULL."""
        held, kind = list(plain(passed)), join.kind
        lefts, rights = dict.fromkeys(join.lefts, NULL), dict.fromkeys(join.rights, NULL)
        match kind:
            case "LEFT" | "SINGLE":
                return "INNER" if self._is_rejected(held, rights) else kind
            case "RIGHT":
                return "INNER" if self._is_rejected(held, lefts) else kind
            case "MARK" if join.mark is not None:
                return "SEMI" if self._is_rejected(held, {join.mark.index: NOT_TRUE}) else kind
            case "FULL":
                refuses_left, refuses_right = self._is_rejected(held, lefts), self._is_rejected(held, rights)
                if refuses_left and refuses_right:
                    return "INNER"
                return "LEFT" if refuses_left else "RIGHT" if refuses_right else kind
            case _:
                return kind

    def _is_rejected(self, conditions: Sequence[Condition], columns: Mapping[int, Truths]) -> bool:
        """Whether conditions reject all rows in which columns are so."""
        known = {**self._numbering.known, **columns}
        return any(
            one.unless_null is None and not one.columns.isdisjoint(columns) and is_never_true(one, known)
            for one in conditions
        )

    def _exact(self, join: nodes.Join, known: Sequence[Condition]) -> Iterator[Condition]:
        """The conditions of a MARK join that a row of the right meets, or else it changes no mark.

        A NULL among the values that are compared, or a NULL that is looked for among others, makes a mark NULL.
        """
        for one in join.on:
            match one.expression:
                case ex.Call(type="COMPARE_NOT_DISTINCT_FROM"):
                    yield one
                case ex.Call(children=sides) if all(self._is_never_null(side, known) for side in sides):
                    yield one
                case _:
                    pass

    def _is_never_null(self, node: ex.AnyExpression, held: Sequence[Condition]) -> bool:
        column, known = bare_column(node), self._numbering.known
        return column is not None and (column.index in known or bool(rejected(held, [column.index], known)))

    def _merged(self, join: nodes.Join, condition: Condition, side: nodes.Relation) -> Condition:
        """A condition with the value of one side in the place of the first that is not NULL of both.

        A row of the side has that value in all rows that it makes, and those that it would leave unmatched have it too.
        """
        expression = condition.expression
        for left, right in join.merged:
            listed = [_values_of(left), _values_of(right)]
            both = {tuple(map(said, (*listed[0], *listed[1]))), tuple(map(said, (*listed[1], *listed[0])))}
            above = left if side is join.left else right
            value = rebased(above, lambda column: join.filled.get(column.index, column))
            expression = _with_value(expression, both, value)
        return replace(condition, expression=expression)

    def _filled_notes(self, join: nodes.Join, passed: Sequence[Condition], side: nodes.Relation) -> list[Condition]:
        kind = "LEFT" if join.kind == "SINGLE" else join.kind
        reason = (
            f"{{predicate}} can hold for rows that the {kind} JOIN fills with NULLs: use an inner join, or a condition"
            " that NULL does not satisfy"
        )
        below = join.filled_of(side)
        return [one.over(below).block(reason) for one in passed if not one.columns.isdisjoint(below)]

    def _barrier(self, barrier: nodes.Barrier, passed: Sequence[Condition]) -> None:
        below = barrier.input.columns
        found: list[Condition] = []
        for one in passed:
            lost = sorted(one.columns & barrier.stopped.keys())
            if lost:
                name = next((self._numbering.names[column] for column in lost if column in self._numbering.names), "it")
                found.append(one.over(barrier.stopped).block(barrier.reason.replace("{name}", name)))
            if not one.columns or not one.columns.isdisjoint(below):
                found.append(one.over({}, is_moved=True) if barrier.groups else one)
        self.visit(barrier.input, found)

    def _set_operation(self, relation: nodes.SetOperation, passed: Sequence[Condition]) -> None:
        """A row influences rows equal to it.

        Conditions pass to all inputs: a row of the right side of EXCEPT removes only rows that are equal to it. Rows of
        EXCEPT are rows of its left side, rows of INTERSECT are rows of both.
        """
        facts_of_all = () if relation.kind == "UNION" else self._facts.of(relation)
        implied = [one.over({}, is_moved=True) for one in facts_of_all]
        held = distinct([*passed, *implied])
        for one, sources in zip(relation.inputs, relation.sources, strict=True):
            below = {column.index: source for column, source in zip(relation.made, sources, strict=True)}
            own = [
                condition.over(below)
                for condition in held
                if not condition.columns or not condition.columns.isdisjoint(below)
            ]
            facts = self._facts.of(one)
            self._side(one, [*plain(own), *facts], own, facts)


def _notes(conditions: Sequence[Condition], side: Set[int]) -> list[Condition]:
    return [one for one in conditions if one.blocked is not None and not one.columns.isdisjoint(side)]


def _values_of(node: ex.AnyExpression) -> tuple[ex.AnyExpression, ...]:
    """The values of which an expression is the first that is not NULL."""
    match node:
        case ex.BoundOperation(type="OPERATOR_COALESCE", children=children):
            return children
        case _:
            return (node,)


def _with_value(node: ex.AnyExpression, coalesced: Set[tuple[bytes, ...]], value: ex.AnyExpression) -> ex.AnyExpression:
    """An expression with a value in the place of the first that is not NULL of some."""

    def change(one: ex.AnyExpression) -> ex.AnyExpression | None:
        listed = _values_of(one)
        return value if len(listed) > 1 and tuple(map(said, listed)) in coalesced else None

    return exchanged(node, change)


@dataclass(frozen=True, slots=True)
class ScanConditions:
    """The conditions on one scan of a statement.

    A row of the scan for which one of its conditions is not TRUE cannot influence the answer, so its partition need not
    be read for it.

    Attributes:
        names: The name of each input column of the conditions; those behind them are other tables' columns.
        others: What the user calls those.
        conjuncts: What certainly holds for the rows that matter.
        local: The indexes of those that the user wrote about this scan alone, and that may be applied to its rows
            before anything else.
        notes: Why other conditions on its key do not reach it, in the user's terms.
        is_whole: Whether the conjuncts are all conditions of the statement on the scan.
    """

    names: tuple[str, ...]
    conjuncts: tuple[ex.AnyExpression, ...] = ()
    local: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    is_whole: bool = True
    others: tuple[str, ...] = ()


NOTHING: Final = ScanConditions((), (NEVER.expression,))
"""On a scan that is not in the plan: DuckDB reads none of its rows."""


@dataclass(frozen=True, slots=True)
class Constrained:
    """A plan, and the conditions on its scans.

    Attributes:
        root: The plan. An outer join in it is an inner join, or another outer join, where a condition rejects the rows
            that it fills with NULL, and a MARK join a semi join where one rejects the rows without a match.
        numbering: Its columns.
        conditions: The conditions on each scan of a table, by the name of its relation. Of one that is not named,
            nothing is read: see :data:`NOTHING`.
    """

    root: rel.AnyRelation
    numbering: Numbering
    conditions: Mapping[str, ScanConditions]


def constrained(
    root: rel.AnyRelation,
    tables: Mapping[str, TableDef],
    aliases: Mapping[str, str] = MappingProxyType({}),
    lists: Mapping[ScanColumn, int] = MappingProxyType({}),
) -> Constrained:
    """Find the conditions on the scans of a plan.

    What one join has become may reduce another.

    Args:
        root: The plan, in its plain form.
        tables: The tables, by the names of their relations.
        aliases: What the statement calls them.
        lists: As for :class:`~secateur.planner.constrain.numbering.Numbering`.

    Cost: a walk through the plan, once more whenever a join was reduced.
    """
    while True:
        numbering = Numbering(root, tables, aliases, lists)
        descent = _Descent(numbering)
        descent.visit(numbering.root, [])
        if not descent.reduced:
            break
        root = with_join_types(root, descent.reduced)
    found: dict[str, Reached] = {}
    for scan, conditions in descent.reached:
        found.setdefault(scan.table, []).append((scan, conditions))
    of_scans = {name: _of_scan(scans, tables.get(name), numbering) for name, scans in found.items()}
    return Constrained(root, numbering, of_scans)


def _of_scan(
    scans: Sequence[tuple[nodes.ScannedTable, Sequence[Condition]]], table: TableDef | None, plan: Numbering
) -> ScanConditions:
    names = tuple(dict.fromkeys(name for scan, _ in scans for name in scan.names))
    given, others = [], dict[int, str]()
    for scan, conditions in scans:
        places = {column.index: names.index(name) for column, name in zip(scan.own, scan.names, strict=True)}
        given.append([_by_position(condition, places, len(names)) for condition in distinct(conditions)])
        for index, place in places.items():
            if place >= len(names):
                others.setdefault(place, plan.shown(index))
    held = of_all([list(plain(conditions)) for conditions in given])
    joined = [one for one in held if _only_joins(one, len(names))]
    apart = [one for one in held if not _only_joins(one, len(names))]
    blocked = [one for conditions in given for one in conditions if one.blocked is not None]
    local = frozenset(
        index
        for index, one in enumerate(apart)
        if not one.is_moved
        and all(column < len(names) for column in one.columns)
        and unstable_call([one.expression]) is None
    )
    key = frozenset() if table is None else frozenset(table.scheme.columns)
    noted = [*blocked, *(one.block(_JOINED) for one in joined)]
    return ScanConditions(
        names,
        tuple(one.expression for one in apart),
        local,
        tuple(dict.fromkeys(_reasons(noted, names, tuple(others.values()), key))),
        is_whole=not noted,
        others=tuple(others.values()),
    )


def _by_position(condition: Condition, places: dict[int, int], width: int) -> Condition:
    """A condition over the positions of the scan's columns; those of others get places behind them."""
    found = {}
    for index, column in columns_in(condition.expression).items():
        place = places.setdefault(index, width + sum(place >= width for place in places.values()))
        found[index] = column_of(place, column.return_type)
    return condition.over(found)


def _only_joins(condition: Condition, width: int) -> bool:
    """Whether it only equates a column with one from elsewhere.

    Conditions on the other column have been carried to this column already.
    """
    match condition.expression:
        case ex.Call(type="COMPARE_EQUAL" | "COMPARE_NOT_DISTINCT_FROM", children=(left, right)):
            sides = bare_column(left), bare_column(right)
            return sum(side is not None and side.index < width for side in sides) == 1 and None not in sides
        case _:
            return False


def _reasons(
    blocked: Sequence[Condition], names: Sequence[str], others: Sequence[str], key: frozenset[str]
) -> Iterator[str]:
    for one in blocked:
        if one.blocked is not None and any(column < len(names) and names[column] in key for column in one.columns):
            yield one.blocked.replace("{predicate}", shown(one.expression, [*names, *others]))
