"""From a bound plan to relations over numbered columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import count
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from secateur.partitioning.tables.table import TableDef
from secateur.planner.aggregates import AGGREGATES
from secateur.planner.constrain import nodes
from secateur.planner.constrain.condition import Condition, said
from secateur.planner.constrain.correlation import has_outer_rows
from secateur.planner.constrain.equivalence import columns_in
from secateur.planner.constrain.lists import element_of, in_parameter, with_lists
from secateur.planner.constrain.null_rejection import NOT_NULL, Truths
from secateur.planner.prune.shown import UNNAMED
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types, expressions_of
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.equal_columns import equals_are_identical, equated
from secateur.planner.tree.rewriting import (
    any_of,
    bare_column,
    cast_of,
    column_of,
    conditions_of,
    conjuncts,
    exchanged,
    inputs_of,
    rebased,
    within,
)
from secateur.planner.tree.stability import unstable_call
from secateur.planner.tree.types import LogicalType, StructInfo

Outputs: TypeAlias = tuple[ex.AnyExpression, ...]
"""What the columns of a relation are, over numbered columns."""

_PARTS_MAX: Final = 48
"""An expression of a projection with more parts is a column of its own: it would grow where it is read often."""
_JOINS: Final = frozenset({"INNER", "LEFT", "RIGHT", "FULL", "OUTER", "SINGLE", "SEMI", "ANTI", "MARK"})
_FILLS_RIGHT: Final = frozenset({"LEFT", "FULL", "SINGLE"})
_FILLS_LEFT: Final = frozenset({"RIGHT", "FULL"})

_OUTER_ROWS: Final = "__duckdb_delim_"
"""What the names of the outer rows of correlated subqueries begin with."""

_BELOW: Final = "the filter {predicate} cannot be pushed below "
_LIMITED: Final = _BELOW + "{word}: filter inside it if you mean its input"
_GROUPED: Final = _BELOW + "GROUP BY, which does not name {name}: group by {name}, or filter inside the subquery"
_FIRST: Final = _BELOW + "DISTINCT ON, which does not name {name}: add {name} to it, or filter inside the subquery"
_WINDOWED: Final = (
    _BELOW + "a window that is not partitioned by {name}: partition it by {name}, or filter inside the subquery"
)
_NEAREST: Final = _BELOW + "an ASOF JOIN that does not compare {name}: join on {name}, or filter inside the subquery"


class ScanColumn(NamedTuple):
    """A column of a scan: the name of its relation (``s0``), and of the column."""

    relation: str
    column: str


class Numbering:
    """Numbers the columns of a plan.

    Args:
        root: The plan, in its plain form.
        tables: The tables, by the names of their relations.
        aliases: What the statement calls them.
        lists: The parameters that have all values of columns of scans, by index: what a condition equates with such a
            column is in the list as well.

    Attributes:
        root: The relations of the plan.
        tables: The tables.
        known: What columns may be: those that do not hold NULL.
        names: The names of columns of tables, under each number that they have.
        definitions: The common table expressions that are read more than once.
        read: The columns that something reads; complete once the whole plan is numbered.
        sources: What columns are below the relation that gives them another number, in the order of the numbers.
        joined: The columns of scans that conditions equate, wherever they stand.
    """

    def __init__(
        self,
        root: rel.AnyRelation,
        tables: Mapping[str, TableDef],
        aliases: Mapping[str, str] = MappingProxyType({}),
        lists: Mapping[ScanColumn, int] = MappingProxyType({}),
    ) -> None:
        self.tables = tables
        self._aliases = aliases
        self._lists = lists
        self._scanned: dict[int, ScanColumn] = {}
        self.joined: list[tuple[ScanColumn, ScanColumn]] = []
        self._columns = count()
        self._outputs: dict[int, Outputs] = {}
        self.known: dict[int, Truths] = {}
        self.names: dict[int, str] = {}
        self.definitions: dict[int, nodes.Relation] = {}
        self.read: set[int] = set()
        self.sources: dict[int, ex.AnyExpression] = {}
        self._outer: set[int] = set()
        self.root, outputs = self.relation(root)
        self.read |= inputs_of(outputs)
        for column, source in reversed(self.sources.items()):
            if column in self.read:
                self.read |= inputs_of([source])

    def column(self, type_: LogicalType) -> ex.InputColumn:
        """A column with a number of its own."""
        return column_of(next(self._columns), type_)

    def relation(self, relation: rel.AnyRelation) -> tuple[nodes.Relation, Outputs]:
        """A relation, and what its columns are."""
        match relation:
            case rel.LogicalScan() if relation.table is not None:
                return self._scan(relation, relation.table)
            case rel.LogicalFilter():
                node, outputs = self.relation(relation.children[0])
                return self._region([node], self._conditions(relation.expressions, outputs)), outputs
            case rel.LogicalProject():
                node, outputs = self.relation(relation.children[0])
                if any(isinstance(part, ex.UnresolvedColumn) for one in relation.expressions for part in within(one)):
                    self.read |= inputs_of(outputs)
                    return node, self._made(column_types(relation))
                return node, tuple(self._computed(one) for one in _over(relation.expressions, outputs))
            case rel.LogicalSort():
                node, outputs = self.relation(relation.children[0])
                self._reads(expressions_of(relation), outputs)
                return node, outputs
            case rel.LogicalCross():
                return self._join(relation)
            case rel.LogicalJoin() | rel.LogicalConditionJoin() if relation.join_type in _JOINS:
                return self._join(relation)
            case rel.LogicalAggregate():
                return self._aggregate(relation)
            case rel.LogicalWindow():
                return self._window(relation)
            case rel.LogicalUnnestRows():
                return self._unnest(relation)
            case rel.LogicalDistinct():
                return self._distinct(relation)
            case rel.LogicalLimit():
                word = "LIMIT" if relation.limit_val.type != "UNSET" else "OFFSET"
                return self._stopped(relation, _LIMITED.replace("{word}", word))
            case rel.LogicalSample():
                return self._stopped(relation, _LIMITED.replace("{word}", "a sample"))
            case rel.LogicalUnion() | rel.LogicalExcept() | rel.LogicalIntersect():
                return self._set_operation(relation)
            case rel.LogicalWith():
                return self._with(relation)
            case rel.LogicalWithReference() if relation.cte_index in self._outputs:
                return self._reference(relation)
            case rel.LogicalValues():
                return self._values(relation)
            case _:
                return self._apart(relation)

    def _conditions(self, expressions: Iterable[ex.AnyExpression], outputs: Outputs) -> tuple[Condition, ...]:
        """Conditions on the columns of a relation, without those that are TRUE."""
        given = [self._named(with_lists(one)) for one in _over(conjuncts(expressions), outputs)]
        self.read |= inputs_of(given)
        found = [Condition(one) for one in given if not self._is_true(one)]
        return (*found, *self._listed(found))

    def _named(self, node: ex.AnyExpression) -> ex.AnyExpression:
        """A condition; one of a join has no name yet, and some distinguish NULL where there is none."""
        match node:
            case ex.Call(type="COMPARE_NOT_DISTINCT_FROM", children=(left, right)) if self._is_never_null(
                left
            ) or self._is_never_null(right):
                return compared("COMPARE_EQUAL", left, right)
            case _:
                return node

    def _is_true(self, node: ex.AnyExpression) -> bool:
        """Whether a condition holds for all rows; DuckDB adds some where it makes a join of a subquery."""
        match node:
            case ex.BoundConstant(value=value):
                return value.value is True
            case ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", children=(ex.InputColumn(index=index),)):
                return index in self.known and node.query_location is None
            case ex.Call(type="COMPARE_EQUAL", children=(ex.InputColumn(index=index), ex.InputColumn(index=other))):
                return index == other and index in self.known
            case ex.Call(type="COMPARE_NOT_DISTINCT_FROM", children=(left, right)):
                return said(left) == said(right) and unstable_call([left]) is None
            case _:
                return False

    def _listed(self, conditions: Iterable[Condition]) -> Iterator[Condition]:
        """That columns which are equal to others are in their lists."""
        for one in conditions:
            pair = equated(one.expression)
            if pair is None or one.expression.type != "COMPARE_EQUAL":
                continue  # NULLs that are not distinct are elements of no list
            scanned = [(column, origin) for column in pair if (origin := self._origin(column)) is not None]
            if len(scanned) == 2 and scanned[0][1] != scanned[1][1]:
                self.joined.append((scanned[0][1], scanned[1][1]))
            for column, origin in scanned:
                if origin in self._lists:
                    yield Condition(in_parameter(column, self._lists[origin]), is_moved=True)

    def shown(self, column: int) -> str:
        """What the user calls a column, with the name of its table."""
        origin = self._origin(column_of(column, ex.BOOLEAN))
        return UNNAMED if origin is None else f"{self._aliases.get(origin.relation, origin.relation)}.{origin.column}"

    def _origin(self, column: ex.AnyExpression) -> ScanColumn | None:
        """The column of a scan of which a column has a value in each row, or NULL; None for any other."""
        while isinstance(column, ex.InputColumn) and column.index in self.sources:
            column = self.sources[column.index]
        return self._scanned.get(column.index) if isinstance(column, ex.InputColumn) else None

    def _reads(self, expressions: Iterable[ex.AnyExpression], outputs: Outputs) -> None:
        self.read |= inputs_of(_over(expressions, outputs))

    def _made(self, types: Iterable[LogicalType]) -> tuple[ex.InputColumn, ...]:
        return tuple(map(self.column, types))

    def _apart(self, relation: rel.AnyRelation) -> tuple[nodes.Relation, Outputs]:
        inputs = []
        for child in relation.children:
            node, outputs = self.relation(child)
            self.read |= inputs_of(outputs)
            inputs.append(node)
        made = self._made(column_types(relation))
        return nodes.Apart(_numbers(made), tuple(inputs)), made

    def _scan(self, scan: rel.LogicalScan, table: str) -> tuple[nodes.Relation, Outputs]:
        names = tuple(name or "rowid" for name in scan.column_names)
        made = self._made(column_types(scan))
        definition = self.tables.get(table)
        never_null = frozenset() if definition is None else definition.never_null
        for name, column in zip(names, made, strict=True):
            self.names[column.index] = name
            self._scanned[column.index] = ScanColumn(table, name)
            if name in never_null:
                self.known[column.index] = NOT_NULL
        return nodes.ScannedTable(_numbers(made), table, names, made), made

    def _computed(self, node: ex.AnyExpression) -> ex.AnyExpression:
        """What a column of a projection is: the expression, where it has one value and is not too long."""
        match node:
            case ex.InputColumn():
                return node
            case ex.Case(case_checks=(ex.When(then_expr=ex.Call(name="error")),)):
                # A scalar subquery that fails on more than one row.
                self.read |= inputs_of([node])
                return self._computed(node.else_expr)
            case _:
                pass
        if len(within(node)) <= _PARTS_MAX and unstable_call([node]) is None:
            return node
        self.read |= inputs_of([node])
        return self.column(node.return_type)

    def _region(self, inputs: Sequence[nodes.Relation], conditions: Sequence[Condition]) -> nodes.Relation:
        flat: list[nodes.Relation] = []
        found: list[Condition] = []
        for one in inputs:
            if isinstance(one, nodes.JoinBlock):
                flat += one.inputs
                found += one.conditions
            else:
                flat.append(one)
        columns = frozenset(column for one in flat for column in one.columns)
        return nodes.JoinBlock(columns, tuple(flat), (*found, *conditions))

    def _join(
        self, relation: rel.LogicalCross | rel.LogicalJoin | rel.LogicalConditionJoin
    ) -> tuple[nodes.Relation, Outputs]:
        first, second = relation.children
        if isinstance(first, rel.LogicalWithReference) and first.cte_index in self._outer:
            left, lefts = self._reference(first, is_outer=True)
        else:
            left, lefts = self.relation(first)
        right, rights = self.relation(second)
        if isinstance(relation, rel.LogicalCross):
            return self._region([left, right], ()), (*lefts, *rights)
        if isinstance(relation, rel.LogicalAsofJoin):
            right, rights = self._nearest(relation, right, rights)
        kind = "FULL" if relation.join_type == "OUTER" else relation.join_type
        on = self._conditions(conditions_of(relation), (*lefts, *rights))
        if kind == "INNER":
            return self._region([left, right], on), (*lefts, *rights)
        merged = [_equated(one, left.columns) for one in on] if kind in ("LEFT", "RIGHT", "FULL") else []
        mark = self.column(ex.BOOLEAN) if kind == "MARK" else None
        filled_lefts: dict[int, ex.AnyExpression] = {}
        filled_rights: dict[int, ex.AnyExpression] = {}
        if kind in _FILLS_LEFT:
            lefts = self._filled(lefts, filled_lefts)
        if kind in _FILLS_RIGHT:
            rights = self._filled(rights, filled_rights)
        columns = {*filled_lefts, *filled_rights} if mark is None else {mark.index}
        if kind not in _FILLS_LEFT:
            columns |= left.columns
        if kind == "RIGHT":
            columns |= right.columns
        node = nodes.Join(
            frozenset(columns),
            relation,
            kind,
            left,
            right,
            on,
            filled_lefts,
            filled_rights,
            self._merged(merged, {**filled_lefts, **filled_rights}),
            mark,
        )
        if mark is not None:
            return node, (*lefts, mark)
        return node, lefts if kind in ("SEMI", "ANTI") else (*lefts, *rights)

    def _filled(self, outputs: Outputs, filled: dict[int, ex.AnyExpression]) -> Outputs:
        """The columns of a side that is filled with NULL, under other numbers."""
        known: dict[bytes, ex.InputColumn] = {}
        made = []
        for one in outputs:
            key = said(one)
            if key not in known:
                known[key] = self.column(one.return_type)
                filled[known[key].index] = one
                self._is(known[key], one)
            made.append(known[key])
        return tuple(made)

    def _is(self, column: ex.InputColumn, source: ex.AnyExpression) -> None:
        """Keep what a column is below the relation that gives it another number."""
        self.sources[column.index] = source
        self._is_named_as(column, source)

    def _is_never_null(self, node: ex.AnyExpression) -> bool:
        column = bare_column(node)
        return column is not None and column.index in self.known

    def _is_named_as(self, column: ex.InputColumn, source: ex.AnyExpression) -> None:
        if isinstance(source, ex.InputColumn) and source.index in self.names:
            self.names[column.index] = self.names[source.index]

    @staticmethod
    def _merged(
        pairs: Iterable[tuple[ex.AnyExpression, ex.AnyExpression] | None], filled: nodes.Renamed
    ) -> tuple[tuple[ex.AnyExpression, ex.AnyExpression], ...]:
        """The pairs of equal values of both sides, of which the columns have the numbers that they have above."""
        above = {one.index: column for column, one in filled.items() if isinstance(one, ex.InputColumn)}
        found = []
        for pair in pairs:
            if pair is not None and all(map(_is_null_without_match, pair)):
                left, right = (
                    rebased(one, lambda column: replace(column, index=above.get(column.index, column.index)))
                    for one in pair
                )
                found.append((left, right))
        return tuple(found)

    def _nearest(
        self, relation: rel.LogicalAsofJoin, right: nodes.Relation, rights: Outputs
    ) -> tuple[nodes.Relation, Outputs]:
        """The right side of an ASOF join, of which a row competes with those that are equal in its keys."""
        keys = [one.right for one in relation.conditions if one.comparison == "COMPARE_EQUAL" and one.right is not None]
        return self._barrier(right, rights, list(_over(keys, rights)), _NEAREST)

    def _barrier(
        self,
        input: nodes.Relation,
        outputs: Outputs,
        keys: Collection[ex.AnyExpression],
        reason: str,
        more: Sequence[ex.InputColumn] = (),
    ) -> tuple[nodes.Barrier, Outputs]:
        """A relation that only conditions on keys pass; ``more`` are columns that it adds."""
        passing = [key for key in keys if equals_are_identical(key.return_type)]
        through = {said(key) for key in passing}
        bare = {key.index for key in passing if isinstance(key, ex.InputColumn)}
        others = [one for one in outputs if said(one) not in through]
        renamed: dict[int, ex.InputColumn] = {}
        for one in others:
            for index, column in columns_in(one).items():
                if index not in bare and index not in renamed:
                    renamed[index] = self.column(column.return_type)
                    self._is(renamed[index], column)
                    if index in self.known:
                        self.known[renamed[index].index] = NOT_NULL
        made = tuple(
            one if said(one) in through else rebased(one, lambda column: renamed.get(column.index, column))
            for one in outputs
        )
        stopped = {new.index: column_of(old, new.return_type) for old, new in renamed.items()}
        columns = input.columns | stopped.keys() | _numbers(more)
        return nodes.Barrier(columns, input, stopped, reason), (*made, *more)

    def _stopped(self, relation: rel.AnyRelation, reason: str) -> tuple[nodes.Relation, Outputs]:
        node, outputs = self.relation(relation.children[0])
        return self._barrier(node, outputs, (), reason)

    def _aggregate(self, relation: rel.LogicalAggregate) -> tuple[nodes.Relation, Outputs]:
        node, outputs = self.relation(relation.children[0])
        self._reads(expressions_of(relation), outputs)
        groups = list(_over(relation.groups, outputs))
        sets = relation.grouping_sets or (tuple(range(len(groups))),)
        stopped: dict[int, ex.AnyExpression] = {}
        made: list[ex.AnyExpression] = []
        keys: dict[bytes, ex.AnyExpression] = {}
        for index, group in enumerate(groups):
            is_in_all = all(index in one for one in sets)
            if is_in_all and equals_are_identical(group.return_type) and unstable_call([group]) is None:
                keys[said(group)] = group
                made.append(group)
            else:
                column = self.column(group.return_type)
                stopped[column.index] = group
                self._is_named_as(column, group)
                made.append(column)
        chosen: dict[int, ex.AnyExpression] = {}
        for call in relation.expressions:
            value = self._value_of(call, outputs)
            if value is not None and said(value) in keys:
                made.append(keys[said(value)])
                continue
            column = self.column(call.return_type)
            if value is not None:
                chosen[column.index] = value
                self._is_named_as(column, value)
            made.append(column)
        made += self._made(LogicalType("BIGINT") for _ in relation.grouping_functions)
        # A group of one grouping set has the values of its rows; the group of no rows has none.
        is_plain = len(sets) == 1 and bool(groups)
        below = _numbers(one for key in keys.values() for one in columns_in(key).values())
        columns = frozenset({*below, *_numbers(one for one in made if isinstance(one, ex.InputColumn))})
        unique = _bare(keys.values()) if is_plain and not stopped else None
        barrier = nodes.Barrier(columns, node, stopped, _GROUPED, is_plain, chosen, groups=True, unique=unique)
        return barrier, tuple(made)

    def _value_of(self, call: ex.AnyExpression, outputs: Outputs) -> ex.AnyExpression | None:
        """What an aggregate returns one of the values of, or NULL; None for any other aggregate."""
        match call:
            case ex.AggregateCall(children=(argument,)) if call.name in AGGREGATES and AGGREGATES[call.name].is_chosen:
                (value,) = _over([argument], outputs)
                return value if value.return_type == call.return_type and call.filter is None else None
            case _:
                return None

    def _window(self, relation: rel.LogicalWindow) -> tuple[nodes.Relation, Outputs]:
        node, outputs = self.relation(relation.children[0])
        self._reads(expressions_of(relation), outputs)
        calls = [
            list(_over(call.partitions, outputs)) if isinstance(call, ex.WindowCall) else []
            for call in relation.expressions
        ]
        keys = {said(key): key for key in calls[0]}
        for partitions in calls[1:]:
            known = set(map(said, partitions))
            keys = {key: value for key, value in keys.items() if key in known}
        stable = [key for key in keys.values() if unstable_call([key]) is None]
        more = self._made(call.return_type for call in relation.expressions)
        return self._barrier(node, outputs, stable, _WINDOWED, more)

    def _unnest(self, relation: rel.LogicalUnnestRows) -> tuple[nodes.Relation, Outputs]:
        node, outputs = self.relation(relation.children[0])
        self._reads(relation.expressions, outputs)
        made = self._made(one.return_type for one in relation.expressions)
        facts = []
        for column, one in zip(made, _over(relation.expressions, outputs), strict=True):
            found = element_of(one.child, column) if isinstance(one, ex.Unnest) else None
            if found is not None:
                facts.append(Condition(found, is_moved=True))
        elements = nodes.Apart(_numbers(made), facts=tuple(facts))
        return self._region([node, elements], []), (*outputs, *made)

    def _distinct(self, relation: rel.LogicalDistinct) -> tuple[nodes.Relation, Outputs]:
        node, outputs = self.relation(relation.children[0])
        self._reads(expressions_of(relation), outputs)
        targets = list(_over(relation.distinct_targets, outputs))
        is_of_all = {said(one) for one in outputs} <= {said(one) for one in targets}
        if is_of_all and not any(one.return_type.collation for one in targets):
            # Equal rows have equal values.
            unique = _bare(targets)
            return nodes.Barrier(node.columns, node, {}, _FIRST, unique=unique), outputs
        return self._barrier(node, outputs, targets, _FIRST)

    def _set_operation(
        self, relation: rel.LogicalUnion | rel.LogicalExcept | rel.LogicalIntersect
    ) -> tuple[nodes.Relation, Outputs]:
        if any(type_.collation for child in relation.children for type_ in column_types(child)):
            return self._apart(relation)  # equal rows may have other texts
        kind = {rel.LogicalUnion: "UNION", rel.LogicalExcept: "EXCEPT"}.get(type(relation), "INTERSECT")
        inputs: list[nodes.Relation] = []
        sources: list[Outputs] = []
        for child in relation.children:
            node, outputs = self.relation(child)
            self.read |= inputs_of(outputs)
            united = node.input if isinstance(node, nodes.Barrier) and not node.stopped else node
            if (
                kind == "UNION"
                and isinstance(united, nodes.SetOperation)
                and united.kind == kind
                and outputs == united.made
            ):
                inputs += united.inputs
                sources += united.sources
            else:
                inputs.append(node)
                sources.append(outputs)
        made = self._made(column_types(relation))
        for position, column in enumerate(made):
            for outputs in sources:
                self._is_named_as(column, outputs[position])
            if all(self._is_never_null(outputs[position]) for outputs in sources):
                self.known[column.index] = NOT_NULL
        return (
            nodes.SetOperation(_numbers(made), kind, made, tuple(inputs), tuple(sources)),
            made,
        )

    def _with(self, relation: rel.LogicalWith) -> tuple[nodes.Relation, Outputs]:
        definition, outputs = self.relation(relation.children[0])
        self.definitions[relation.table_index] = definition
        self._outputs[relation.table_index] = outputs
        if relation.ctename.startswith(_OUTER_ROWS) and has_outer_rows(relation.children[1], relation.table_index):
            self._outer.add(relation.table_index)
        query, made = self.relation(relation.children[1])
        return nodes.With(query.columns, relation.table_index, definition, query), made

    def _reference(
        self, relation: rel.LogicalWithReference, *, is_outer: bool = False
    ) -> tuple[nodes.Relation, Outputs]:
        sources = self._outputs[relation.cte_index]
        made = self._made(one.return_type for one in sources)
        for column, source in zip(made, sources, strict=True):
            self._is(column, source)
            if self._is_never_null(source):
                self.known[column.index] = NOT_NULL
        found = nodes.Reference(_numbers(made), relation.cte_index, made, sources, is_outer)
        return found, made

    def _values(self, relation: rel.LogicalValues) -> tuple[nodes.Relation, Outputs]:
        if any(not isinstance(child, rel.LogicalNothing) for child in relation.children):
            return self._apart(relation)  # a value is that of a subquery
        made = self._made(relation.expr_types)
        facts = []
        for position, column in enumerate(made):
            listed = [row[position] for row in relation.expressions]
            if inputs_of(listed) or unstable_call(listed) is not None:
                continue
            either = any_of([compared("COMPARE_NOT_DISTINCT_FROM", column, one) for one in listed])
            facts.append(Condition(either, is_moved=True))
        return nodes.Apart(_numbers(made), facts=tuple(facts)), made


def _over(expressions: Iterable[ex.AnyExpression], outputs: Outputs) -> Iterable[ex.AnyExpression]:
    """Expressions over the columns of a relation, over what these columns are."""

    def below(one: ex.AnyExpression) -> ex.AnyExpression | None:
        match one:
            case ex.InputColumn(index=index):
                return outputs[index]
            case ex.Call(children=(ex.InputColumn(index=index), ex.BoundConstant(value=name))) if (
                one.name == "struct_extract"
            ):
                return _field(outputs[index], name.value)
            case _:
                return None

    return (exchanged(one, below) for one in expressions)


def _field(struct: ex.AnyExpression, name: object) -> ex.AnyExpression | None:
    """The field of a struct that is put together of values; None for any other."""
    info = struct.return_type.type_info
    if not isinstance(struct, ex.Call) or struct.name != "struct_pack" or not isinstance(info, StructInfo):
        return None
    fields = {field.first: child for field, child in zip(info.child_types, struct.children, strict=True)}
    return fields.get(str(name))


def _is_null_without_match(node: ex.AnyExpression) -> bool:
    """Whether the value of a side is NULL where that side has no row."""
    match node:
        case ex.InputColumn():
            return True
        case ex.BoundOperation(type="OPERATOR_COALESCE", children=children):
            return all(map(_is_null_without_match, children))
        case _:
            found = cast_of(node)
            return found is not None and _is_null_without_match(found[0])


def _numbers(columns: Iterable[ex.InputColumn]) -> frozenset[int]:
    return frozenset(column.index for column in columns)


def _bare(nodes_: Iterable[ex.AnyExpression]) -> frozenset[int] | None:
    """The columns that expressions are, if equal ones are identical; None where one is anything else."""
    found = list(nodes_)
    if all(isinstance(one, ex.InputColumn) and equals_are_identical(one.return_type) for one in found):
        return inputs_of(found)
    return None


def _equated(condition: Condition, left: Set[int]) -> tuple[ex.AnyExpression, ex.AnyExpression] | None:
    """The values of the left and the right side that a condition equates."""
    match condition.expression:
        case ex.Call(type="COMPARE_EQUAL", children=(one, other)) if equals_are_identical(one.return_type):
            return (one, other) if inputs_of([one]) <= left else (other, one)
        case _:
            return None
