"""The partition tree: a serialisable expression that yields a scan's required partitions once parameters are bound.

EXPLAIN shows it as a text (:func:`node_text`).

The planner builds a tree once per statement; members and thin clients evaluate it at every execution, without the
planner. A member evaluates the tree although its client has done so: the client may know old owners, or may not prune.
A member that is asked about partitions of others coordinates the statement, so the answer is right in any case.

Source: Apache Ignite IEP-24, "Thin Clients" (PartitionNode, PartitionInfo).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import msgspec
from msgspec.structs import force_setattr

from secateur.cached_properties import cached_property
from secateur.errors import ParameterError
from secateur.partitioning.pruning import comparison_target as targets
from secateur.partitioning.pruning.comparison import Comparison, compare
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.domain import Domain, Span
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
from secateur.partitioning.pruning.operand import Constant, Evaluated, Operand, Parameter, ParameterList, expressions_in
from secateur.partitioning.pruning.select_partitions import select_partitions
from secateur.partitioning.pruning.tree_binding import compile_node, compile_partial
from secateur.partitioning.schemes.scheme import PartitionScheme, find_scheme
from secateur.partitioning.types.sql_text import text_literal


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """The partitions that one execution of a scan needs.

    Attributes:
        ids: Ascending and distinct; of all live partitions when nothing was pruned.
        total: How many partitions the table has.
    """

    ids: Sequence[int]
    total: int

    @property
    def is_all(self) -> bool:
        return len(self.ids) == self.total

    @property
    def is_empty(self) -> bool:
        return not self.ids

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __contains__(self, partition: object) -> bool:
        return partition in self.ids


class PartitionTree(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The required partitions of one scan, open in the parameters of its statement.

    Attributes:
        table: The name of the scanned table, for the text form.
        scheme_or_reference: The table's partition scheme, or the reference of a large one, by which it travels.
        root: The expression.
        total: How many live partitions the table has.
        limit: How many combinations of values are hashed per component before it counts as not bounded.
    """

    table: str
    scheme_or_reference: PartitionScheme | str
    root: Node
    total: int
    limit: int

    def __post_init__(self) -> None:
        force_setattr(self, "scheme_or_reference", self.scheme.reference or self.scheme)
        self.bind_ids  # noqa: B018 - a tree that names columns which its scheme lacks is refused here

    @cached_property
    def scheme(self) -> PartitionScheme:
        """The table's partition scheme."""
        return find_scheme(self.scheme_or_reference, table=self.table)

    @cached_property
    def bind_ids(self) -> Callable[[Sequence[Any]], Sequence[int] | None]:
        """:meth:`bind` as a function to sorted ids, for who has checked the parameters; None for every live partition.

        Raises (the function):
            IndexError: There are fewer parameters than the tree uses.
            UnknownRangesError: As :meth:`bind`.
        """
        root = self.root if self.scheme.is_known_function else All()
        compiled = compile_node if self.scheme.partial is None else compile_partial
        return compiled(root, self.scheme, self.limit)

    @cached_property
    def expressions(self) -> tuple[Evaluated, ...]:
        """The expressions of parameters whose values :meth:`bind` takes from behind the parameters."""
        return expressions_in((self.root,))

    @cached_property
    def _single(self) -> dict[int, PartitionSet]:
        return {}

    @property
    def is_constant(self) -> bool:
        """Whether the partitions do not depend on parameters."""
        return isinstance(self.root, All | Nothing | Everywhere | Partitions)

    @property
    def is_single(self) -> bool:
        """Whether it yields one partition at most, for all parameters of the right types."""
        return _is_single(self.root, self.scheme.columns)

    def bind(self, params: Sequence[Any]) -> PartitionSet:
        """The required partitions for these parameters.

        A value that cannot be compared exactly with its column leaves the column unbounded; it never raises.

        Args:
            params: Python values in order of parameter index, and behind them those of :attr:`expressions`; an
                expression whose value is not there leaves its column unbounded.

        Raises:
            ParameterError: There are fewer parameters than the tree uses.
            UnknownRangesError: The ranges of some keys are not known here yet.

        Cost: 2 microseconds for one key; per further element of an IN list half a microsecond.
        """
        try:
            ids = self.bind_ids(params)
        except IndexError:
            raise ParameterError(f"the statement uses more than the {len(params)} parameters given") from None
        if ids is None:
            return PartitionSet(self.live_ids(), self.total)
        if len(ids) == 1:
            # One partition is the common answer, so its set is made only once.
            found = self._single.get(ids[0])
            if found is None:
                found = self._single[ids[0]] = PartitionSet(tuple(ids), self.total)
            return found
        return PartitionSet(ids, self.total)

    def live_ids(self) -> Sequence[int]:
        """Every partition that can hold rows, ascending."""
        return range(self.total) if self.scheme.range is None else self.scheme.live_ids()

    def __str__(self) -> str:
        """Return the text form, such as ``orders: (p17 | $1)``; see :func:`node_text`."""
        return f"{self.table}: {node_text(self.root, self.scheme)}"


def _is_single(node: Node, columns: Sequence[str]) -> bool:
    match node:
        case Nothing() | Everywhere():
            return True
        case Partitions(ids):
            return len(ids) == 1
        case Keys(box):
            return all(any(choice.names_one_value for choice in box[column].choices) for column in columns)
        case AllOf(parts):
            return any(_is_single(part, columns) for part in parts)
        case Satisfiable(_, part):
            return _is_single(part, columns)
        case _:
            return False


_SHOWN_MAX: Final = 16


def node_text(node: Node, scheme: PartitionScheme) -> str:
    """Return the text of a tree of a table with this scheme.

    ``p17`` is a constant partition, ``$1`` the partition of the first parameter, and ``$1[]`` the partitions of the
    elements of the first parameter, a list. Parameters are counted from 1, as in SQL. For a partitioning key of several
    columns a key is a tuple, ``($1, *)``; ``*`` marks a column that is not bound, and the name of another column one
    that equals it: ``({$1, $2}, a)``.

    Groups are in parentheses; ``all``, ``none`` and ``any`` stand without. ``$1 or none`` is none where parameters
    contradict what is said of another column.
    """
    match node:
        case All():
            return "all"
        case Nothing():
            return "none"
        case Everywhere():
            return "any"
        case AllOf(parts):
            return f"({' & '.join(node_text(part, scheme) for part in parts)})"
        case Satisfiable(_, part):
            return f"{node_text(part, scheme)} or none"
        case Partitions() | Keys() | AnyOf():
            return f"({' | '.join(_alternatives(node, scheme))})"
        case _:
            assert_never(node)


def _alternatives(node: Node, scheme: PartitionScheme) -> list[str]:
    match node:
        case Partitions(ids):
            return _shortened([f"p{partition}" for partition in ids])
        case Keys(box) if len(scheme.columns) == 1:
            return _shortened(_constraint_alternatives(box[scheme.columns[0]], scheme))
        case Keys(box):
            return [_tuple_text(box, scheme)]
        case AnyOf(parts):
            return [text for part in parts for text in _alternatives(part, scheme)]
        case _:
            return [node_text(node, scheme)]


def _tuple_text(box: Box, scheme: PartitionScheme) -> str:
    texts = []
    equals = {column: members[0] for members in box.equal for column in members[1:]}
    for column in scheme.columns:
        first = equals.get(column)
        known = () if first is None else box[first].choices
        alternatives = [_choice_text(choice) for choice in box[column].choices if choice not in known]
        if first is not None:
            alternatives.append(first)
        texts.append(_conjunction_text(alternatives) if alternatives else "*")
    return f"({', '.join(texts)})"


def _constraint_alternatives(constraint: Constraint, scheme: PartitionScheme) -> list[str]:
    """On a key of one column the constants of an IN list are shown as the partitions that they are in."""
    match constraint.choices:
        case (Choice(domain, tests),) if domain.is_finite and all(
            test.comparison is Comparison.IN and test.comparison_target == targets.BARE for test in tests
        ):
            column = scheme.columns[0]
            constants = [operand.value for test in tests for operand in test.operands if isinstance(operand, Constant)]
            known = compare(Comparison.IN, constants, scheme.type_of(column))
            if known is None:
                return [_choice_text(constraint.choices[0])]
            ids = select_partitions(scheme, {column: domain.unite(known)}, len(domain.points) + len(constants)).ids
            opened = [
                _operand_text(operand)
                for test in tests
                for operand in test.operands
                if not isinstance(operand, Constant)
            ]
            return [f"p{partition}" for partition in ids] + opened
        case choices:
            return [_conjunction_text([_choice_text(choice) for choice in choices])]


def _conjunction_text(texts: Sequence[str]) -> str:
    """The texts of choices that all hold; a lower and an upper bound are an interval."""
    ends = [[text for text in texts if text.startswith(sign) and " or " not in text] for sign in (">= ", "<= ")]
    if [len(found) for found in ends] != [1, 1]:
        return " & ".join(texts)
    ((lower,), (upper,)) = ends
    interval = f"[{lower.removeprefix('>= ')}, {upper.removeprefix('<= ')}]"
    return " & ".join(interval if text == lower else text for text in texts if text != upper)


def _choice_text(choice: Choice) -> str:
    texts = [] if choice.domain.is_nothing else [domain_text(choice.domain)]
    texts.extend(_test_text(test) for test in choice.tests)
    return " or ".join(texts)


def _test_text(test: ParameterComparison) -> str:
    match test.comparison_target:
        case targets.BareColumn() | targets.ShortText() | targets.RowField():
            return _bare_text(test.comparison, [_operand_text(operand) for operand in test.compared])
        case comparison_target:
            operands = ", ".join(_shortened([_operand_text(operand) for operand in test.operands]))
            word = (
                {Comparison.IN: "=", Comparison.NOT_IN: "<>"}.get(test.comparison, test.comparison.value)
                if len(test.operands) == 1
                else test.comparison.value
            )
            return f"{_comparison_target_text(comparison_target)} {word} {operands}"


def _bare_text(comparison: Comparison, operands: Sequence[str]) -> str:
    match comparison:
        case Comparison.IN:
            return operands[0] if len(operands) == 1 else f"{{{', '.join(_shortened(operands))}}}"
        case Comparison.NOT_IN | Comparison.DISTINCT:
            return f"not {operands[0]}" if len(operands) == 1 else f"not {{{', '.join(_shortened(operands))}}}"
        case Comparison.BETWEEN:
            return f"[{operands[0]}, {operands[1]}]"
        case Comparison.NOT_BETWEEN:
            return f"not [{operands[0]}, {operands[1]}]"
        case Comparison.STARTS_WITH:
            return f"{operands[0]}..."
        case Comparison.NOT_STARTS_WITH:
            return f"not {operands[0]}..."
        case _:
            return f"{comparison.value} {operands[0]}"


def _comparison_target_text(
    comparison_target: targets.WidenedColumn | targets.LinearColumn | targets.AbsoluteColumn | targets.TruncatedColumn,
) -> str:
    """The expression of the key that is compared."""
    match comparison_target:
        case targets.WidenedColumn(wide):
            return f"CAST(key AS {wide})"
        case targets.LinearColumn(offset, factor):
            return _linear_text("key", offset, factor)
        case targets.AbsoluteColumn(_, offset, factor):
            return _linear_text("abs(key)", offset, factor)
        case targets.TruncatedColumn(_, as_date=True):
            return "CAST(key AS DATE)"
        case targets.TruncatedColumn(unit):
            return f"date_trunc({unit}, key)"
        case _:
            assert_never(comparison_target)


def _linear_text(term: str, offset: int, factor: int) -> str:
    if factor == -1:
        return f"{offset} - {term}"
    scaled = term if factor == 1 else f"{term} * {factor}"
    return f"{scaled} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else scaled


def _operand_text(operand: Operand | ParameterList) -> str:
    match operand:
        case Parameter(index):
            return f"${index + 1}"
        case ParameterList(index):
            return f"${index + 1}[]"
        case Constant(value):
            return value_text(value)
        case Evaluated():
            return operand.shown
        case _:
            assert_never(operand)


def domain_text(domain: Domain) -> str:
    """A domain as a set of values and intervals, such as ``{1, 2} or [5, 9)``."""
    if domain.is_nothing:
        return "{}"
    if domain.is_everything:
        return "*"
    texts = []
    if domain.points:
        values = [value_text(value) for value in sorted(domain.points)]
        texts.append(values[0] if len(values) == 1 else f"{{{', '.join(_shortened(values))}}}")
    texts.extend(_span_text(span) for span in domain.spans)
    return " or ".join(texts)


def _span_text(span: Span) -> str:
    lower = "(-inf" if span.lower is None else f"{'[' if span.lower_closed else '('}{value_text(span.lower)}"
    upper = "inf)" if span.upper is None else f"{value_text(span.upper)}{']' if span.upper_closed else ')'}"
    return f"{lower}, {upper}"


def value_text(value: Any) -> str:
    """A value as a literal of the dialect, without its type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    return text_literal(str(value))


def _shortened(texts: Sequence[str]) -> list[str]:
    """At most 16 texts, and the number of texts left out."""
    if len(texts) <= _SHOWN_MAX:
        return list(texts)
    return [*texts[: _SHOWN_MAX - 1], f"{len(texts) - _SHOWN_MAX + 1} more"]
