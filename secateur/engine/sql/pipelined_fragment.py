"""A kernel fragment that answers row by row, as a processor that holds few rows.

Each input batch is answered and passed on before the next is taken.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from secateur.dag.processor import Emitter, Offload, Processor
from secateur.engine.exchange.batches import small_batches_of
from secateur.engine.sql.fragment_call import FragmentCall
from secateur.engine.sql.row_stream import RowPieces
from secateur.partitioning.types.empty_rows import empty_table


class PipelinedFragment(Processor):
    """Answers its scan piece by piece, or its input batch by batch.

    Passes on at least one batch, were it without rows: the schema is an answer too.

    Args:
        call: The fragment, over one relation.
        relation: The relation's name.
        rows: The rows to read; of a fragment with an input, none in the schema of the input.
        open_: Reads the rows in a thread, in the schema of ``rows``; None where ``rows`` are all.
    """

    def __init__(
        self, call: FragmentCall, relation: str, rows: pa.Table, open_: Callable[[], pa.Table] | None = None
    ) -> None:
        self._call = call
        self._relation = relation
        self._empty = empty_table(rows.schema)
        self._pieces = RowPieces(rows, call.limits)
        self._open = open_
        self._opening: Offload[pa.Table] | None = None
        self._poll: Callable[[], pa.Table | None] | None = None
        self._emitter: Emitter | None = None
        self._has_emitted = False
        self._is_last = False
        """No rows were passed on, so an answer without rows has to be."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if not batch.num_rows:
            self._empty = empty_table(batch.schema)  # it says what types the columns came to
            return True
        return self._answer(lambda: pa.Table.from_batches([batch]))

    def complete(self) -> bool:
        if not self._is_open():
            return False
        while not self._is_last and (self._is_answering or not self._pieces.is_done):
            if not self._answer(self._pieces.take):
                return False
        if self._has_emitted and not self._is_last:
            return True
        self._is_last = True
        return self._answer(lambda: self._empty)

    def close(self) -> None:
        self._open = self._opening = None
        self._pieces.drop()

    def _is_open(self) -> bool:
        """Whether there are rows to answer."""
        if self._open is not None:
            if self._opening is None:
                self._opening = self.context.offload(self._open)
            if not self._opening.done():
                return False
            self._pieces = RowPieces(self._opening.result(), self._call.limits)
            self._open = self._opening = None
        return True

    @property
    def _is_answering(self) -> bool:
        return self._poll is not None or self._emitter is not None

    def _answer(self, rows: Callable[[], pa.Table]) -> bool:
        """Answer over some rows and pass the answer on; False until that is done."""
        if self._emitter is None:
            if self._poll is None:
                self._poll = self._call.begin(self.context, {self._relation: rows()})
            result = self._poll()
            if result is None:
                return False
            self._poll = None
            self._pieces.answered(result.nbytes)
            if not result.num_rows and not self._is_last:
                return True
            self._emitter = Emitter(self.outbox, small_batches_of(result))
        if not self._emitter.emit():
            return False
        self._emitter = None
        self._has_emitted = True
        return True
