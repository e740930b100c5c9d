"""A kernel for one job, with a memory limit of its own that isolates it from everything else."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment, run_with
from secateur.errors import LimitExceededError

if TYPE_CHECKING:
    from secateur.engine.kernels.duckdb.kernel import DuckDBKernel


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
