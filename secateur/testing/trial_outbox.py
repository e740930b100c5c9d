"""The outbox of a trial: refuses as its scenario demands, and checks how the processor reacts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from secateur.errors import JobCancelledError


class TrialOutbox:
    """Collects the offered batches, by edge.

    Args:
        edges: Outbound edges.
        refuse: For each offer whether it is refused.
        cancel_after: Offers after which every further one raises ``JobCancelledError``, as the outbox of a processor
            with a thread does when the job has ended; None for never.

    Attributes:
        received: The batches accepted, by edge.
        accepted: Offers accepted.
        refused: The batch that was refused last and has not been accepted since, with its edge (None: all of them);
            None when nothing is open.
    """

    def __init__(self, edges: int, refuse: Iterator[bool], *, cancel_after: int | None = None) -> None:
        self.received: list[list[pa.RecordBatch]] = [[] for _ in range(edges)]
        self.accepted = 0
        self.refused: tuple[int | None, pa.RecordBatch] | None = None
        self._refuse = refuse
        self._cancel_after = cancel_after

    @property
    def bucket_count(self) -> int:
        return len(self.received)

    def offer(self, batch: pa.RecordBatch) -> bool:
        return self._offered(None, batch)

    def offer_to(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        assert 0 <= ordinal < len(self.received), (
            f"it offered a batch to output {ordinal}, but has {len(self.received)} outbound edges"
        )
        return self._offered(ordinal, batch)

    def _offered(self, ordinal: int | None, batch: pa.RecordBatch) -> bool:
        assert isinstance(batch, pa.RecordBatch), (
            f"it offered a {type(batch).__name__}; processors exchange pyarrow.RecordBatch"
        )
        if self._cancel_after is not None and self.accepted >= self._cancel_after:
            raise JobCancelledError("the job has ended while the processor was offering a batch")
        if self.refused is not None and self.refused[0] == ordinal:
            assert batch is self.refused[1] or batch.equals(self.refused[1]), (
                f"after a refused offer of {self.refused[1].num_rows} rows it offered other {batch.num_rows} rows; "
                "offer the refused batch again before anything else, or its rows are lost (Emitter does that)"
            )
        if next(self._refuse):
            self.refused = (ordinal, batch)
            return False
        if self.refused is not None and self.refused[0] == ordinal:
            self.refused = None
        for received in self.received if ordinal is None else self.received[ordinal : ordinal + 1]:
            self._check_schema(received, batch)
            received.append(batch)
        self.accepted += 1
        return True

    @staticmethod
    def _check_schema(received: list[pa.RecordBatch], batch: pa.RecordBatch) -> None:
        if received:
            first = received[0].schema
            same = first.names == batch.schema.names and first.types == batch.schema.types
            assert same, f"it offered batches of different schemas to one edge:\n{first}\nand\n{batch.schema}"
