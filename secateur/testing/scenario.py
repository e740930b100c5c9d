"""The scenarios in which a processor is tried: how its input is split, what its outbox refuses, when it is stopped."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Final, assert_never

import pyarrow as pa

_BATCHES_MAX: Final = 200
"""A long input has batches of one row at its start only."""


class BatchSplit(Enum):
    """The way in which the rows of an input are split into batches."""

    AS_GIVEN = "input as it was given"
    WHOLE = "input in one batch"
    ONE_ROW = "batches of one row"
    WITH_EMPTY = "empty batches before, between and after"
    RANDOM = "batches of random sizes"


class Refusal(Enum):
    """Which offers the outbox refuses."""

    NEVER = "an outbox that accepts"
    FIRST = "an outbox that refuses each batch once"
    OFTEN = "an outbox that refuses each batch five times"
    RANDOM = "an outbox that refuses at random"
    AFTER_THREE = "an outbox that refuses every fourth offer"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to drive a processor.

    Attributes:
        cut: How inputs are split.
        refusal: Which offers the outbox refuses.
        offload_polls: How often an offload reports that it is not done.
        seed: Seeds all that is random, including the order in which inputs of one priority alternate; 0: strict order.
        stop_after: Calls after which the job is cancelled; None lets it end.
    """

    cut: BatchSplit
    refusal: Refusal
    offload_polls: int = 0
    seed: int = 0
    stop_after: int | None = None

    def __str__(self) -> str:
        parts = [self.cut.value, self.refusal.value]
        if self.offload_polls:
            parts.append(f"offloads that take {self.offload_polls} polls")
        if self.seed:
            parts.append(f"seed {self.seed}")
        if self.stop_after is not None:
            parts.append(f"cancelled after {self.stop_after} calls")
        return ", ".join(parts)


SCENARIOS: Final = (
    Scenario(BatchSplit.AS_GIVEN, Refusal.NEVER),
    Scenario(BatchSplit.WHOLE, Refusal.FIRST, offload_polls=1),
    Scenario(BatchSplit.ONE_ROW, Refusal.NEVER),
    Scenario(BatchSplit.ONE_ROW, Refusal.OFTEN, offload_polls=3),
    Scenario(BatchSplit.WITH_EMPTY, Refusal.FIRST),
    Scenario(BatchSplit.WITH_EMPTY, Refusal.AFTER_THREE, offload_polls=1),
    *(Scenario(BatchSplit.RANDOM, Refusal.RANDOM, offload_polls=seed % 3, seed=seed) for seed in range(1, 5)),
)
"""The scenarios that every processor runs through, the plainest first."""


def split_input(batches: Sequence[pa.RecordBatch], cut: BatchSplit, rng: random.Random) -> list[pa.RecordBatch]:
    """The rows of some batches in other batches, in their order."""
    match cut:
        case BatchSplit.AS_GIVEN:
            return list(batches)
        case BatchSplit.WHOLE:
            return [pa.concat_batches(batches)] if batches else []
        case BatchSplit.ONE_ROW:
            return list(_sliced(batches, lambda: 1))
        case BatchSplit.WITH_EMPTY:
            mixed = [batch.slice(0, 0) for batch in batches[:1]]
            for batch in batches:
                middle = batch.num_rows // 2
                mixed += [batch.slice(0, middle), batch.slice(0, 0), batch.slice(middle), batch.slice(0, 0)]
            return mixed
        case BatchSplit.RANDOM:
            return list(_sliced(batches, lambda: rng.choice((0, 1, 2, 3, 7, 100))))
        case _:
            assert_never(cut)


def _sliced(batches: Sequence[pa.RecordBatch], size: Callable[[], int]) -> Iterator[pa.RecordBatch]:
    made = 0
    for batch in batches:
        if not batch.num_rows:
            yield batch
        start = 0
        while start < batch.num_rows:
            length = size() if made < _BATCHES_MAX else batch.num_rows
            yield batch.slice(start, length)
            start += length
            made += 1


def refusals(refusal: Refusal, rng: random.Random) -> Iterator[bool]:
    """Whether each offer is refused, without end; offers are accepted again and again."""
    match refusal:
        case Refusal.NEVER:
            return (False for _ in count())
        case Refusal.FIRST:
            return (number % 2 == 0 for number in count())
        case Refusal.OFTEN:
            return (number % 6 != 5 for number in count())
        case Refusal.RANDOM:
            return (rng.random() < 0.5 for _ in count())
        case Refusal.AFTER_THREE:
            return (number % 4 == 3 for number in count())
        case _:
            assert_never(refusal)
