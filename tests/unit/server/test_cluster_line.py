"""The numbers of the cluster line, from the members, the events and the newest line of secateur.history."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.server.dashboard import ClusterLine, line_from, missing_members


def member(name: str, state: str = "active") -> dict[str, Any]:
    return {"id": name, "state": state, "memory_used": 10, "memory_limit": 100}


LATEST = {
    "seconds": 5.0, "statements": 100, "failed": 10, "p50_ms": 0.1, "p95_ms": 0.5, "p99_ms": 2.0, "queries": 50,
    "members_touched": 75, "pruned": 30, "unpruned": 10,
}  # fmt: skip
QUIET = {name: 0 if name != "seconds" and "ms" not in name else None for name in LATEST} | {"seconds": 5.0}


@pytest.mark.parametrize(
    ("members", "missing", "latest", "expected"),
    [
        pytest.param(
            [member("m1"), member("m2", "suspect"), member("m3", "lost")],
            1,
            LATEST,
            ClusterLine(2, 3, 1, 5.0, 20.0, 2.0, (0.1, 0.5, 2.0), 1.5, 0.75, 20, 200),
            id="a busy cluster that lacks a member",
        ),
        pytest.param(
            [member("m1"), member("m3", "lost"), member("m4")],
            0,
            QUIET | {"members_touched": 0},
            ClusterLine(2, 2, 0, 5.0, 0.0, 0.0, None, None, None, 20, 200),
            id="a quiet one whose lost member was replaced",
        ),
        pytest.param(
            [member("m1")], 0, None, ClusterLine(1, 1, 0, None, None, None, None, None, None, 10, 100), id="a new one"
        ),
    ],
)
def test_the_line(
    members: list[dict[str, Any]], missing: int, latest: dict[str, Any] | None, expected: ClusterLine
) -> None:
    assert line_from(members, missing, latest) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param("+m1 +m2", [], id="all are there"),
        pytest.param("+m1 +m2 -m1", ["m1"], id="one is lost"),
        pytest.param("+m1 +m2 -m1 +m3", [], id="another has come"),
        pytest.param("+m1 +m2 -m1 -m2 +m3", ["m2"], id="one of two has come"),
        pytest.param("+m1 +m2 +m3 -m1", ["m1"], id="who came before it was lost does not count"),
    ],
)
def test_the_place_of_a_lost_member_is_taken_by_the_next_that_joins(events: str, expected: list[str]) -> None:
    kinds = {"+": "member_joined", "-": "member_lost"}
    rows = [{"kind": kinds[event[0]], "member": event[1:]} for event in events.split()]
    assert [row["member"] for row in missing_members(rows)] == expected
