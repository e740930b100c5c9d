from __future__ import annotations

from secateur.cluster.member import StatementQueue


def test_statements_run_until_there_are_as_many_as_may() -> None:
    queue = StatementQueue[str](2, 10)
    assert [queue.came("a", name) for name in ("a1", "a2", "a3")] == [None, None, None]
    assert (queue.running, queue.waiting) == (2, 1)
    assert queue.ended() == "a3"
    assert queue.ended() is None
    assert queue.ended() is None
    assert (queue.running, queue.waiting) == (0, 0)


def test_a_session_with_many_waiting_statements_delays_another_by_one() -> None:
    queue = StatementQueue[str](1, 1000)
    for number in range(101):
        queue.came("flood", f"flood {number}")
    queue.came("quiet", "quiet")
    assert [queue.ended() for _ in range(3)] == ["flood 1", "quiet", "flood 2"]


def test_sessions_take_turns() -> None:
    queue = StatementQueue[str](1, 1000)
    queue.came("x", "running")
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        queue.came(name[0], name)
    assert [queue.ended() for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_who_fills_the_queue_is_refused_first() -> None:
    queue = StatementQueue[str](1, 3)
    queue.came("x", "running")
    for name in ("a1", "a2", "a3"):
        assert queue.came("a", name) is None
    assert queue.came("a", "a4") == "a4", "the session with most waiting statements asks for one more"
    assert queue.came("b", "b1") == "a3", "another session takes the place of its newest"
    assert queue.came("b", "b2") == "b2", "with as many as any other, the newest is refused"
    assert (queue.running, queue.waiting) == (1, 3)
    assert [queue.ended() for _ in range(3)] == ["a1", "b1", "a2"]


def test_nothing_waits_where_nothing_may() -> None:
    queue = StatementQueue[str](1, 0)
    assert queue.came("a", "a1") is None
    assert queue.came("b", "b1") == "b1"
    assert queue.ended() is None
    assert queue.came("b", "b2") is None


def test_a_statement_that_is_given_up_loses_its_turn() -> None:
    queue = StatementQueue[str](1, 10)
    queue.came("x", "running")
    queue.came("a", "a1")
    queue.came("a", "a2")
    queue.left("a", "a1")
    queue.left("a", "a1")
    queue.left("nobody", "n1")
    assert queue.waiting == 1
    assert queue.ended() == "a2"
