"""A load whose client gives it up while members publish it is published everywhere or nowhere."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eventually import eventually
from stored_copies import copies_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import Error, JobCancelledError
from secateur.protocol import AbortLoad, Operation

ROWS = 200


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 12 BACKUPS 1")
        yield cluster


class Held:
    """The order to publish a load is held up at one member, once the others have carried it out."""

    def __init__(self, cluster: Cluster) -> None:
        self.is_reached = threading.Event()
        self.load_id = ""
        self._may_go_on = threading.Event()
        self._is_lost = False
        self._published: set[str] = set()
        runtime: Any = cluster._runtime
        for name, member in runtime._members.items():
            handlers = member.handlers
            handlers[Operation.PUBLISH_PREPARED_LOAD] = self._guarded(name, handlers[Operation.PUBLISH_PREPARED_LOAD])

    def release(self) -> None:
        self._may_go_on.set()

    def lose(self) -> None:
        """The member never hears of the order."""
        self._is_lost = True
        self._may_go_on.set()

    def _guarded(self, name: str, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def handle(request: Any) -> Any:
            if name == "m2":
                self.load_id = request.message.load_id
                while not self._may_go_on.is_set():
                    if self._published == {"m1", "m3"}:
                        self.is_reached.set()
                    await asyncio.sleep(0.001)
                if self._is_lost:
                    await asyncio.Event().wait()
            answer = handler(request)
            answered = await answer if inspect.isawaitable(answer) else answer
            self._published.add(name)
            return answered

        return handle


def loading(conn: secateur.Connection, failures: list[BaseException]) -> threading.Thread:
    def load() -> None:
        try:
            conn.execute(f"INSERT INTO t SELECT range, 1 FROM range({ROWS})")
        except Error as error:
            failures.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    return thread


def is_everywhere(cluster: Cluster, conn: secateur.Connection) -> bool:
    if conn.execute("SELECT count(*), sum(v) FROM t").fetchall() != [(ROWS, ROWS)]:
        return False
    return all(len(copies) == 2 and copies[0] == copies[1] for copies in copies_of(cluster, "t").values())


@pytest.mark.smoke
def test_a_load_that_is_cancelled_while_it_is_published_is_published(cluster: Cluster) -> None:
    held, failures = Held(cluster), list[BaseException]()
    with cluster.connect() as conn, cluster.connect() as other:
        thread = loading(conn, failures)
        assert held.is_reached.wait(60)
        conn.interrupt()
        thread.join(60)
        assert [type(failure) for failure in failures] == [JobCancelledError]
        held.release()
        eventually(lambda: is_everywhere(cluster, other), "the load is not on all members")
        assert other.table("t").load({"id": [ROWS], "v": [0]}) == 1


@pytest.mark.parametrize("is_restarted", [False, True], ids=["published", "in doubt"])
def test_a_load_that_is_aborted_while_it_is_published_is_published(cluster: Cluster, *, is_restarted: bool) -> None:
    held, failures = Held(cluster), list[BaseException]()
    with cluster.connect() as conn, cluster.connect() as other:
        thread = loading(conn, failures)
        assert held.is_reached.wait(60)
        if is_restarted:
            cluster.kill_controller()
            held.lose()
        other._session.ask(AbortLoad(held.load_id))
        held.release()
        thread.join(60)
        assert is_restarted or not failures
        eventually(lambda: is_everywhere(cluster, other), "the load is not on all members")
