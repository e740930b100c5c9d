"""Tracebacks of mistakes end at the public call; those of all other errors, and all that are asked for, are whole."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import secateur
from secateur import errors
from secateur.client import Connection
from secateur.errors import FULL_TRACEBACK_VARIABLE, forget_frames

MISTAKES: dict[str, Callable[[Connection], Any]] = {
    "execute": lambda conn: conn.cursor().execute("SELECT nope FROM t"),
    "executemany": lambda conn: conn.cursor().executemany("INSERT INTO t VALUES (?, ?)", [[1, "a"], ["b", "c"]]),
    "explain": lambda conn: conn.explain("SELECT nope FROM t"),
    "load": lambda conn: conn.table("t").load({"id": [1, None], "v": ["a", "b"]}),
    "get": lambda conn: conn.table("t").get("one"),
    "put": lambda conn: conn.table("t").put((None, "a")),
    "put_many": lambda conn: conn.table("t").put_many([(1, "a"), ("one", "b")]),
}


@pytest.fixture(scope="module")
def served() -> Iterator[Connection]:
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR)")
        yield conn


def frames_of(conn: Connection, name: str) -> list[str]:
    with pytest.raises(secateur.Error) as raised:
        MISTAKES[name](conn)
    inside = Path(secateur.__file__).parent
    frames = traceback.extract_tb(raised.value.__traceback__)
    return [frame.name for frame in frames if Path(frame.filename).is_relative_to(inside)]


@pytest.mark.parametrize("name", MISTAKES)
def test_the_traceback_of_a_mistake_ends_at_the_call(served: Connection, name: str) -> None:
    assert frames_of(served, name) == [name]


@pytest.mark.parametrize("name", MISTAKES)
def test_all_frames_are_kept_where_they_are_wanted(
    served: Connection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FULL_TRACEBACK_VARIABLE, "1")
    first, *others = frames_of(served, name)
    assert first == name
    assert len(others) > 1


@pytest.mark.parametrize("kind", [errors.InternalError, errors.PruningMismatchError, errors.MemberLostError])
def test_errors_that_are_no_mistakes_of_the_user_keep_their_frames(kind: type[secateur.Error]) -> None:
    def below() -> None:
        raise kind("it happened")

    with pytest.raises(secateur.Error) as raised:
        below()
    forget_frames(raised.value)
    assert [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)][-1] == "below"
