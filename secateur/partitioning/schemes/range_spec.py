"""Ranges as DDL writes them, before they are checked against a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from secateur.partitioning.schemes.components import HashComponent


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """One range as written, its values not yet converted.

    Attributes:
        lower: The first key inside, or None where unbounded.
        upper: The first key after the range, or None where unbounded.
        name: The name given, or None.
        hashes: Its own hash components, ``()`` for NO HASH, None for the table's.
        is_point: Whether it was written ``VALUE = lower``; ``upper`` is then computed.
        is_catch_all: Whether it was written ``DEFAULT PARTITION``: it has no bounds and takes the rows that no other
            range holds.
    """

    lower: tuple[Any, ...] | None = None
    upper: tuple[Any, ...] | None = None
    name: str | None = None
    hashes: tuple[HashComponent, ...] | None = None
    is_point: bool = False
    is_catch_all: bool = False


def split_at(splits: Sequence[tuple[Any, ...]]) -> tuple[RangeSpec, ...]:
    """``SPLIT AT (...)``: n splits make n + 1 ranges that cover everything.

    The splits must ascend, which is checked when the scheme is built.
    """
    bounds: list[tuple[Any, ...] | None] = [None, *splits, None]
    return tuple(RangeSpec(lower, upper) for lower, upper in pairwise(bounds))


def single_value(
    value: tuple[Any, ...], name: str | None = None, hashes: tuple[HashComponent, ...] | None = None
) -> RangeSpec:
    """``PARTITION name VALUE = value``."""
    return RangeSpec(value, None, name, hashes, is_point=True)


def catch_all(name: str | None = None, hashes: tuple[HashComponent, ...] | None = None) -> RangeSpec:
    """``DEFAULT PARTITION name``."""
    return RangeSpec(name=name, hashes=hashes, is_catch_all=True)
