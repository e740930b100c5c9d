from __future__ import annotations

from secateur.cluster.controller import LoadHistory, LoadState, LoadStatus
from secateur.protocol import StagedLoadEntry, StagedLoads


def staged(load_id: str, age_s: float, *parts: tuple[int, int], is_prepared: bool = False) -> StagedLoadEntry:
    return StagedLoadEntry(load_id, 7, is_prepared, age_s, list(parts))


def test_rows_of_several_copies_count_once() -> None:
    history = LoadHistory(lambda: 100.0)
    told = [
        StagedLoads([staged("a", 5.0, (0, 10), (1, 4))]),
        StagedLoads([staged("a", 7.0, (1, 4), (2, 0))]),
        StagedLoads([]),
    ]
    assert history.statuses(told) == [LoadStatus("a", 7, LoadState.STAGED, 14, 2, 93.0, 7.0)]


def test_a_load_that_one_member_has_prepared_is_being_published() -> None:
    history = LoadHistory(lambda: 100.0)
    told = [StagedLoads([staged("a", 1.0, (0, 1), is_prepared=True)]), StagedLoads([staged("a", 1.0, (1, 1))])]
    assert [status.state for status in history.statuses(told)] == [LoadState.PUBLISHING]
    assert [status.state for status in history.statuses(told[::-1])] == [LoadState.PUBLISHING]


def test_published_loads_stay_and_the_oldest_are_forgotten() -> None:
    now = 1000.0
    history = LoadHistory(lambda: now)
    history.published("a", 7, rows=14, partitions=2, age_s=10.0)
    late = StagedLoads([staged("a", 10.0, (0, 10)), staged("b", 20.0, (0, 1))])
    assert history.statuses([late]) == [
        LoadStatus("b", 7, LoadState.STAGED, 1, 1, 980.0, 20.0),
        LoadStatus("a", 7, LoadState.PUBLISHED, 14, 2, 990.0, 10.0),
    ]
    for number in range(1000):
        history.published(f"n{number}", 7, rows=1, partitions=1, age_s=0.0)
    assert {status.load_id for status in history.statuses([])} == {f"n{number}" for number in range(1000)}
