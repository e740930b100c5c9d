"""The answer of a kernel call that is taken in parts, as a span of its trace."""

from __future__ import annotations

import pyarrow as pa

from secateur.engine.kernels.chunked_result import ChunkedResult
from secateur.tracing import KernelSpan


class TracedResult:
    """An answer whose span ends with its last part, or when it is closed.

    Args:
        answer: The answer.
        text: What the kernel answers.
        kernel: The kernel that makes it.
    """

    def __init__(self, answer: ChunkedResult, text: str, kernel: str) -> None:
        self._answer = answer
        self._span: KernelSpan | None = KernelSpan(text)
        self._kernel = kernel
        self._rows = 0

    @property
    def is_done(self) -> bool:
        return self._answer.is_done

    @property
    def held_bytes(self) -> int:
        return self._answer.held_bytes

    def take(self, bytes_wanted: int) -> pa.Table:
        try:
            taken = self._answer.take(bytes_wanted)
        except BaseException as error:
            span, self._span = self._span, None
            if span is not None:
                span.fail(error)
            raise
        self._rows += taken.num_rows
        if self._answer.is_done:
            self._end()
        return taken

    def close(self) -> None:
        self._answer.close()
        self._end()

    def _end(self) -> None:
        span, self._span = self._span, None
        if span is not None:
            span.end(self._kernel, self._rows)
