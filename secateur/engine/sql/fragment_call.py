"""Kernel calls from a processor: on the loop if they are certainly short, otherwise in a thread.

The answer is taken whole or in parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final

import pyarrow as pa

from secateur.dag.processor import Offload, Params, ProcessorContext
from secateur.dag.supplier import SupplierContext
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import ChunkedResult, Fragment
from secateur.engine.runtime.services import MemberServices
from secateur.engine.threads import is_long_over
from secateur.errors import InternalError

INLINE_ROWS_MAX: Final = 5_000
"""Up to here the arrow kernel takes less time than handing the call to a thread and back."""


class FragmentCall:
    """A fragment with everything that it needs to run on this member. Shared by the processors of a supplier."""

    def __init__(
        self, fragment: Fragment, services: MemberServices, cancellation: Cancellation, params: Sequence[Any]
    ) -> None:
        self.fragment = fragment
        self.limits = services.limits
        self._services = services
        self._cancellation = cancellation
        self._params = params

    @classmethod
    def of(cls, fragment: Fragment, context: SupplierContext) -> FragmentCall:
        """From the services of the member and the parameters of the job."""
        return cls(fragment, context.service(MemberServices), context.service(Cancellation), positional(context.params))

    def run(self, relations: Mapping[str, pa.Table]) -> pa.Table:
        """Make the call in this thread."""
        return self._services.run_fragment(self.fragment, relations, self._params, cancellation=self._cancellation)

    def begin(self, context: ProcessorContext, relations: Mapping[str, pa.Table]) -> Callable[[], pa.Table | None]:
        """Start the call.

        Returns:
            A function that returns the result once there is one, None before, and raises the kernel's error.
        """
        if self._is_short(relations):
            result = self.run(relations)
            return lambda: result
        offload = context.offload(lambda: self.run(relations), is_long=is_long_over(_rows_of(relations)))
        return lambda: offload.result() if offload.done() else None

    def open(
        self,
        context: ProcessorContext,
        relations: Mapping[str, pa.Table],
        scans: Mapping[str, Callable[[], pa.Table]],
        scanned_rows: int,
    ) -> FragmentParts:
        """Begin a call whose answer is taken in parts.

        ``scans`` are relations that the thread of the call reads; ``scanned_rows`` is their total number of rows.
        """
        answer = self._services.open_answer

        def start() -> ChunkedResult:
            read = {relation: scan() for relation, scan in scans.items()}
            return answer(self.fragment, {**relations, **read}, self._params, cancellation=self._cancellation)

        is_long = is_long_over(_rows_of(relations) + scanned_rows)
        return FragmentParts(
            start,
            context,
            self._services.quick,
            self.limits.piece_bytes,
            is_short=not scans and self._is_short(relations),
            is_long=is_long,
        )

    def _is_short(self, relations: Mapping[str, pa.Table]) -> bool:
        return self.fragment.arrow is not None and _rows_of(relations) <= INLINE_ROWS_MAX


class FragmentParts:
    """The answer of a call, part by part; for the processor that began it.

    Args:
        start: Opens it. For a thread, unless the call is short.
        context: The context of the processor.
        executor: Threads in which the answer is closed.
        piece_bytes: About how many bytes a part has.
        is_short: Whether everything may happen on the loop.
        is_long: Whether it is known to take long.
    """

    def __init__(
        self,
        start: Callable[[], ChunkedResult],
        context: ProcessorContext,
        executor: Executor,
        piece_bytes: int,
        *,
        is_short: bool,
        is_long: bool,
    ) -> None:
        self._start: Callable[[], ChunkedResult] | None = start
        self._context = context
        self._executor = executor
        self._piece_bytes = piece_bytes
        self._is_short = is_short
        self._is_long = is_long
        self._answer: ChunkedResult | None = None
        self._taking: Offload[pa.Table] | None = None

    @property
    def is_done(self) -> bool:
        """Whether no part is left."""
        return self._taking is None and self._answer is not None and self._answer.is_done

    @property
    def held_bytes(self) -> int:
        """Bytes of the parts that are there already; only while none is being made."""
        return 0 if self._answer is None else self._answer.held_bytes

    def poll(self) -> pa.Table | None:
        """Return the next part once it is there, None before; only while not :attr:`is_done`.

        The first part may be without rows, and so may any part after one that was not known to be the last.

        Raises:
            Error: The kernel's error.
        """
        if self._is_short:
            return self._take()
        if self._taking is None:
            self._taking = self._context.offload(self._take, is_long=self._is_long)
        if not self._taking.done():
            return None
        part, self._taking = self._taking.result(), None
        return part

    def close(self) -> None:
        """Drop the remaining parts; only while no part is being made.

        The kernel may hold much memory for them, so a thread frees it.
        """
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if self._is_short or answer.is_done:
            answer.close()
            return
        with contextlib.suppress(RuntimeError):  # the member is shutting down, and its kernel with it
            self._executor.submit(answer.close)

    def _take(self) -> pa.Table:
        if self._start is not None:
            self._answer, self._start = self._start(), None  # which would keep what the kernel reads
        assert self._answer is not None
        return self._answer.take(self._piece_bytes)


def _rows_of(relations: Mapping[str, pa.Table]) -> int:
    return sum(table.num_rows for table in relations.values())


def positional(params: Params) -> Sequence[Any]:
    """The parameters of a job whose fragments count them from 1."""
    if isinstance(params, Mapping):
        if params:
            raise InternalError("a job of SQL fragments was started with named parameters; the planner numbers them")
        return ()
    return params
