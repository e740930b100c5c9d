"""A scheme with many ranges as it travels to a process that has it under its reference from then on."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.range_columns import RangeColumns
from secateur.partitioning.schemes.scheme import PartitionScheme, scheme_of_reference


class LargeScheme(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A scheme that has a reference.

    Attributes:
        reference: The reference.
        rest: The scheme without its ranges and its reference.
        hash_lists: The distinct lists of hash components that ranges have of their own.
        columns: The ranges.
        names: The name of each range, if any has one.
    """

    reference: str
    rest: PartitionScheme
    hash_lists: tuple[tuple[HashComponent, ...], ...]
    columns: RangeColumns
    names: tuple[str | None, ...] | None

    def __post_init__(self) -> None:
        scheme = scheme_of_reference(self.reference)
        if scheme is None:
            component = self.rest.range
            if component is not None:
                ranges = tuple(self.columns.ranges(self.hash_lists, self.names))
                component = replace(component, ranges=ranges)
            scheme = replace(self.rest, range=component, reference=self.reference)
        self.__dict__["scheme"] = scheme

    @classmethod
    def of(cls, scheme: PartitionScheme) -> LargeScheme:
        """A scheme as it is sent. Cost: some microseconds per range; nothing for one that was sent before."""
        assert scheme.reference is not None
        rest, own, columns, names = scheme.in_columns()
        return cls(scheme.reference, rest, own, columns, names)

    @property
    def scheme(self) -> PartitionScheme:
        """The scheme: the one of this process with that reference, if there is one."""
        scheme: PartitionScheme = self.__dict__["scheme"]
        return scheme
