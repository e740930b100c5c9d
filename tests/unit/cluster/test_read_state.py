"""The state of rows in which keys of joins were found, at the member that is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from secateur.cluster.member import check_state, marks_of, read_here
from secateur.engine.sql import MemberScan
from secateur.errors import KeysChangedError
from secateur.protocol import Execute, Since, decode, encode
from secateur.storage import DataVersion, ReadVersions

PLACED, COPIED = 1, 2


@dataclass
class Store:
    """As much of a member's store as is asked for."""

    versions: dict[int, DataVersion] = field(
        default_factory=lambda: {PLACED: DataVersion(3, 10), COPIED: DataVersion(5, 20)}
    )
    marks: ReadVersions = field(default_factory=ReadVersions)

    def data_version(self, table_id: int) -> DataVersion:
        return self.versions[table_id]

    def relation(self, *_: Any) -> str:
        return "rows"


PLACED_SCAN, COPIED_SCAN = (
    SimpleNamespace(table="t", table_id=PLACED, replicated=False),
    SimpleNamespace(table="c", table_id=COPIED, replicated=True),
)


def plan(*scans: Any, read: tuple[int, ...]) -> Any:
    """A plan with one stage that reads some of its scans."""
    return SimpleNamespace(scans=scans, stages=[SimpleNamespace(scans=read)])


PLAN = plan(PLACED_SCAN, COPIED_SCAN, read=(0, 1))
TOPOLOGY = cast("Any", SimpleNamespace(version=7))


def since(**changed: Any) -> Execute:
    return Execute(
        "p",
        [],
        pruning=True,
        since=Since(**{"mark": "m", "scans": [0, 1], "topology_version": 7, "published": [(COPIED, 5)], **changed}),
    )


ANY_STATE = Execute("p", [], pruning=True)
MARKING = Execute("p", [], pruning=True, mark="m")


def marked(store: Store) -> None:
    assert read_here(cast("Any", store), PLAN, MARKING, [[0], [0]]) == ((COPIED, 5),)


def test_what_is_as_it_was_is_read() -> None:
    store = Store()
    marked(store)
    check_state(cast("Any", store), PLAN, since(), TOPOLOGY)
    assert read_here(cast("Any", store), PLAN, since(), [[0], [0]]) == ()
    assert marks_of(PLAN, since()) == {0: "m"}


def test_a_scan_whose_rows_stand_for_a_watched_one_is_watched() -> None:
    merged = plan(
        PLACED_SCAN, PLACED_SCAN, COPIED_SCAN, read=(0, 2)
    )  # no stage reads scan 1: it has the rows of scan 0
    assert marks_of(merged, since(scans=[1])) == {0: "m", 1: "m"}
    assert marks_of(plan(PLACED_SCAN, PLACED_SCAN, read=(0, 1)), since(scans=[1])) == {1: "m"}


def test_without_a_state_nothing_is_asked() -> None:
    check_state(cast("Any", Store()), PLAN, ANY_STATE, TOPOLOGY)
    assert marks_of(PLAN, ANY_STATE) == {}
    assert read_here(cast("Any", Store()), PLAN, ANY_STATE, [[0], [0]]) == ()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"topology_version": 6}, "owners", id="other owners"),
        pytest.param({"published": [(COPIED, 4)]}, "c has changed", id="another publication of what every member has"),
        pytest.param({"published": []}, "c has changed", id="a table that no step has read"),
    ],
)
def test_another_state_is_refused(changed: dict[str, Any], message: str) -> None:
    store = Store()
    marked(store)
    with pytest.raises(KeysChangedError, match=message):
        check_state(cast("Any", store), PLAN, since(**changed), TOPOLOGY)


@pytest.mark.parametrize("mark", ["m", "never heard of"])
def test_rows_that_have_changed_are_refused(mark: str) -> None:
    store = Store()
    marked(store)
    store.versions[PLACED] = DataVersion(3, 11) if mark == "m" else DataVersion(3, 10)
    with pytest.raises(KeysChangedError, match="t has changed"):
        read_here(cast("Any", store), PLAN, since(mark=mark), [[0], [0]])
    with pytest.raises(KeysChangedError, match="changed since the keys"):
        MemberScan("s0", PLACED, (0,), ("k",), None, 3, since=mark).read(cast("Any", store))


def test_what_reads_no_partition_takes_any_state() -> None:
    store = Store()
    assert read_here(cast("Any", store), PLAN, since(), [[], [0]]) == ()
    assert MemberScan("s0", PLACED, (), ("k",), None, 3, since="m").read(cast("Any", store)) == "rows"


def test_a_scan_on_another_member_marks_and_checks_as_well() -> None:
    store = Store()
    scan = MemberScan("s0", PLACED, (0,), ("k",), None, 3, mark="m")
    assert decode(encode(scan), MemberScan) == scan
    assert scan.read(cast("Any", store)) == "rows"
    assert MemberScan("s0", PLACED, (0,), ("k",), None, 3, since="m").read(cast("Any", store)) == "rows"
