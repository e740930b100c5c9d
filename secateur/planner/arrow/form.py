"""The form of a relation for the arrow kernel, or the reason why DuckDB has to compute it.

A relation is read as one pass of the kernel, from the tables upwards, stage by stage. Only what is known to be exact
has a form. Three checks back the rules: each expression, and each column of the result, has the type that DuckDB's
binder gives it, and ``tests/property/test_kernels_agree.py`` compares both kernels over random statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from secateur.engine.kernels.arrow.exact_values import SCALE_MAX
from secateur.engine.kernels.arrow.fragment import (
    AggregateFunction,
    ArrowAggregate,
    ArrowFragment,
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    OrderTerm,
    ScalarFunction,
    SourceJoin,
    columns_in,
    slot_name,
)
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.planner.aggregates import AGGREGATES
from secateur.planner.arrow.constants import DeclineError, KernelDeclined, sql_type
from secateur.planner.arrow.sources import JoinInput, Step, never_null, read_table, sources_of
from secateur.planner.arrow.values import (
    BOOLEAN,
    DOUBLE,
    Column,
    ValueCompiler,
    all_of,
    can_be_chosen,
    is_fixed,
    is_orderable,
    known,
)
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.expression_sql import BoundText
from secateur.planner.tree.relations import AnyRelation
from secateur.planner.tree.rewriting import Join, conditions_of, conjuncts

# The arrow kernel evaluates expressions by recursion; longer or deeper statements are left to DuckDB.
_NODES_MAX: Final = 1000
_DEPTH_MAX: Final = 200
_BIGINT: Final = SqlType(TypeKind.BIGINT)
_HUGEINT: Final = SqlType(TypeKind.HUGEINT)
_ONE: Final = ConstantExpression(1, SqlType(TypeKind.INTEGER))
_COUNTED_APART: Final = WORD_INTEGERS | {TypeKind.BOOLEAN, TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP}
"""The kinds of which Arrow tells values apart as DuckDB does: it has two zeros, and NaN that equals nothing."""
_KINDS: Final = {
    "INNER": SourceJoin.INNER,
    "LEFT": SourceJoin.LEFT,
    "SEMI": SourceJoin.SEMI,
    "ANTI": SourceJoin.ANTI,
}


def arrow_form(
    relation: AnyRelation,
    text: BoundText,
    columns: Sequence[tuple[str, str]],
    inputs: Mapping[str, JoinInput] | None = None,
) -> ArrowFragment | KernelDeclined:
    """The form of a relation.

    Args:
        relation: The relation, over one table, or over several.
        text: What was bound.
        columns: Name and type text of each of its columns, as ``DuckDBKernel.describe`` gives them.
        inputs: What is known of each table of the statement, by relation, where it has several; None where it has one.

    Returns:
        The form, or why there is none. Cost: about 0.1 ms.
    """
    try:
        selected = Reader(text, inputs).read(relation)
        if inputs is not None and {step.relation for step in selected.steps} != set(inputs):
            raise DeclineError("a table that has no influence on the answer")
        found = _without_unread(_fragment(selected, columns))
        return found if _is_small(found) else KernelDeclined("a long statement")
    except DeclineError as declined:
        return KernelDeclined(str(declined))
    except RecursionError:
        return KernelDeclined("a deep statement")


def _fragment(selected: Selected, columns: Sequence[tuple[str, str]]) -> ArrowFragment:
    shown: Sequence[Column] = selected.columns
    if selected.distinct is not None:
        slots = [ColumnExpression(slot_name(index), row.type) for index, row in enumerate(selected.distinct)]
        if list(shown) != slots:
            raise DeclineError("some columns of rows that DISTINCT has merged")
        shown = selected.distinct
    if len(shown) != len(columns):
        raise DeclineError("a select list that is not one result column each")
    is_plain = selected.keys is None and selected.distinct is None
    sources, where = sources_of(selected.steps, selected.where)
    return ArrowFragment(
        outputs=tuple(
            (name, _output(column, type_, may_be_fixed=is_plain))
            for column, (name, type_) in zip(shown, columns, strict=True)
        ),
        where=where,
        keys=selected.keys,
        aggregates=selected.aggregates,
        having=all_of(selected.having),
        distinct=selected.distinct is not None,
        order=selected.order,
        limit=selected.limit,
        offset=selected.offset,
        sources=sources,
    )


def _output(column: Column, type_: str, *, may_be_fixed: bool) -> Expression:
    found = known(column)
    if str(found.type) != type_:
        raise DeclineError(f"a column is {type_} in DuckDB and {found.type} here")
    if is_fixed(found) and (not may_be_fixed or found.type.kind in (TypeKind.FLOAT, TypeKind.HUGEINT)):
        raise DeclineError("a column that is the same in all rows")
    if any(part.contains((TypeKind.UUID,)) for part in found.type.parts):
        raise DeclineError(f"a column of {found.type}")
    return found


def _without_unread(fragment: ArrowFragment) -> ArrowFragment:
    """The same without aggregates that nothing reads."""
    if fragment.keys is None:
        return fragment
    having = () if fragment.having is None else (fragment.having,)
    order = () if fragment.distinct else tuple(term.expression for term in fragment.order)
    read = columns_in([*(expression for _, expression in fragment.outputs), *having, *order])
    first = len(fragment.keys)
    kept = [index for index in range(len(fragment.aggregates)) if slot_name(first + index) in read]
    if not kept and not fragment.keys:
        raise DeclineError("one group of which nothing is read")
    slots = {slot_name(first + old): slot_name(first + new) for new, old in enumerate(kept)}
    return structs.replace(
        fragment,
        outputs=tuple((name, _renamed(expression, slots)) for name, expression in fragment.outputs),
        aggregates=tuple(fragment.aggregates[index] for index in kept),
        having=None if fragment.having is None else _renamed(fragment.having, slots),
        order=tuple(
            term if fragment.distinct else structs.replace(term, expression=_renamed(term.expression, slots))
            for term in fragment.order
        ),
    )


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case ColumnExpression(name=name) if name in names:
            return structs.replace(expression, name=names[name])
        case CallExpression():
            return structs.replace(expression, arguments=tuple(_renamed(one, names) for one in expression.arguments))
        case _:
            return expression


def _is_small(fragment: ArrowFragment) -> bool:
    """Whether all expressions together have at most so many nodes, none of them deeper."""
    level = list(_expressions(fragment))
    count = 0
    for _ in range(_DEPTH_MAX):
        count += len(level)
        if count > _NODES_MAX:
            return False
        level = [part for node in level if isinstance(node, CallExpression) for part in node.arguments]
        if not level:
            return True
    return False


def _expressions(fragment: ArrowFragment) -> Iterator[Expression]:
    yield from (expression for _, expression in fragment.outputs)
    yield from fragment.keys or ()
    yield from (one.argument for one in fragment.aggregates if one.argument is not None)
    yield from (term.expression for term in fragment.order)
    for source in fragment.sources:
        yield from (side for key in source.keys for side in key)
        yield from (part for part in (source.where, source.condition) if part is not None)
    yield from (part for part in (fragment.where, fragment.having) if part is not None)


@dataclass(frozen=True, slots=True)
class Selected:
    """What is computed so far; the stages are those of an arrow fragment.

    Attributes:
        columns: Its columns.
        steps: The tables that it reads, each as it is joined to those before it.
        where: Conditions on the joined rows.
        keys: The keys of groups; None without aggregation.
        aggregates: The aggregates of each group.
        having: Conditions on groups.
        distinct: The rows that DISTINCT has merged, whose columns are now those; None without it.
        order: The terms of ORDER BY.
        limit: The number of rows.
        offset: The number of rows that are left out before.
    """

    columns: tuple[Column, ...]
    steps: tuple[Step, ...]
    where: tuple[Expression, ...] = ()
    keys: tuple[Expression, ...] | None = None
    aggregates: tuple[ArrowAggregate, ...] = ()
    having: tuple[Expression, ...] = ()
    distinct: tuple[Expression, ...] | None = None
    order: tuple[OrderTerm, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None

    @property
    def is_limited(self) -> bool:
        """Whether rows are left out by their number."""
        return self.limit is not None or self.offset is not None

    @property
    def is_cut(self) -> bool:
        """Whether rows are left out, or in an order, after its columns were computed."""
        return self.distinct is not None or bool(self.order) or self.is_limited


class Reader:
    """Reads the relations of one statement.

    Args:
        text: What was bound.
        inputs: What is known of each table of a join, by relation; None where one table is read alone.
    """

    def __init__(self, text: BoundText, inputs: Mapping[str, JoinInput] | None) -> None:
        self._text = text
        self._inputs = inputs

    def read(self, relation: rel.AnyRelation) -> Selected:
        """A relation."""
        match relation:
            case rel.LogicalScan() | rel.LogicalStageRows():
                columns, step = read_table(relation, self._inputs)
                return Selected(columns, (step,))
            case rel.LogicalFilter():
                return self._filter(relation)
            case rel.LogicalProject():
                below = self.read(relation.children[0])
                return replace(below, columns=tuple(map(self._over(below).column, relation.expressions)))
            case rel.LogicalAggregate():
                return self._aggregate(relation)
            case rel.LogicalDistinct():
                return self._distinct(relation)
            case rel.LogicalSort():
                return self._sort(relation)
            case rel.LogicalLimit():
                return self._limit(relation)
            case rel.LogicalCross():
                return self._joined(
                    self._rows(relation.children[0]), self._rows(relation.children[1]), SourceJoin.INNER
                )
            case rel.LogicalJoin() | rel.LogicalConditionJoin() if not isinstance(relation, rel.LogicalAsofJoin):
                return self._join(relation)
            case _:
                raise DeclineError(f"{type(relation).__name__.removeprefix('Logical')} is left to DuckDB")

    def _over(self, below: Selected) -> ValueCompiler:
        return ValueCompiler(below.columns, self._text)

    def _filter(self, relation: rel.LogicalFilter) -> Selected:
        below = self.read(relation.children[0])
        if below.is_cut:
            raise DeclineError("a condition on rows that are cut")
        conditions = tuple(map(self._over(below).condition, conjuncts(relation.expressions)))
        if below.keys is None:
            return replace(below, where=(*below.where, *conditions))
        return replace(below, having=(*below.having, *conditions))

    def _aggregate(self, relation: rel.LogicalAggregate) -> Selected:
        below = self._rows(relation.children[0])
        if relation.grouping_functions or len(relation.grouping_sets) > 1:
            raise DeclineError("GROUPING SETS, ROLLUP or CUBE")
        if relation.grouping_sets and len(relation.grouping_sets[0]) < len(relation.groups):
            raise DeclineError("GROUPING SETS of some columns")
        compiler = self._over(below)
        keys = tuple(map(compiler.of_rows, relation.groups))
        _require_orderable(keys, "GROUP BY", floats=False)
        found = [_aggregate_of(call, compiler) for call in relation.expressions]
        aggregates = tuple(dict.fromkeys(one for one in found if isinstance(one, ArrowAggregate)))
        columns: list[Column] = [ColumnExpression(slot_name(index), key.type) for index, key in enumerate(keys)]
        columns += (
            ColumnExpression(slot_name(len(keys) + aggregates.index(one)), one.type)
            if isinstance(one, ArrowAggregate)
            else one
            for one in found
        )
        return replace(below, columns=tuple(columns), keys=keys, aggregates=aggregates)

    def _distinct(self, relation: rel.LogicalDistinct) -> Selected:
        below = self.read(relation.children[0])
        if below.is_cut:
            raise DeclineError("DISTINCT of rows that are cut")
        targets = [target.index for target in relation.distinct_targets if isinstance(target, ex.InputColumn)]
        if relation.distinct_type != "DISTINCT" or targets != list(range(len(below.columns))):
            raise DeclineError("DISTINCT ON")
        rows = tuple(map(known, below.columns))
        _require_orderable(rows, "DISTINCT", floats=False)
        merged = tuple(ColumnExpression(slot_name(index), row.type) for index, row in enumerate(rows))
        return replace(below, columns=merged, distinct=rows)

    def _sort(self, relation: rel.LogicalSort) -> Selected:
        below = self.read(relation.children[0])
        if below.order or below.is_limited:
            raise DeclineError("ORDER BY of rows that are ordered")
        compiler = self._over(below)
        terms = []
        for order in relation.orders:
            term = compiler.value(order.expression)
            if below.distinct is not None and not isinstance(term, ColumnExpression):
                raise DeclineError("ORDER BY of something that DISTINCT has merged")
            if not is_fixed(term):  # nothing is ordered by a constant
                terms.append(OrderTerm(term, order.type == "DESCENDING", order.null_order == "NULLS FIRST"))
        _require_orderable([term.expression for term in terms], "ORDER BY", floats=True)
        return replace(below, order=tuple(terms))

    def _limit(self, relation: rel.LogicalLimit) -> Selected:
        below = self.read(relation.children[0])
        if below.is_limited:
            raise DeclineError("LIMIT of rows that are limited")
        return replace(below, limit=self._count(relation.limit_val), offset=self._count(relation.offset_val))

    def _count(self, value: rel.LimitValue) -> Expression | None:
        match value:
            case rel.LimitValue(type="UNSET"):
                return None
            case rel.LimitValue(type="CONSTANT_VALUE"):
                return ConstantExpression(value.constant_integer, _BIGINT)
            case rel.LimitValue(type="EXPRESSION_VALUE", expression=ex.Call() | ex.BoundParameter() as count):
                return ValueCompiler((), self._text).number_of_rows(count)
            case _:
                raise DeclineError("LIMIT or OFFSET of another form than a number of rows")

    # Joins

    def _rows(self, relation: rel.AnyRelation) -> Selected:
        """A relation that is neither grouped nor cut."""
        found = self.read(relation)
        if found.keys is not None or found.is_cut:
            raise DeclineError("rows that are grouped or cut before they are joined or grouped")
        return found

    def _join(self, relation: Join) -> Selected:
        if relation.join_type not in _KINDS:
            raise DeclineError("a join of another kind than INNER, LEFT, SEMI and ANTI")
        kind = _KINDS[relation.join_type]
        left, right = self._rows(relation.children[0]), self._rows(_matched(relation))
        both = ValueCompiler((*left.columns, *right.columns), self._text)
        present = never_null(right.where)
        conditions = tuple(_condition(node, both, present) for node in conjuncts(conditions_of(relation)))
        return self._joined(left, replace(right, where=(*right.where, *conditions)), kind)

    def _joined(self, left: Selected, right: Selected, kind: SourceJoin) -> Selected:
        """A join by the conditions on the right rows, which may be about the left ones as well."""
        if self._inputs is None:
            raise DeclineError("a join in a stage")
        if kind is SourceJoin.INNER:
            return Selected((*left.columns, *right.columns), (*left.steps, *right.steps), (*left.where, *right.where))
        if len(right.steps) > 1:
            raise DeclineError("a join of something else than tables")
        step = replace(right.steps[0], kind=kind, conditions=right.where)
        columns = left.columns
        if kind is SourceJoin.LEFT:
            columns = (*columns, *map(_if_matched, right.columns))
        return Selected(columns, (*left.steps, step), left.where)


def _matched(relation: Join) -> rel.AnyRelation:
    """The right rows of a join; where only their presence counts, each may be there more than once."""
    right = relation.children[1]
    if relation.join_type in ("SEMI", "ANTI") and isinstance(right, rel.LogicalDistinct):
        return right.children[0] if right.distinct_type == "DISTINCT" else right
    return right


def _condition(node: ex.AnyExpression, both: ValueCompiler, present: Sequence[ColumnExpression]) -> Expression:
    """A condition of a join. DuckDB compares a correlated column so that NULL is equal, and leaves NULL out before."""
    match node:
        case ex.Call(type="COMPARE_NOT_DISTINCT_FROM", children=(left, right)):
            if both.column(left) not in present and both.column(right) not in present:
                raise DeclineError("IS NOT DISTINCT FROM is left to DuckDB")
            return both.equality(left, right)
        case _:
            return both.condition(node)


def _if_matched(column: Column) -> Column:
    """A column that is NULL where a left join finds no row: one that is computed would be computed of NULL there."""
    return column if isinstance(column, ColumnExpression) else KernelDeclined("what an outer join fills with NULL")


def _require_orderable(expressions: Sequence[Expression], clause: str, *, floats: bool) -> None:
    for expression in expressions:
        if is_fixed(expression) or not is_orderable(expression.type) or (expression.type.is_float and not floats):
            raise DeclineError(f"{clause} of {expression.type}")
        if not isinstance(expression, ColumnExpression) and expression.type == BOOLEAN:
            raise DeclineError(f"{clause} of a condition")


def _aggregate_of(call: ex.AnyExpression, compiler: ValueCompiler) -> ArrowAggregate | KernelDeclined:
    try:
        return _aggregate(call, compiler)
    except DeclineError as declined:
        return KernelDeclined(str(declined))


def _aggregate(call: ex.AnyExpression, compiler: ValueCompiler) -> ArrowAggregate:
    if not isinstance(call, ex.AggregateCall) or call.name not in AGGREGATES:
        raise DeclineError(f"{call.name if isinstance(call, ex.AggregateCall) else 'a window'} is left to DuckDB")
    if call.order_bys is not None or call.state_export:
        raise DeclineError(f"{call.name} with ORDER BY")
    row = AGGREGATES[call.name]
    passes = None if call.filter is None else compiler.condition(call.filter)
    match row.distinct_kernel if call.is_distinct else row.kernel, call.children:
        case AggregateFunction.COUNT_ROWS, ():
            if passes is not None:
                return ArrowAggregate(AggregateFunction.COUNT, _where(passes, _ONE), _BIGINT)
            return ArrowAggregate(AggregateFunction.COUNT_ROWS, None, _BIGINT)
        case (AggregateFunction.SUM | AggregateFunction.AVG) as function, (child,):
            argument = compiler.summand(child)
        case AggregateFunction() as function, (child,):
            argument = compiler.of_rows(child)
        case _:
            raise DeclineError(f"{call.name}{'(DISTINCT)' if call.is_distinct else ''} is left to DuckDB")
    type_ = _result_type(function, argument.type)
    if type_ != sql_type(call.return_type):
        raise DeclineError(f"{call.name} is {call.return_type.sql} in DuckDB and {type_} here")
    return ArrowAggregate(function, argument if passes is None else _where(passes, argument), type_)


def _where(passes: Expression, value: Expression) -> Expression:
    """A value where a condition is true, else NULL: an aggregate of these has the rows that pass a FILTER."""
    if not can_be_chosen(value.type):
        raise DeclineError(f"FILTER before {value.type}")
    return CallExpression(ScalarFunction.CASE, (passes, value), value.type)


def _result_type(function: AggregateFunction, type_: SqlType) -> SqlType:
    """The type that DuckDB gives an aggregate of a type."""
    is_decimal = type_.kind is TypeKind.DECIMAL
    is_number = type_.is_integer or type_.is_float or is_decimal
    match function:
        case AggregateFunction.COUNT_ROWS | AggregateFunction.COUNT:
            return _BIGINT
        case AggregateFunction.COUNT_DISTINCT if type_.kind in _COUNTED_APART:
            return _BIGINT
        case AggregateFunction.MIN | AggregateFunction.MAX if is_orderable(type_):
            return type_
        case AggregateFunction.AVG if is_number and type_.scale <= SCALE_MAX:
            return DOUBLE
        case AggregateFunction.SUM if is_number:
            return DOUBLE if type_.is_float else SqlType(TypeKind.DECIMAL, 38, type_.scale) if is_decimal else _HUGEINT
        case _:
            raise DeclineError(f"{function.value} of {type_}")
