"""The partition tree: a serialisable expression that yields a scan's required partitions once parameters are bound.

The planner builds a tree once per statement; members and thin clients evaluate it at every execution, without the
planner. A member evaluates the tree although its client has done so: the client may know old owners, or may not prune.
A member that is asked about partitions of others coordinates the statement, so the answer is right in any case.

Source: Apache Ignite IEP-24, "Thin Clients" (PartitionNode, PartitionInfo).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from secateur.cached_properties import cached_property
from secateur.errors import ParameterError
from secateur.partitioning.pruning.expressions import expressions_in
from secateur.partitioning.pruning.nodes import All, AllOf, Everywhere, Keys, Node, Nothing, Partitions
from secateur.partitioning.pruning.operand import Evaluated
from secateur.partitioning.pruning.tree_binding import compile_node, compile_partial
from secateur.partitioning.pruning.tree_text import node_text
from secateur.partitioning.schemes.scheme import PartitionScheme, find_scheme


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
        return not _has_keys(self.root)

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
        """Return the text form, such as ``orders: (p17 | $1)``; see :mod:`~secateur.partitioning.pruning.tree_text`."""
        return f"{self.table}: {node_text(self.root, self.scheme)}"


def _has_keys(node: Node) -> bool:
    match node:
        case Keys():
            return True
        case All() | Nothing() | Everywhere():
            return False
        case _:
            return any(_has_keys(part) for part in getattr(node, "parts", ()))


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
        case _:
            return False
