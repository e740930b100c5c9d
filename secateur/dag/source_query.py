"""A SELECT by which a source says what it reads, so that the planner of SQL determines partitions, keys and filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from secateur.partitioning.topology.job_requirements import JobRequirements


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A SELECT of a source.

    Attributes:
        sql: Its text.
        params: The values of its placeholders, in order or by name, bound to the parameters of the job.
        pruning: Whether partitions and rows that its condition excludes are left out before it is tested.
    """

    sql: str
    params: Sequence[Any] | Mapping[str, Any] = ()
    pruning: bool = True


NeedsOfQuery: TypeAlias = Callable[[SourceQuery], JobRequirements]
"""Finds out what a SELECT requires, where a job is submitted."""
