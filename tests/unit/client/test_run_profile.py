from __future__ import annotations

import pytest

from secateur.protocol import RunProfile, StageWork, decode, encode


def work(stage: str, member: str, rows: int, sent: int = 0) -> StageWork:
    return StageWork(stage, member, 2, 0, rows, 8 * rows, sent, 1.5, 0.5)


PROFILE = RunProfile(10, 80, (work("scan:o", "m1", 30), work("scan:o", "m2", 20, 200), work("final", "m1", 10)))


def test_what_stages_and_members_did_adds_up() -> None:
    assert list(PROFILE.stages) == ["scan:o", "final"]
    assert (PROFILE.kernel_ms, PROFILE.exchange_bytes) == (4.5, 200)
    document = PROFILE.to_json()
    assert (document["result_bytes"], document["kernel_ms"], document["exchange_bytes"]) == (80, 4.5, 200)
    assert [(stage["name"], stage["rows"], stage["bytes"]) for stage in document["stages"]] == [
        ("scan:o", 50, 400),
        ("final", 10, 80),
    ]
    assert document["stages"][0]["members"][1] == {
        "member": "m2",
        "partitions": 2,
        "rows_in": 0,
        "rows_out": 20,
        "bytes_out": 160,
        "sent_bytes": 200,
        "kernel_ms": 1.5,
        "busy_ms": 0.5,
    }


@pytest.mark.parametrize("profile", [PROFILE, RunProfile(0, 0, ())])
def test_it_is_read_as_members_write_it(profile: RunProfile) -> None:
    assert decode(encode(profile), RunProfile) == profile
