"""Which rows a member may come back with, by what the controller knows of the last publication of their table."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from secateur.cluster.controller import PublicationNumbers
from secateur.errors import UnreachableError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import ClusterRecord, GetReport, HeldTable, LastLoad, MemberReport

TABLE = 1


def report(member: str, published: int, *, in_doubt: bool = False) -> MemberReport:
    return MemberReport(
        address=MemberAddress(member, "127.0.0.1", 1),
        record=ClusterRecord(1, 1, Topology(1, (), {}), b""),
        holds_lease=True,
        tables=(HeldTable(TABLE, 1, published, in_doubt, last_load="another" if in_doubt else f"load {published}"),),
    )


class Members:
    """Members whose reports change each time they are asked, until they are lost."""

    def __init__(self, **reports: list[MemberReport]) -> None:
        self._reports = reports

    async def ask(self, member: str, _: GetReport) -> MemberReport:
        reports = self._reports[member]
        if len(reports) == 1:
            del self._reports[member]
            if reports[0].tables[0].has_load_in_doubt:
                raise UnreachableError("it is lost")
            return reports[0]
        return reports.pop(0)

    def is_member(self, member: str) -> bool:
        return member in self._reports


def taken_over(
    *reports: MemberReport,
    members: Members | None = None,
    recorded: Sequence[str] = (),
    last_loads: Mapping[str, Mapping[int, LastLoad]] | None = None,
) -> PublicationNumbers:
    members = members or Members()
    numbers = PublicationNumbers(members.ask, members.is_member)
    numbers.taken_over({told.address.id: told for told in reports}, recorded, last_loads or {})
    return numbers


def accepted(numbers: PublicationNumbers, *, has_holders: bool = False) -> list[int]:
    return [number for number in range(10) if numbers.is_current(TABLE, number, has_holders=has_holders)]


def test_the_last_publication_counts_and_no_other() -> None:
    numbers = taken_over(report("m1", 5), report("m2", 7))
    assert accepted(numbers) == accepted(numbers, has_holders=True) == [7]
    numbers.made(TABLE, 8)
    assert accepted(numbers) == [8]
    numbers.forget(TABLE)
    assert accepted(numbers) == list(range(10)), "nobody has told of one"


def test_of_a_load_in_doubt_both_outcomes_are_good_if_nobody_has_the_rows() -> None:
    numbers = taken_over(report("m1", 5, in_doubt=True))
    assert accepted(numbers, has_holders=True) == [], "the members decide"
    assert accepted(numbers) == [5, 6, 7, 8, 9]
    numbers.made(TABLE, 5)  # it has come back, and others follow it
    assert accepted(numbers) == [5]


def test_a_load_whose_members_are_lost_before_they_answer_is_in_doubt() -> None:
    numbers = taken_over(report("m1", 5))
    numbers.maybe_made(TABLE)
    assert accepted(numbers) == [5, 6, 7, 8, 9]


def test_a_table_goes_on_behind_a_load_in_doubt_whose_members_are_away() -> None:
    numbers = taken_over(report("m1", 5))
    numbers.last = 8
    numbers.pass_doubt(TABLE)
    assert numbers.newest(TABLE) == 5, "there is no doubt"
    numbers.maybe_made(TABLE)  # as number 8
    numbers.pass_doubt(TABLE)
    assert numbers.newest(TABLE) == 9
    assert numbers.following() == 10
    assert not numbers.are_in_doubt


@pytest.mark.parametrize("number", [5, 6])
def test_members_that_decide_are_asked_until_they_have(number: int) -> None:
    members = Members(m1=[report("m1", 5, in_doubt=True)] * 2 + [report("m1", number)])
    numbers = taken_over(report("m1", 5, in_doubt=True), members=members)
    asyncio.run(numbers.settled())
    assert accepted(numbers) == [number]


def test_members_that_decide_are_not_waited_for_when_they_are_lost() -> None:
    members = Members(m1=[report("m1", 5, in_doubt=True)] * 2)
    numbers = taken_over(report("m1", 5, in_doubt=True), report("m2", 4), members=members)
    asyncio.run(numbers.settled())
    assert accepted(numbers) == [5, 6, 7, 8, 9]


def test_a_member_that_has_left_had_what_was_published_with_it_and_nothing_else() -> None:
    numbers = taken_over(report("m2", 4), members=Members(m1=[], m2=[], m3=[]), recorded=("m1", "m2"))
    fourth = {TABLE: LastLoad(4, "load 4")}
    assert numbers.told("m1") == numbers.told("m2") == fourth, "the one that is lost has taken part in it"
    assert numbers.told("m3") == {}, "it has joined since"
    numbers.made(TABLE, 5, "fifth", ["m2", "m3"])
    assert numbers.last_loads(["m1"]) == {"m1": fourth}
    assert numbers.told("m2") == numbers.told("m3") == {TABLE: LastLoad(5, "fifth")}
    numbers.came("m1")
    assert numbers.last_loads(["m1"]) == {"m1": {}}, "others take its rows for those of now"


def test_what_a_member_was_told_is_kept_for_another_controller() -> None:
    record = taken_over(report("m1", 4), recorded=("m1",)).last_loads(["m1"])
    numbers = taken_over(report("m2", 3), recorded=("m2",), last_loads=record)
    assert numbers.told("m1") == {TABLE: LastLoad(4, "load 4")}
    numbers.forget(TABLE)
    assert numbers.told("m1") == numbers.told("m2") == {}


def test_what_a_member_was_told_that_has_nothing_of_its_own_is_forgotten() -> None:
    numbers = taken_over(report("m1", 4), recorded=("m1",))
    numbers.last_loads([])
    assert numbers.told("m1") == {}
