"""The arguments of a job other than its DAG and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from secateur.errors import DagError

RESULT_BYTES_MAX: Final = 1 << 30


class OnMemberLost(StrEnum):
    """The treatment of a job that cannot continue because a member was lost, or partitions moved or changed."""

    RESTART = "restart"
    """It runs again from the beginning; its sinks write their rows again."""
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class JobConfig:
    """Options of a job.

    Attributes:
        name: ``Connection.job`` finds the job by it; unique among the jobs that have not ended, or None. For light
            jobs only a label.
        required_partitions: The partitions that the job can touch, by table name or affinity group. Only the members
            that own one of them take part, and a source that requires more than this is refused. None: the
            requirements that the sources declare decide.
        member_pruning: False deploys to every member, whatever is required. Use it to find out whether member pruning
            causes a problem.
        pruning: False has sources with a condition of SQL read every partition and test the condition on every row.
            ``SET pruning = off`` of a connection does the same for the jobs that it submits.
        timeout_s: The job fails with ``DeadlineError`` after that many seconds, restarts included; None: no limit.
        result_bytes_max: Most bytes that the result sinks of the job may collect at the coordinator.
        kernel_bytes_max: Most memory that the kernel calls of the job (sorts, joins, aggregates) use for intermediate
            results on each member. Beyond it they spill to disk where members have a spill directory, and fail the job
            with ``LimitExceededError`` where they have none. None: the job shares the member's kernel, and its limit,
            with everything else. A limit costs the job some milliseconds on each member, for a kernel of its own, which
            needs about 50 MB to be able to spill.
        on_member_lost: ``"restart"`` repeats the whole job; choose ``"fail"`` when a sink must not get rows twice.
            Light jobs always fail.
    """

    name: str | None = None
    required_partitions: Mapping[str, frozenset[int]] | None = None
    member_pruning: bool = True
    timeout_s: float | None = None
    result_bytes_max: int = RESULT_BYTES_MAX
    on_member_lost: str = OnMemberLost.RESTART
    kernel_bytes_max: int | None = None
    pruning: bool = True

    def __post_init__(self) -> None:
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise DagError(
                f"JobConfig.timeout_s is {self.timeout_s!r}; it must be a positive number of seconds, or None"
            )
        if self.result_bytes_max < 1:
            raise DagError(f"JobConfig.result_bytes_max is {self.result_bytes_max!r}; it must be at least 1")
        if self.kernel_bytes_max is not None and self.kernel_bytes_max < 1:
            raise DagError(
                f"JobConfig.kernel_bytes_max is {self.kernel_bytes_max!r}; it must be at least 1, or None for the limit"
                " of the member"
            )
        if self.on_member_lost not in tuple(OnMemberLost):
            raise DagError(
                f"JobConfig.on_member_lost is {self.on_member_lost!r}; it must be one of"
                f" {', '.join(repr(str(choice)) for choice in OnMemberLost)}"
            )
        for key, partitions in (self.required_partitions or {}).items():
            if not all(isinstance(partition, int) and partition >= 0 for partition in partitions):
                raise DagError(
                    f"JobConfig.required_partitions[{key!r}] must hold partition ids (integers from 0), not"
                    f" {sorted(map(repr, partitions))[:5]}"
                )
        if self.required_partitions is not None:
            frozen = {key: frozenset(partitions) for key, partitions in self.required_partitions.items()}
            object.__setattr__(self, "required_partitions", frozen)
