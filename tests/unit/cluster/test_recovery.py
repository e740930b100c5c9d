"""A controller that starts anew goes on from the newest record that anybody may have been answered by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

import pytest
from msgspec import structs

from secateur.cluster.controller.recovery import (
    Patience,
    is_from_disk,
    outdated,
    recovered,
    recovered_from_disk,
    unheard,
)
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import ClusterRecord, HeldTable, MemberReport

ALL = ("m1", "m2", "m3")


def record(version: int, members: Iterable[str]) -> ClusterRecord:
    addresses = tuple(MemberAddress(member, "127.0.0.1", 1) for member in members)
    return ClusterRecord(1, version, Topology(version, addresses, {}), str(version).encode())


def report(member: str, kept: ClusterRecord, *, holds_lease: bool = True) -> MemberReport:
    return MemberReport(address=MemberAddress(member, "127.0.0.1", 1), record=kept, holds_lease=holds_lease)


def with_tables(member: str, *tables: HeldTable) -> MemberReport:
    address = MemberAddress(member, "127.0.0.1", 1)
    return MemberReport(address=address, record=record(3, ALL), holds_lease=False, tables=tables)


def from_disk(member: str, kept: ClusterRecord) -> MemberReport:
    return structs.replace(report(member, kept, holds_lease=False), is_restored=True)


def subsets(members: Iterable[str]) -> Iterator[tuple[str, ...]]:
    known = tuple(members)
    for count in range(len(known) + 1):
        yield from combinations(known, count)


def test_the_newest_record_counts_in_the_next_epoch_under_a_version_that_nobody_has_seen() -> None:
    old, new = record(3, ALL), record(4, ALL)
    found = recovered({"m1": report("m1", old), "m2": report("m2", new), "m3": report("m3", old)}, (), is_late=False)
    assert found is not None
    assert (found.record.epoch, found.record.state, found.lost) == (2, b"4", ())
    assert found.record.topology.version > new.topology.version
    assert found.record.topology.member_ids == ALL


def test_without_any_record_there_is_nothing_to_go_on_from() -> None:
    assert recovered({}, (), is_late=True) is None
    assert recovered({"m1": report("m1", record(0, ()))}, (), is_late=True) is None


def test_a_member_that_may_live_is_waited_for() -> None:
    reports = {member: report(member, record(3, ALL)) for member in ("m1", "m2")}
    assert recovered(reports, (), is_late=False) is None
    for gone, is_late in ((("m3",), False), ((), True)):
        found = recovered(reports, gone, is_late=is_late)
        assert found is not None
        assert found.lost == ("m3",)


def test_members_that_were_all_started_anew_are_not_taken_for_those_that_live() -> None:
    """The controller of a cold start was killed: m3 is on its way, and where it was before nobody answers."""
    reports = {member: from_disk(member, record(3, ALL)) for member in ("m1", "m2")}
    assert is_from_disk(reports)
    assert recovered_from_disk(reports) is None
    found = recovered_from_disk(reports | {"m3": from_disk("m3", record(4, ALL))})
    assert found is not None
    assert (found.record.state, found.lost) == (b"4", ())


def test_one_member_that_was_not_started_anew_knows_where_the_others_are() -> None:
    anew = {member: from_disk(member, record(3, ALL)) for member in ("m1", "m2")}
    assert not is_from_disk(anew | {"m3": report("m3", record(3, ALL))})
    assert not is_from_disk(anew | {"m3": report("m3", record(4, ALL))})
    assert not is_from_disk(anew | {"m3": report("m3", record(2, ALL))}), "the newest record has not reached it yet"
    assert not is_from_disk({})
    anew = {member: from_disk(member, record(3, ("m1", "m2"))) for member in ("m1", "m2")}
    assert is_from_disk(anew | {"m3": report("m3", record(2, ALL))}), "it was given up before they ended"


def elsewhere(member: str, kept: ClusterRecord) -> MemberReport:
    return structs.replace(from_disk(member, kept), address=MemberAddress(member, "127.0.0.1", 2))


def test_a_process_that_came_with_the_data_of_a_member_is_not_the_one_that_the_others_know() -> None:
    """What a member had acknowledged may be in the memory of its last process alone: its copies elsewhere have it."""
    lived = {member: report(member, record(3, ALL)) for member in ("m1", "m2")}
    for kept in (record(2, ALL), record(3, ALL), record(4, ALL)):  # the controller may have told it before the others
        reports = lived | {"m3": elsewhere("m3", kept)}
        assert not is_from_disk(reports)
        assert unheard(reports) == ("m3",)
        assert recovered(reports, (), is_late=False) is None, "its last process may live"
        found = recovered(reports, ("m3",), is_late=False)
        assert found is not None
        assert (found.lost, found.record.state) == (("m3",), str(max(3, kept.version)).encode())
        assert found.record.topology.member("m3") == MemberAddress("m3", "127.0.0.1", 1)


def test_a_process_of_a_cold_start_that_the_newest_record_has_not_reached_is_a_member() -> None:
    reports = {"m1": report("m1", record(4, ALL)), "m2": from_disk("m2", record(3, ALL))}
    reports |= {"m3": from_disk("m3", record(3, ALL))}
    assert unheard(reports) == ()
    found = recovered(reports, (), is_late=False)
    assert found is not None
    assert (found.lost, found.record.state) == ((), b"4")


def test_processes_that_have_all_come_anew_go_on_where_they_are_now() -> None:
    reports = {member: elsewhere(member, record(3, ALL)) for member in ALL}
    assert is_from_disk(reports)
    found = recovered_from_disk(reports)
    assert found is not None
    assert found.lost == ()
    assert {member.port for member in found.record.topology.members} == {2}


@pytest.mark.parametrize("holds_lease", [True, False])
def test_one_of_three_goes_on_alone_only_with_a_lease(holds_lease: bool) -> None:
    reports = {"m1": report("m1", record(3, ALL), holds_lease=holds_lease)}
    found = recovered(reports, ("m2", "m3"), is_late=True)
    assert (found is not None) == holds_lease


def test_without_a_lease_those_of_a_topology_that_has_none_of_its_members_are_waited_for() -> None:
    """m1 was silent while m4 joined, and was removed without hearing of either."""
    reports = {"m1": report("m1", record(3, ("m1",)), holds_lease=False)}
    assert recovered(reports, (), is_late=False) is None
    found = recovered(reports | {"m4": report("m4", record(5, ("m4",)))}, (), is_late=False)
    assert found is not None
    assert found.record.state == b"5"
    assert recovered(reports, (), is_late=True) is not None, "it was suspended, as everybody was"


def test_law_a_topology_that_members_act_on_is_never_replaced_by_an_older_one() -> None:
    """Members are removed one after the other; each removal reaches all who stay, and the one removed has no lease."""
    tried = 0
    for removed in (order for count in range(3) for order in _orders(count)):
        kept = {member: record(1, ALL) for member in ALL}
        members = ALL
        for number, lost in enumerate(removed):
            members = tuple(member for member in members if member != lost)
            kept.update(dict.fromkeys(members, record(2 + number, members)))
        for present in subsets(ALL):
            leases = [(False,) if member in removed else (True, False) for member in present]
            for held in product(*leases):
                reports = {
                    member: report(member, kept[member], holds_lease=lease)
                    for member, lease in zip(present, held, strict=True)
                }
                found = recovered(reports, (), is_late=True)
                tried += 1
                if found is not None:
                    assert found.record.topology.member_ids == members
    assert tried > 50


def _orders(count: int) -> Iterator[tuple[str, ...]]:
    for chosen in product(ALL, repeat=count):
        if len(set(chosen)) == count:
            yield chosen


def test_a_member_whose_disk_has_lost_a_load_is_not_gone_on_with() -> None:
    reports = {
        "m1": with_tables("m1", HeldTable(1, 1, published=4, last_load="fourth"), HeldTable(2, 1, published=1)),
        "m2": with_tables("m2", HeldTable(1, 1, published=4), HeldTable(2, 1, published=0)),
        "m3": with_tables(
            "m3", HeldTable(1, 1, published=3, has_load_in_doubt=True, last_load="fourth"), HeldTable(2, 1, published=1)
        ),
    }
    assert outdated(reports) == {"m2": 2}, "m3 learns from others how its load has ended"
    found = recovered_from_disk(reports)
    assert found is not None
    assert found.lost == ("m2",)


@pytest.mark.parametrize("last_load", ["fourth", ""], ids=["is known", "is forgotten"])
def test_a_load_in_doubt_does_not_excuse_a_disk_that_lacks_those_behind_it(last_load: str) -> None:
    """Seed 700007792 of the simulation: it counted as whole, and its rows differed from those of other copies."""
    reports = {
        "m1": with_tables("m1", HeldTable(1, 1, published=4, last_load=last_load)),
        "m2": with_tables("m2", HeldTable(1, 1, published=4, last_load=last_load)),
        "m3": with_tables("m3", HeldTable(1, 1, published=2, has_load_in_doubt=True, last_load="third")),
    }
    assert outdated(reports) == {"m3": 1}


def test_a_controller_that_stood_still_waits_for_members_once_more() -> None:
    patience = Patience(1.5, 100.0)
    assert not patience.is_over(101.0, 2.0)
    assert not patience.is_over(160.0, 2.0), "it was suspended, and has not read what came meanwhile"
    assert not patience.is_over(160.4, 2.0)
    assert patience.is_over(160.6, 2.0)
