"""The kit passes what keeps the protocol and names what breaks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from secateur.dag import Emitter, Outbox, Processor, ProcessorContext, ProcessorSupplier
from secateur.testing import verify_processor

ROWS = pa.table({"x": [1, 2, 3]})


class Passing(Processor):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self.outbox.offer(batch)


class Threaded(Processor):
    cooperative = False

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.outbox.offer(batch)
        return True


class Source(Processor):
    def __init__(self) -> None:
        self._emitter: Emitter | None = None

    def complete(self) -> bool:
        self._emitter = self._emitter or Emitter(self.outbox, iter(ROWS.to_batches(max_chunksize=1)))
        return self._emitter.emit()


class Splitting(Processor):
    """Sends each row to the output that its value names."""

    def __init__(self) -> None:
        self._left: Iterator[tuple[int, pa.RecordBatch]] | None = None
        self._next: tuple[int, pa.RecordBatch] | None = None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self._left is None:
            self._left = iter([(x % 2, batch.slice(i, 1)) for i, x in enumerate(batch["x"].to_pylist())])
        while True:
            self._next = self._next or next(self._left, None)
            if self._next is None:
                self._left = None
                return True
            if not self.outbox.offer_to(*self._next):
                return False
            self._next = None


def test_what_keeps_the_protocol_passes() -> None:
    verify_processor(Passing, [ROWS], ROWS, ordered=True)
    verify_processor(Threaded, [ROWS], ROWS, ordered=True)
    verify_processor(Source, (), ROWS, ordered=True)
    verify_processor(Passing, [ROWS, ROWS], pa.concat_tables([ROWS, ROWS]), priorities=[1, 0], edges=2)
    verify_processor(Splitting, [ROWS], [pa.table({"x": [2]}), pa.table({"x": [1, 3]})], edges=2)


class Losing(Passing):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.outbox.offer(batch)
        return True


class Changing(Passing):
    calls = 0

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.calls += 1
        return self.outbox.offer(pa.RecordBatch.from_pydict({"x": [self.calls] * (batch.num_rows + self.calls)}))


class Stuck(Passing):
    def complete(self) -> bool:
        return False


class Wordless(Passing):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.outbox.offer(batch)
        return None  # type: ignore[return-value]


class Slow(Passing):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass
        return super().process(ordinal, batch)


class TableOffering(Passing):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self.outbox.offer(ROWS)


class Unclosable(Passing):
    def close(self) -> None:
        self.context.offload(int)


class FailingClose(Passing):
    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        self.opened = 0

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.opened += 1
        return super().process(ordinal, batch)

    def close(self) -> None:
        if getattr(self, "opened", 0) == 2:
            raise OSError("half open")


class Impatient(Passing):
    def complete(self) -> bool:
        return self.context.offload(lambda: True).result()


class Greedy(Passing):
    def complete(self) -> bool:
        self.context.offload(int)
        self.context.offload(int)
        return True


class Inconsistent(Passing):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self.outbox.offer(
            batch.cast(pa.schema({"x": pa.int32() if batch["x"].to_pylist() == [3] else pa.int64()}))
        )


class BatchCounting(Passing):
    def __init__(self) -> None:
        self.batches = 0

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.batches += 1
        return True

    def complete(self) -> bool:
        return self.outbox.offer(pa.RecordBatch.from_pydict({"n": [self.batches]}))


class TwiceTheSame(ProcessorSupplier):
    def get(self, count: int) -> Sequence[Processor]:
        return [Passing()] * count


class Many(ProcessorSupplier):
    def get(self, count: int) -> Any:
        return list(range(count))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            Losing,
            r"input in one batch, an outbox that refuses each batch once.*\n.*returned True although its offer of 3"
            r" rows was refused",
            id="loses",
        ),
        pytest.param(Changing, "after a refused offer of 4 rows it offered other 5 rows", id="offers another"),
        pytest.param(Stuck, r"complete\(\) returned False 1001 times in a row", id="never ends"),
        pytest.param(Wordless, r"process\(0, 3 rows\) returned None; return True", id="no answer"),
        pytest.param(TableOffering, r"it offered a Table", id="offers a table"),
        pytest.param(
            Unclosable,
            r"close\(\) of a processor that was never initialised raised AttributeError",
            id="close without init",
        ),
        pytest.param(FailingClose, r"OSError\('half open'\)", id="close fails in the middle"),
        pytest.param(Impatient, r"before done\(\) was true", id="waits for an offload"),
        pytest.param(Greedy, "a second offload", id="two offloads"),
        pytest.param(Inconsistent, "batches of different schemas", id="two schemas"),
        pytest.param(
            BatchCounting,
            r"batches of one row.*\n1 rows came, 1 were expected\n    missing: \(1,\)\n    extra:   \(3,\)",
            id="depends on batches",
        ),
        pytest.param(TwiceTheSame(), "called for 2 new processors", id="one processor twice"),
        pytest.param(Many(), "returned a int, which is not a Processor", id="no processor"),
    ],
)
def test_what_breaks_the_protocol_is_named(source: Callable[[], Processor] | ProcessorSupplier, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        verify_processor(source, [ROWS])


def test_a_cooperative_call_may_not_take_long() -> None:
    verify_processor(Slow, [ROWS], ROWS)
    with pytest.raises(AssertionError, match=r"process\(0, \d rows\) took 0.0\d\d s in the fastest of 10 trials"):
        verify_processor(Slow, [ROWS], ROWS, call_s_max=0.001)


@pytest.mark.parametrize(
    ("expected", "ordered", "message"),
    [
        pytest.param(pa.table({"x": [1, 2]}), False, r"3 rows came, 2 were expected\n    extra:   \(3,\)", id="extra"),
        pytest.param(pa.table({"x": [1, 2, 2, 2, 3]}), False, r"missing: \(2,\) \(2 times\)", id="missing twice"),
        pytest.param(
            pa.table({"x": [3, 2, 1]}), True, r"another order: row 0 is \(1,\)\n    expected \(3,\)", id="order"
        ),
        pytest.param(
            pa.table({"y": [3, 2, 1]}), False, r"the columns are x: int64\n    expected     y: int64", id="names"
        ),
        pytest.param(pa.table({"x": [1.0, 2.0, 3.0]}), False, "expected     x: double", id="types"),
    ],
)
def test_wrong_rows_are_shown(expected: pa.Table, ordered: bool, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        verify_processor(Passing, [ROWS], expected, ordered=ordered)


def test_nan_is_nan() -> None:
    rows = pa.table({"x": [float("nan"), None]})
    verify_processor(Passing, [rows], rows)


def test_arguments_that_do_not_fit_are_named() -> None:
    with pytest.raises(AssertionError, match="2 priorities were given for 1 inputs"):
        verify_processor(Passing, [ROWS], priorities=[0, 1])
    with pytest.raises(AssertionError, match="1 expected tables were given for 2 outbound edges"):
        verify_processor(Passing, [ROWS], [ROWS], edges=2)
