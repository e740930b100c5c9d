"""Messages that come before their job: kept in order, bounded, forgotten in time."""

from __future__ import annotations

from secateur.engine.runtime import EarlyMessages
from secateur.protocol import CreditRows, ExchangeRows


def exchange(job: str, sequence: int = 0, size: int = 1000) -> tuple[ExchangeRows, bytes]:
    return ExchangeRows(job, "m1", 0, sequence, (), False), bytes(size)


def test_messages_are_handed_over_in_order_once() -> None:
    early = EarlyMessages(10_000, 30)
    messages = [exchange("a", 0), (CreditRows("a", "m2", 1, 5), b""), exchange("a", 1)]
    assert all(early.keep(*message, 0) for message in messages)
    early.keep(*exchange("b"), 0)
    assert list(early.take("a")) == messages
    assert list(early.take("a")) == []
    assert len(early) == 1


def test_bytes_are_bounded_and_the_job_that_passes_the_bound_is_dropped() -> None:
    early = EarlyMessages(2_500, 30)
    assert early.keep(*exchange("a"), 0)
    assert early.keep(*exchange("b"), 0)
    assert not early.keep(*exchange("b", 1), 0)
    assert list(early.take("b")) == []
    assert early.keep(*exchange("b", 2), 0)  # dropped without a word: it was told already
    assert (len(early), early.has_ended("b")) == (1, True)
    early.take("a")
    assert early.bytes == 0


def test_stragglers_of_an_ended_job_are_dropped() -> None:
    early = EarlyMessages(10_000, 30)
    early.end("a")
    assert early.keep(*exchange("a"), 0)
    assert (len(early), early.bytes) == (0, 0)


def test_a_job_that_never_starts_is_forgotten() -> None:
    early = EarlyMessages(10_000, 30)
    early.keep(*exchange("a"), 0)
    early.keep(*exchange("b"), 20)
    early.keep(*exchange("c"), 31)
    assert [early.has_ended(job) for job in "abc"] == [True, False, False]
    assert early.bytes == 2 * (1000 + 64)


def test_the_memory_of_ended_jobs_is_bounded() -> None:
    early = EarlyMessages(10_000, 30)
    for number in range(20_000):
        early.end(str(number))
    assert not early.has_ended("0")
    assert early.has_ended("19999")
