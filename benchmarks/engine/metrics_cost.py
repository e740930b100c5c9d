"""What counting costs where it costs most: small batches that three processors hand on as they are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final
from unittest.mock import patch

import pyarrow as pa

import secateur
from benchmarks.record import Bar
from secateur import Connection, JobConfig
from secateur.dag import DAG, Emitter, Processor, between
from secateur.engine.exchange.inbox import Inbox
from secateur.engine.exchange.outbox import EdgeWriter
from secateur.engine.scheduler import Scheduler

__all__ = ["MetricsCost", "bars_of_metrics", "measure_metrics_cost"]

_BATCHES: Final = 2_000
_BATCH_ROWS: Final = 100
_RATIO_MAX: Final = 1.03
_WARM_UP_ROUNDS: Final = 4


@dataclass(frozen=True, slots=True)
class MetricsCost:
    """One job with the engine as it is, and with the counters taken out.

    Attributes:
        batches: Batches that pass each of the vertices.
        rows: Rows of each.
        counted_s: Processor time, median over the rounds.
        uncounted_s: The same without counters.
        ratio: Median over the rounds of the ratio of the two.
    """

    batches: int
    rows: int
    counted_s: float
    uncounted_s: float
    ratio: float


class _Produce(Processor):
    """The same batch over and over, each time as a new object that nobody has looked at."""

    def __init__(self) -> None:
        self._emitter: Emitter | None = None

    def complete(self) -> bool:
        if self._emitter is None:
            columns = [pa.array(range(_BATCH_ROWS)), pa.array([float(number) for number in range(_BATCH_ROWS)])]
            self._emitter = Emitter(
                self.outbox, (pa.RecordBatch.from_arrays(columns, names=["a", "b"]) for _ in range(_BATCHES))
            )
        return self._emitter.emit()


class _PassOn(Processor):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self.outbox.offer(batch)


class _Swallow(Processor):
    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return True


def measure_metrics_cost(rounds: int) -> MetricsCost:
    """Run the job with and without counters, in turn, on one embedded member."""
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as connection:
        pairs = []
        for number in range(rounds + _WARM_UP_ROUNDS):
            with _without_counters() if number % 2 else nullcontext():
                first = _run(connection)
            with nullcontext() if number % 2 else _without_counters():
                second = _run(connection)
            pairs.append((second, first) if number % 2 else (first, second))
    timed = pairs[_WARM_UP_ROUNDS:]
    counted, uncounted = zip(*timed, strict=True)
    return MetricsCost(
        _BATCHES, _BATCH_ROWS, median(counted), median(uncounted), median(one / other for one, other in timed)
    )


def bars_of_metrics(measured: MetricsCost) -> list[Bar]:
    """Counting is nearly free."""
    what = f"{measured.batches:,} batches of {measured.rows} rows: processor time with metrics / without"
    return [Bar.at_most(what, measured.ratio, _RATIO_MAX)]


def _dag() -> DAG:
    dag = DAG()
    names = ["produce", "first", "second", "third", "swallow"]
    for name, make in zip(names, [_Produce, _PassOn, _PassOn, _PassOn, _Swallow], strict=True):
        dag.new_vertex(name, make)
    for source, destination in pairwise(names):
        dag.edge(between(source, destination))
    return dag


def _run(connection: Connection) -> float:
    """Seconds of processor time of one job."""
    start = time.process_time()
    connection.submit(_dag(), JobConfig(), light=True).results()
    return time.process_time() - start


@contextmanager
def _without_counters() -> Iterator[None]:
    """Run the engine without metrics: nothing is added up, and batches are measured only for the bounds of queues."""

    def write(self: EdgeWriter, batch: pa.RecordBatch) -> None:
        self.batches += 1  # tells the tasklet that its processor has come further
        for group, part in self._route(batch):
            if not group.place(part):
                self._backlog.append((group, part, None))

    def take(self: Inbox) -> pa.RecordBatch | None:
        if not self._items:
            return None
        batch, size, acknowledger = self._items.popleft()
        if acknowledger is not None:
            acknowledger.taken(size)
        else:
            self._taken_local_batches += 1
            self._taken_local_bytes += size
            if self._waiting and self.has_room:
                waiting, self._waiting = self._waiting, []
                for producer in waiting:
                    producer.wake()
        return batch

    def run_slice(self: Scheduler) -> None:
        ready, at_end = self._ready, self._at_end
        end = time.perf_counter() + self._slice_s
        while ready:
            runnable = ready.popleft()
            runnable.is_scheduled = False
            runnable.run()
            if time.perf_counter() >= end:
                break
        for _ in range(len(at_end)):
            sender = at_end.popleft()
            sender.is_scheduled = False
            sender.run()
        self._is_armed = bool(ready or at_end)
        if self._is_armed:
            self._loop.call_soon(self._run_slice)

    with (
        patch.object(EdgeWriter, "write", write),
        patch.object(Inbox, "take", take),
        patch.object(Scheduler, "_run_slice", run_slice),
    ):
        yield
