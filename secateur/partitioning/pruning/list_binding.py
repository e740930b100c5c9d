"""IN lists of parameters on one hashed column: all their partitions at once.

The general form converts each value to the column's type, collects the values in a domain, and encodes and hashes them
one by one, which takes more than a microsecond per element. Here values that all have the column's own Python type go
through Arrow and numpy together. Everything else takes the general form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from xxhash import xxh64_intdigest

from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.pruning.comparison_target import BareColumn
from secateur.partitioning.pruning.condition import Choice, Constraint
from secateur.partitioning.pruning.operand import Constant, Parameter, ParameterList
from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.hashing import first_seed, hash_columns, pmod, pmod_array
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.encoding import encode_array, scalar_encoder

_Bind = Callable[[Sequence[Any]], Sequence[int] | None]
_VECTOR_ELEMENTS_MIN: Final = 256
_NOT_OF_THE_TYPE: Final = (pa.ArrowException, UnicodeEncodeError, OverflowError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class _Elements:
    """The parameters that hold a list's values: single ones, and ones that are lists; and constants."""

    constants: tuple[Any, ...]
    parameters: tuple[int, ...]
    lists: tuple[int, ...]


def compile_list(
    constraint: Constraint,
    component: HashComponent,
    column_type: SqlType,
    own_class: Any,
    integers: tuple[int, int] | None,
    limit: int,
    general: _Bind,
) -> _Bind | None:
    """Compile the function from parameters to sorted partition ids, for a scheme of one hash component of one column.

    Args:
        constraint: The requirement on the column.
        component: The component.
        column_type: The type of the column.
        own_class: Values of exactly this class are canonical for the column.
        integers: Smallest and largest value of an integer type, else None.
        limit: Longer lists are not hashed; they select every partition.
        general: Answers where values are of other classes.

    Returns:
        The function, or None when the constraint is no list. It costs a fifth of a microsecond per element.
    """
    elements = _elements(constraint)
    if elements is None:
        return None
    seed, partitions, encode = first_seed(component.seed), component.partitions, scalar_encoder(column_type)

    def bind(params: Sequence[Any]) -> Sequence[int] | None:
        given = [params[index] for index in elements.parameters]
        given.extend(elements.constants)
        for index in elements.lists:
            values = params[index]
            if type(values) is not list:
                return general(params)
            given.extend(values)
        if set(map(type, given)) != {own_class}:
            return general(params)
        distinct = set(given)
        if integers is not None and not integers[0] <= min(distinct) <= max(distinct) <= integers[1]:
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


def _elements(constraint: Constraint) -> _Elements | None:
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
    return _Elements(tuple(constants), tuple(parameters), tuple(lists))
