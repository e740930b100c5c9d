"""Evaluation of a partition tree: each node is compiled once into a function from parameters to partition ids.

The common tree is one key on a scheme of hash components: its function only hashes a value that already has the
column's own Python type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, assert_never

import pyarrow as pa
from xxhash import xxh64_intdigest

from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.pruning.comparison_target import BareColumn
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.domain import NOTHING, close_spans
from secateur.partitioning.pruning.nodes import (
    All,
    AllOf,
    AnyOf,
    Everywhere,
    Keys,
    Node,
    Nothing,
    Partitions,
    Satisfiable,
)
from secateur.partitioning.pruning.operand import Cast, Constant, Evaluated, Parameter, ParameterList, resolve_operand
from secateur.partitioning.pruning.select_partitions import select_partitions
from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.hashing import first_seed, hash_columns, pmod, pmod_array
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.encoding import encode_array, scalar_encoder

Bind = Callable[[Sequence[Any]], Sequence[int] | None]
_VECTOR_ELEMENTS_MIN: Final = 256
_NOT_OF_THE_TYPE: Final = (pa.ArrowException, UnicodeEncodeError, OverflowError, TypeError, ValueError)


def compile_node(node: Node, scheme: PartitionScheme, limit: int) -> Bind:
    """The function from parameters to sorted partition ids; it returns None for all partitions.

    Raises:
        IndexError: (the returned function) There are fewer parameters than the node uses.
    """
    match node:
        case All():
            return _all
        case Nothing():
            return _none
        case Everywhere():
            return _zero
        case Partitions(ids):
            return lambda params: ids
        case Keys(box):
            return _compile_box(box, scheme, limit)
        case AnyOf(parts):
            return _union([compile_node(part, scheme, limit) for part in parts])
        case AllOf(parts):
            return _intersection([compile_node(part, scheme, limit) for part in parts])
        case Satisfiable(constraints, part):
            return _if_satisfiable(constraints, compile_node(part, scheme, limit))
        case _:
            assert_never(node)


def compile_partial(node: Node, scheme: PartitionScheme, limit: int) -> Bind:
    """:func:`compile_node` for a scheme of which this process learns more ranges: each call uses the newest.

    Raises:
        UnknownRangesError: (the returned function) The ranges of some keys are not known yet.
    """
    compiled = scheme, compile_node(node, scheme, limit)

    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        nonlocal compiled
        known, function = compiled
        newest = scheme.newest()
        if newest is not known:
            function = compile_node(node, newest, limit)
            compiled = newest, function
        return function(params)

    return bind


def _all(params: Sequence[Any]) -> None:
    return None


def _none(params: Sequence[Any]) -> tuple[int, ...]:
    return ()


def _zero(params: Sequence[Any]) -> tuple[int, ...]:
    return (0,)


def _union(parts: list[Bind]) -> Bind:
    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        found: set[int] = set()
        for part in parts:
            ids = part(params)
            if ids is None:
                return None
            found.update(ids)
        return tuple(sorted(found))

    return bind


def _intersection(parts: list[Bind]) -> Bind:
    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        found: set[int] | None = None
        for part in parts:
            ids = part(params)
            if ids is not None:
                found = set(ids) if found is None else found.intersection(ids)
        return None if found is None else tuple(sorted(found))

    return bind


def _if_satisfiable(constraints: Sequence[tuple[SqlType, Constraint]], part: Bind) -> Bind:
    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        for column_type, constraint in constraints:
            if close_spans(constraint.resolve(params, column_type), column_type).is_nothing:
                return ()
        return part(params)

    return bind


def _compile_box(box: Box, scheme: PartitionScheme, limit: int) -> Bind:
    types = dict(scheme.types)

    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        return select_partitions(scheme, box.resolve(params, types), limit, box.equal).ids

    return _compile_key(box, scheme, bind) or _compile_listed(box, scheme, limit, bind) or bind


def _compile_listed(box: Box, scheme: PartitionScheme, limit: int, general: Bind) -> Bind | None:
    """The fast forms for ``c IN (?, ...)``, ``c = ANY(?)`` and ``c = f(?)`` on a scheme that hashes one column."""
    if scheme.range is not None or len(scheme.hashes) != 1 or len(scheme.hashes[0].columns) != 1:
        return None
    component = scheme.hashes[0]
    column_type = scheme.type_of(component.columns[0])
    constraint = box[component.columns[0]]
    column = _compile_column(0, column_type)
    if column is None:
        return None
    match constraint:
        case Constraint(
            (Choice(domain, (ParameterComparison(Comparison.IN, (Evaluated() as operand,), BareColumn()),)),)
        ) if domain == NOTHING:
            hashed = _bind_one(component, column, _none)
            evaluated = _bind_evaluated(operand, column_type, hashed, general)
            match operand.quick:
                case Cast(Parameter(index), wanted) if wanted == column_type:
                    # A parameter that is of the type already, as each is that an INSERT gives for a key.
                    return _bind_one(component, column._replace(parameter=index), evaluated)
                case _:
                    return evaluated
        case _:
            return _compile_list(constraint, component, column_type, column, limit, general)


def _bind_evaluated(operand: Evaluated, column_type: SqlType, hashed: Bind, general: Bind) -> Bind:
    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        return hashed((resolve_operand(operand, params, column_type),)) or general(params)

    return bind


def _compile_key(box: Box, scheme: PartitionScheme, general: Bind) -> Bind | None:
    """The fast form for ``c1 = ? AND c2 = ? ...`` over every column of a scheme without ranges."""
    if scheme.range is not None or not scheme.hashes:
        return None
    equal = {column: _equal_parameters(constraint) for column, constraint in box.constraints}
    if any(len(indexes) > 1 for indexes in equal.values()):
        one = Box.of({column: Constraint(constraint.choices[:1]) for column, constraint in box.constraints}, box.equal)
        bind_one = _compile_key(one, scheme, general)
        return None if bind_one is None else _bind_equal(list(equal.values()), bind_one, general)
    parameters = {column: indexes[0] if indexes else None for column, indexes in equal.items()}
    components = []
    for component in scheme.hashes:
        columns = [_compile_column(parameters.get(column), scheme.type_of(column)) for column in component.columns]
        if any(column is None for column in columns):
            return None
        components.append(
            (
                first_seed(component.seed),
                component.partitions,
                tuple(column for column in columns if column is not None),
            )
        )
    if len(components) == 1 and len(components[0][2]) == 1:
        return _bind_one(scheme.hashes[0], components[0][2][0], general)

    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        partition = 0
        try:
            for seed, partitions, columns in components:
                state = seed
                for index, own_type, smallest, largest, encode in columns:
                    value = params[index]
                    if type(value) is not own_type or (smallest is not None and not smallest <= value <= largest):
                        return general(params)
                    state = xxh64_intdigest(encode(value), state)
                partition = partition * partitions + pmod(state, partitions)
        except UnicodeEncodeError:
            return general(params)
        return (partition,)

    return bind


def _bind_one(component: HashComponent, column: _KeyColumn, general: Bind) -> Bind:
    index, own_type, smallest, largest, encode = column
    seed, partitions = first_seed(component.seed), component.partitions

    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        value = params[index]
        if type(value) is not own_type or (smallest is not None and not smallest <= value <= largest):
            return general(params)
        try:
            state = xxh64_intdigest(encode(value), seed)
            return ((state - 2**64 if state >= 2**63 else state) % partitions,)
        except UnicodeEncodeError:
            return general(params)

    return bind


def _bind_equal(groups: Sequence[Sequence[int]], bind_one: Bind, general: Bind) -> Bind:
    """For columns that must equal several parameters each, as the tenant of a policy and of the statement."""
    pairs = [(group[0], index) for group in groups for index in group[1:]]

    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        for one, other in pairs:
            first, second = params[one], params[other]
            if type(first) is not type(second) or first != second:
                return general(params)
        return bind_one(params)

    return bind


def _equal_parameters(constraint: Constraint) -> list[int]:
    """The parameters that a column must equal, if the constraint consists of them alone."""
    found = []
    for choice in constraint.choices:
        match choice:
            case Choice(domain, (ParameterComparison(Comparison.IN, (Parameter(index),), BareColumn()),)) if (
                domain == NOTHING
            ):
                found.append(index)
            case _:
                return []
    return found


class _KeyColumn(NamedTuple):
    """A column that equals a parameter.

    Values of exactly ``own_type`` are canonical for it, if they are within the bounds of an integer type.
    """

    parameter: int
    own_type: Any
    smallest: Any
    largest: Any
    encode: Callable[[Any], bytes]


def _compile_column(index: int | None, column_type: SqlType) -> _KeyColumn | None:
    if index is None or column_type.value_class is None:
        return None
    smallest, largest = column_type.integer_range if column_type.is_integer else (None, None)
    return _KeyColumn(index, column_type.value_class, smallest, largest, scalar_encoder(column_type))


def _compile_list(
    constraint: Constraint,
    component: HashComponent,
    column_type: SqlType,
    column: _KeyColumn,
    limit: int,
    general: Bind,
) -> Bind | None:
    """Compile the function from an IN list of parameters to sorted partition ids, all at once.

    It is for a scheme of one hash component of one column. The general form converts each value to the column's type,
    collects the values in a domain, and encodes and hashes them one by one, which takes more than a microsecond per
    element. Here values that all have the column's own Python type go through Arrow and numpy together. Everything else
    takes the general form.

    ``general`` answers where values are of other classes. Lists of more than ``limit`` values select every partition.

    Returns:
        The function, or None when the constraint is no list. It costs a fifth of a microsecond per element.
    """
    elements = _elements(constraint)
    if elements is None:
        return None
    constants, parameters, lists = elements
    seed, partitions = first_seed(component.seed), component.partitions
    _, own_type, smallest, largest, encode = column

    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        given = [params[index] for index in parameters]
        given.extend(constants)
        for index in lists:
            values = params[index]
            if type(values) is not list:
                return general(params)
            given.extend(values)
        if set(map(type, given)) != {own_type}:
            return general(params)
        distinct = set(given)
        if smallest is not None and not smallest <= min(distinct) <= max(distinct) <= largest:
            return general(params)
        if len(distinct) > limit:
            return None
        try:
            if len(distinct) < _VECTOR_ELEMENTS_MIN:
                return tuple(sorted({pmod(xxh64_intdigest(encode(value), seed), partitions) for value in distinct}))
            array = pa.array(distinct, column_type.arrow)
            hashed = pmod_array(hash_columns([encode_array(array, column_type)], seed, len(array)), partitions)
        except _NOT_OF_THE_TYPE:
            return general(params)
        return tuple(sorted(set(hashed.tolist())))

    return bind


def _elements(constraint: Constraint) -> tuple[list[Any], list[int], list[int]] | None:
    """The values of a list: constants, parameters, and parameters that are lists; None where it is something else."""
    match constraint:
        case Constraint((Choice(domain, tests),)) if domain.is_finite and tests:
            constants = list(domain.points)
            parameters: list[int] = []
            lists: list[int] = []
        case _:
            return None
    for test in tests:
        if test.comparison is not Comparison.IN or not isinstance(test.comparison_target, BareColumn):
            return None
        for operand in test.operands:
            match operand:
                case Parameter(index):
                    parameters.append(index)
                case ParameterList(index) if len(test.operands) == 1:
                    lists.append(index)
                case Constant(value):
                    constants.append(value)
                case _:
                    return None
    return constants, parameters, lists
