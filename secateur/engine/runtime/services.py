"""The services that a member offers to its processors.

Among them is a kernel for each job that has a memory limit of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from secateur.dag.supplier import SourceQuery
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import ChunkedResult, Fragment, open_answer, run_with
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine_limits import EngineLimits
from secateur.errors import LimitExceededError, NotSupportedError, UnknownTableError
from secateur.partitioning.tables.table import TableDef
from secateur.storage.member_store import MemberStore

if TYPE_CHECKING:
    from secateur.engine.kernels.duckdb.kernel import DuckDBKernel


_Answer = TypeVar("_Answer", covariant=True)


class KernelFunction(Protocol[_Answer]):
    """Calls a kernel with a fragment over named relations; safe from any thread."""

    def __call__(
        self,
        fragment: Fragment,
        relations: Mapping[str, pa.Table],
        params: Sequence[Any] = (),
        *,
        cancellation: Cancellation | None = None,
    ) -> _Answer: ...


FragmentRunner: TypeAlias = KernelFunction[pa.Table]
"""Runs a fragment; :func:`secateur.engine.kernels.fragment.run` is one."""
AnswerOpener: TypeAlias = KernelFunction[ChunkedResult]
"""Opens the answer of a fragment that is taken in parts, as ``fragment.open_answer`` does."""


class RowsWriter(Protocol):
    """Writes rows to the primaries of their partitions and waits until the backups have them too.

    For threads other than that of the event loop.
    """

    def __call__(self, table: TableDef, rows: pa.Table, mode: str, change_id: str) -> int:
        """Write rows; those of one partition become visible together.

        Ranges that the table makes on demand are made first.

        Args:
            table: The table.
            rows: In the table's schema.
            mode: ``"append"`` or ``"upsert"``.
            change_id: Unique; a write that is repeated under the same id is made once.

        Returns:
            Rows written.

        Raises:
            NoRangeError: A row that no range covers, and none is made for; nothing was written.
            Error: The error of the first partition that refused; every other write has ended by then, successful or
                not.
        """


def _no_table(name: str) -> TableDef:
    raise UnknownTableError(f"table {name!r} is not known on this member")


def _no_writer(table: TableDef, rows: pa.Table, mode: str, change_id: str) -> int:
    raise NotSupportedError(
        f"table {table.name} cannot be written from here: this engine belongs to no member of a cluster"
    )


def _all_acknowledged(_: Iterable[tuple[int, int]]) -> None:
    """Nobody writes."""


async def _no_planner(query: SourceQuery) -> PlannedQuery:
    raise NotSupportedError("a condition of SQL cannot be planned here: this engine belongs to no member of a cluster")


@dataclass(frozen=True, slots=True)
class MemberServices:
    """The services of a member.

    Attributes:
        store: Its partitions. Read on the event loop only; its snapshots may be read anywhere.
        run_fragment: Runs a kernel.
        executor: Threads for calls that are known to take long; few, so that they do not all run at once.
        table: Finds a table's description; raises ``UnknownTableError``.
        write_rows: Writes rows of any partition of the cluster.
        acknowledged: Gives what waits until the changes that readers of some partitions, by table and number, see now
            are acknowledged; None if they are. A statement that has read them is answered later.
        plan_query: Plans the SELECT of a source, for one run of a job that starts now; on the event loop.
        allow_code: Whether it accepts suppliers that are sent as code.
        open_answer: Runs a kernel whose answer is taken in parts, as the stages of a SELECT do.
        quick_executor: Threads for all other calls, which do not wait for those; None: the same.
        spill_directory: Where kernels of jobs spill beyond their limits; None for nowhere.
        external_directories: The directories that external tables may read.
        limits: Bounds of its engine.
        gathered_bytes_max: Bytes of rows that the stages of one SELECT may gather here.
    """

    store: MemberStore
    run_fragment: FragmentRunner
    executor: Executor
    table: Callable[[str], TableDef] = _no_table
    write_rows: RowsWriter = _no_writer
    acknowledged: Callable[[Iterable[tuple[int, int]]], Callable[[], Coroutine[Any, Any, None]] | None] = (
        _all_acknowledged
    )
    plan_query: Callable[[SourceQuery], Awaitable[PlannedQuery]] = _no_planner
    allow_code: bool = False
    open_answer: AnswerOpener = open_answer
    quick_executor: Executor | None = None
    spill_directory: Path | None = None
    external_directories: tuple[Path, ...] = ()
    limits: EngineLimits = field(default_factory=EngineLimits)
    gathered_bytes_max: int = 2 << 30

    @property
    def quick(self) -> Executor:
        """Threads for calls that need not take long."""
        return self.executor if self.quick_executor is None else self.quick_executor


class GatherBudget:
    """Bytes that the stages of a job hold on a member. A statement that is too large fails, not its member.

    Used on the event loop. They are rows gathered for a kernel call, or made by one and not passed on yet.
    """

    __slots__ = ("_bytes_max", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.held_bytes = 0

    def take(self, size: int) -> None:
        """Keep ``size`` more bytes.

        Raises:
            LimitExceededError: They are too many.
        """
        self.held_bytes += size
        if self.held_bytes > self._bytes_max:
            raise LimitExceededError(
                f"the statement gathers more rows than one member may hold for it: {self.held_bytes:,} bytes, the limit"
                f" is {self._bytes_max:,}; select fewer columns, filter or aggregate before the join, partition the"
                " tables by the columns they are joined on, or raise gathered_bytes_max"
            )

    def give_back(self, size: int) -> None:
        """``size`` bytes are not kept any more."""
        self.held_bytes -= size


class PlannedQuery(NamedTuple):
    """A SELECT of a source, for one run of a job.

    Attributes:
        plan: Its plan.
        params: The values of the parameters of its fragments, in order.
        partitions: For each scan of the plan, the partitions to read.
    """

    plan: SelectPlan
    params: Sequence[Any]
    partitions: Sequence[Sequence[int]]


class JobKernel:
    """Answers the fragments of one job on one member; its :meth:`run` is a ``FragmentRunner``.

    Starts DuckDB at the first call that needs it.

    Args:
        memory_limit_bytes: Most memory for intermediate results of all calls of the job together.
        spill_directory: Where intermediate results go that pass the limit; None to raise LimitExceededError instead.
    """

    def __init__(self, memory_limit_bytes: int, spill_directory: Path | None) -> None:
        self._memory_limit_bytes = memory_limit_bytes
        self._spill_directory = spill_directory
        self._lock = threading.Lock()
        self._kernel: DuckDBKernel | None = None

    def run(
        self,
        fragment: Fragment,
        relations: Mapping[str, pa.Table],
        params: Sequence[Any] = (),
        *,
        cancellation: Cancellation | None = None,
    ) -> pa.Table:
        """As :func:`secateur.engine.kernels.fragment.run`.

        Raises:
            LimitExceededError: The limit of the job is reached.
        """
        try:
            return run_with(fragment, relations, params, cancellation=cancellation, duckdb=self._started)[0]
        except LimitExceededError as error:
            raise LimitExceededError(
                f"{error.message}; this job's own limit is {self._memory_limit_bytes:,} bytes,"
                " JobConfig.kernel_bytes_max",
                **error.details,
            ) from error

    def close(self) -> None:
        """End the database; the job has ended, and every call with it."""
        with self._lock:
            kernel, self._kernel = self._kernel, None
        if kernel is not None:
            kernel.close()

    def _started(self) -> DuckDBKernel:
        from secateur.engine.kernels.duckdb.kernel import DuckDBKernel  # imported at the first use, as in ``run_with``

        with self._lock:
            if self._kernel is None:
                self._kernel = DuckDBKernel(
                    memory_limit_bytes=self._memory_limit_bytes, spill_directory=self._spill_directory
                )
            return self._kernel
