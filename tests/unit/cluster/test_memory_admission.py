from __future__ import annotations

import pytest

from secateur.cluster import ClusterSettings
from secateur.cluster.member import MemoryAdmission, kernel_memory_of, memory_limit_of
from secateur.errors import LimitExceededError, ProgrammingError


class Held:
    def __init__(self) -> None:
        self.tables = 0
        self.other = 0
        self.counts = 0
        self.now_s = 0.0

    def count(self) -> int:
        self.counts += 1
        return self.tables


def admission(held: Held, limit: int = 100) -> MemoryAdmission:
    return MemoryAdmission(limit, held.count, lambda: held.other, lambda: held.now_s)


def test_rows_that_fit_are_admitted_without_counting_the_tables_each_time() -> None:
    held = Held()
    admitted = admission(held)
    for _ in range(10):
        admitted.write(10, "the write to t")
    assert held.counts == 1


def test_tables_that_grew_by_loads_are_counted_again_after_a_while() -> None:
    held = Held()
    admitted = admission(held)
    admitted.write(10, "the write to t")
    held.tables, held.now_s = 95, 1.0
    with pytest.raises(LimitExceededError, match="the member holds 95 of at most 100"):
        admitted.write(10, "the write to t")


def test_rows_that_do_not_fit_are_refused_with_all_figures() -> None:
    held = Held()
    held.tables, held.other = 60, 30
    with pytest.raises(LimitExceededError, match="the write to t takes 11 bytes, and the member holds 90 of") as raised:
        admission(held).write(11, "the write to t")
    details = raised.value.details
    assert (details["asked_bytes"], details["used_bytes"], details["limit_bytes"]) == (11, 90, 100)
    assert raised.value.retry_safe is False


def test_rows_that_replaced_others_do_not_count_twice() -> None:
    held = Held()
    held.tables = 50
    admitted = admission(held)
    for _ in range(100):  # upserts of the same row: the table does not grow
        admitted.write(10, "the write to t")
    assert 0 < held.counts <= 30


def test_the_limit_that_was_set_counts_then_that_of_ray_then_a_share_of_the_machine() -> None:
    assert memory_limit_of(ClusterSettings(memory_limit=1000, ray_actor_options={"memory": 2000})) == 1000
    assert memory_limit_of(ClusterSettings(ray_actor_options={"memory": 2000})) == 2000
    one, four = (memory_limit_of(ClusterSettings(members=members)) for members in (1, 4))
    assert one // 4 == pytest.approx(four, rel=0.01)


def test_the_kernel_has_a_quarter_of_a_limit_that_was_set() -> None:
    assert kernel_memory_of(ClusterSettings(memory_limit=1000)) == 250
    assert kernel_memory_of(ClusterSettings(memory_limit=1000, kernel_memory_bytes_max=100)) == 100
    assert kernel_memory_of(ClusterSettings()) is None
    with pytest.raises(ProgrammingError, match="more than kernel_memory_bytes_max"):
        ClusterSettings(memory_limit=100, kernel_memory_bytes_max=100)


def test_rows_that_are_written_between_two_counts_fill_the_member() -> None:
    held = Held()
    admitted = admission(held)
    for _ in range(10):
        admitted.write(10, "the write to t")
        held.tables += 10
    assert held.counts == 1
    with pytest.raises(LimitExceededError, match="the member holds 100 of at most 100"):
        admitted.write(10, "the write to t")
