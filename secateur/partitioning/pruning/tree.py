"""The partition tree: a serialisable expression that yields a scan's required partitions once parameters are bound.

The planner builds a tree once per statement; members and thin clients evaluate it at every execution, without the
planner.

Source: Apache Ignite IEP-24, "Thin Clients" (PartitionNode, PartitionInfo).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from secateur.errors import ParameterError
from secateur.partitioning.pruning.nodes import All, Everywhere, Keys, Node, Nothing, node_from_wire, node_to_wire
from secateur.partitioning.pruning.tree_binding import compile_node
from secateur.partitioning.pruning.tree_text import node_text
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.schemes.scheme_registry import read_scheme, scheme_to_wire

__all__ = ["PartitionSet", "PartitionTree"]


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


@dataclass(frozen=True, slots=True)
class PartitionTree:
    """The required partitions of one scan, open in the parameters of its statement.

    Attributes:
        table: The name of the scanned table, for the text form.
        scheme: The table's partition scheme.
        root: The expression.
        total: How many live partitions the table has.
        limit: How many combinations of values are hashed per component before it counts as not bounded.
    """

    table: str
    scheme: PartitionScheme
    root: Node
    total: int
    limit: int
    _bind: Callable[[Sequence[Any]], Sequence[int] | None] = field(init=False, repr=False, compare=False)
    _single: dict[int, PartitionSet] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        root = self.root if self.scheme.is_known_function else All()
        object.__setattr__(self, "_bind", compile_node(root, self.scheme, self.limit))

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionTree.from_wire, (self.to_wire(),)

    @property
    def is_constant(self) -> bool:
        """Whether the partitions do not depend on parameters."""
        return not _has_keys(self.root)

    def bind(self, params: Sequence[Any]) -> PartitionSet:
        """The required partitions for these parameters.

        A value that cannot be compared exactly with its column leaves the column unbounded; it never raises.

        Args:
            params: Python values in order of parameter index.

        Raises:
            ParameterError: There are fewer parameters than the tree uses.

        Cost: 2 microseconds for one key; per further element of an IN list half a microsecond.
        """
        try:
            ids = self._bind(params)
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
        """Return the text form, such as ``orders: (p17 | ?0)``; see :mod:`~secateur.partitioning.pruning.tree_text`."""
        return f"{self.table}: {node_text(self.root, self.scheme)}"

    def to_wire(self, *, by_reference: bool = False) -> dict[str, Any]:
        """Plain data for msgpack, complete: a thin client needs nothing else to bind it.

        Args:
            by_reference: Name a large scheme instead of sending it, for a receiver that has the table or will fetch it.
        """
        scheme = scheme_to_wire(self.scheme, by_reference=by_reference)
        return {
            "table": self.table,
            "scheme": scheme,
            "root": node_to_wire(self.root),
            "total": self.total,
            "limit": self.limit,
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> PartitionTree:
        """Read :meth:`to_wire`.

        Raises:
            TopologyChangedError: It names a scheme that is not known here.
        """
        return cls(
            data["table"],
            read_scheme(data["scheme"], table=data["table"]),
            node_from_wire(data["root"]),
            data["total"],
            data["limit"],
        )


def _has_keys(node: Node) -> bool:
    match node:
        case Keys():
            return True
        case All() | Nothing() | Everywhere():
            return False
        case _:
            return any(_has_keys(part) for part in getattr(node, "parts", ()))
