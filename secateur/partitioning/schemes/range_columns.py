"""Ranges as they travel: in columns, because a hundred thousand small objects would take seconds to write and read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from secateur.partitioning.schemes.components import HashComponent, RangePartition
from secateur.partitioning.schemes.garbage_collection import no_garbage_collection

_INDEX: Final = np.dtype("<i4")
_Key: TypeAlias = tuple[Any, ...]


class RangeColumns(msgspec.Struct, frozen=True, array_like=True):
    """Ranges that ascend and are disjoint, in columns.

    Attributes:
        bounds: The bounds of the ranges, each once, ascending: a list for each range column.
        lowers: For each range the index of its lower bound, -1 for none; int32, little-endian, as all that follow.
        uppers: Likewise the upper bounds.
        ordinals: For each range its ordinal.
        hash_lists: For each range the index of its own hash components in a list that is sent beside, -1 for those of
            the table.
    """

    bounds: list[list[Any]]
    lowers: bytes
    uppers: bytes
    ordinals: bytes
    hash_lists: bytes

    @classmethod
    @no_garbage_collection()
    def of(cls, ranges: Sequence[RangePartition], hash_lists: Sequence[tuple[HashComponent, ...]]) -> RangeColumns:
        """The columns of some ranges; their names are left out. Cost: about a microsecond per range."""
        index: dict[_Key, int] = {}
        for partition in ranges:  # sorted and disjoint, so their bounds ascend in this order
            for bound in (partition.lower, partition.upper):
                if bound is not None and bound not in index:
                    index[bound] = len(index)
        number = {hashes: position for position, hashes in enumerate(hash_lists)}
        return cls(
            [list(column) for column in zip(*index, strict=True)],
            packed([-1 if r.lower is None else index[r.lower] for r in ranges]),
            packed([-1 if r.upper is None else index[r.upper] for r in ranges]),
            packed([r.ordinal for r in ranges]),
            packed([-1 if r.hashes is None else number[r.hashes] for r in ranges]),
        )

    @no_garbage_collection()
    def ranges(
        self, hash_lists: Sequence[tuple[HashComponent, ...]], names: Sequence[str | None] | None = None
    ) -> list[RangePartition]:
        """The ranges, with names if they are given. Cost: under a microsecond per range."""
        bounds: list[_Key | None] = [*zip(*self.bounds, strict=True), None]
        own: list[tuple[HashComponent, ...] | None] = [*hash_lists, None]
        ordinals = unpacked(self.ordinals)
        return [
            RangePartition(ordinal, bounds[lower], bounds[upper], name, own[hashes])
            for lower, upper, ordinal, hashes, name in zip(
                unpacked(self.lowers),
                unpacked(self.uppers),
                ordinals,
                unpacked(self.hash_lists),
                [None] * len(ordinals) if names is None else names,
                strict=True,
            )
        ]


def packed(numbers: Iterable[int]) -> bytes:
    """Numbers as int32, little-endian."""
    return np.fromiter(numbers, _INDEX).tobytes()


def unpacked(data: bytes) -> list[int]:
    """The numbers of :func:`packed`."""
    numbers: npt.NDArray[np.int32] = np.frombuffer(data, _INDEX)
    found: list[int] = numbers.tolist()
    return found
