"""Tables of a member, and who keeps copies of their partitions."""

from __future__ import annotations

import pytest

from secateur.cluster.member import TableDirectory
from secateur.errors import TopologyChangedError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import MemberAddress, Topology, assign
from secateur.partitioning.types import parse_type

MEMBERS = ("m1", "m2", "m3")
SCHEME = PartitionScheme(hashes=(HashComponent(("id",), 6),), types=(("id", parse_type("BIGINT")),))
TABLE = TableDef("t", 1, (), ("id",), SCHEME, backups=1)
REPLICATED = TableDef("r", 2, (), ("id",), PartitionScheme(), backups=0, replicated=True)
TOPOLOGY = Topology(
    5, tuple(MemberAddress(member, "h", 1) for member in MEMBERS), {SCHEME.affinity_group(): assign(6, MEMBERS, 2)}
)


@pytest.fixture(params=MEMBERS)
def member(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def places(member: str) -> TableDirectory:
    places = TableDirectory(member)
    places.add_table(TABLE)
    places.add_table(REPLICATED)
    places.update(TOPOLOGY)
    return places


def test_a_table_is_known_or_not(places: TableDirectory) -> None:
    assert places.table(1) is TABLE
    places.remove_table(1)
    with pytest.raises(TopologyChangedError, match="does not know table 1: dropped"):
        places.table(1)
    with pytest.raises(TopologyChangedError, match="does not know table 1"):
        TableDirectory("m1").table(1)


def test_the_gate_of_a_table_outlives_a_change_of_it(places: TableDirectory) -> None:
    latch = places.latch(1)
    places.add_table(TABLE)
    assert places.latch(1) is latch


def test_backups_are_those_of_ones_own_primaries(places: TableDirectory, member: str) -> None:
    mine = TOPOLOGY.ownership(SCHEME.affinity_group()).partitions_of(member)
    backups = places.backups(1, mine)
    assert member not in backups
    assert sorted(partition for partitions in backups.values() for partition in partitions) == mine
    assert places.other_copies(1, mine) == backups
    other = next(partition for partition in range(6) if partition not in mine)
    with pytest.raises(
        TopologyChangedError,
        match=f"partition {other} of t belongs to m. at topology version 5, not to {member}; nothing was written",
    ):
        places.backups(1, [other])


def test_a_lost_backup_need_not_write(places: TableDirectory, member: str) -> None:
    survivors = tuple(address for address in TOPOLOGY.members if address.id == member)
    places.update(Topology(6, survivors, TOPOLOGY.owners))
    assert places.backups(1, TOPOLOGY.ownership(SCHEME.affinity_group()).partitions_of(member)) == {}
    assert [places.has_member(other) for other in MEMBERS] == [other == member for other in MEMBERS]


def test_a_replicated_table_is_copied_to_all(places: TableDirectory, member: str) -> None:
    assert places.backups(2, [0]) == {}
    assert places.other_copies(2, [0]) == {other: [0] for other in MEMBERS if other != member}
