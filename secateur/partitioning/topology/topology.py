"""The topology: the ownership of each affinity group, and the cluster's members at one version.

Frozen values; every change makes a new topology with a higher version. A receiver of a request with another version
knows that one of the two is out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from secateur.cached_properties import cached_property
from secateur.errors import PartitionLostError, TopologyChangedError, UnknownOwnersError, UnreachableError

_DTYPE: Final = np.dtype("<u2")
_FEW_PARTITIONS: Final = 64
"""Up to here a look at each costs less than NumPy's calls."""
OWNERS_PAGE: Final = 2048
"""Partitions whose primaries a client fetches at once: 4 KB."""
_OWNERS_INLINE_BYTES: Final = 8192
"""Owners that clients get without asking. More would make each connection, and each change, cost what they take."""
_UNKNOWN: Final = 2**16 - 1  # no index of a member: an ownership has at most 65,535 of them


class MemberAddress(msgspec.Struct, frozen=True, array_like=True):
    """The address of a member: that of its socket, and the node, the machine that it runs on.

    Copies of a partition are kept on different nodes. An unknown one is empty.
    """

    id: str
    host: str
    port: int
    node: str = ""


class Ownership(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The owners of the partitions of one affinity group.

    A client of a large group has an *outline* of it: the primaries alone, and these only of the pages of
    :data:`OWNERS_PAGE` partitions that its statements needed. To read another one raises
    :class:`~secateur.errors.UnknownOwnersError`; the page is fetched then. An outline has a digest of all primaries, by
    which the page is asked for, so pages of different ownerships never mix, and they stay valid in every topology with
    the same digest.

    Attributes:
        members: Member ids; the owners are indexes into them.
        shape: Copies of each partition and number of partitions.
        owner_bytes: The owners as little-endian uint16; see :attr:`owners`. Empty for an outline without pages.
        digest: Of an outline, the digest of the primaries and of ``members``, each of which is a primary; else None.
    """

    members: tuple[str, ...]
    shape: tuple[int, int]
    owner_bytes: bytes
    digest: bytes | None = None

    @classmethod
    def of(cls, members: Sequence[str], owners: npt.NDArray[np.integer[Any]]) -> Ownership:
        """The ownership with these :attr:`owners`."""
        replicas, partitions = owners.shape
        return cls(tuple(members), (replicas, partitions), owners.astype(_DTYPE).tobytes())

    def __post_init__(self) -> None:
        replicas, partitions = self.shape
        flat = np.frombuffer(self.owner_bytes, _DTYPE)
        if self.digest is not None:
            if not len(flat):
                return
            flat = np.where(flat == _UNKNOWN, 0, flat)
        if len(flat) != replicas * partitions or (len(flat) and int(flat.max()) >= len(self.members)):
            raise ValueError(
                f"an ownership of {replicas} x {partitions} over {len(self.members)} members came with {len(flat)}"
                " owners that do not fit it"
            )

    @cached_property
    def owners(self) -> npt.NDArray[np.uint16]:
        """uint16 of shape (replicas, partitions), read-only.

        Row 0 has the primaries, the rows below the backups. A column never names a member twice.
        """
        if self.digest is not None and not self.owner_bytes:
            return np.full(self.shape, _UNKNOWN, _DTYPE)
        return np.frombuffer(self.owner_bytes, _DTYPE).reshape(self.shape)

    @property
    def all_primaries(self) -> npt.NDArray[np.uint16]:
        """Row 0 of :attr:`owners`, of which every primary is known.

        Raises:
            UnknownOwnersError: Some are not.
        """
        row = self.owners[0]
        if self.digest is not None:
            self._check_known(row, np.arange(len(row)))
        return row

    @cached_property
    def outline(self) -> Ownership:
        """The owners as clients get them at first: an outline without pages for a large group, else this ownership.

        Cost: 7 ms for 100,000 partitions, once.
        """
        if len(self.owner_bytes) <= _OWNERS_INLINE_BYTES or self.digest is not None:
            return self
        members, pages = self._primary_pages
        digest = blake2b(b"\0".join((pages, *(member.encode() for member in members))), digest_size=16).digest()
        return Ownership(members, (1, self.partitions), b"", digest)

    @cached_property
    def _primary_pages(self) -> tuple[tuple[str, ...], bytes]:
        """The members that are primaries, and the primaries as indexes into these."""
        present, indexes = np.unique(self.owners[0], return_inverse=True)
        return tuple(self.members[index] for index in present.tolist()), indexes.astype(_DTYPE).tobytes()

    def pages(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The pages of these numbers for a client with the :attr:`outline`; numbers beyond the last have no page."""
        _, primaries = self._primary_pages
        size = OWNERS_PAGE * _DTYPE.itemsize
        last = (self.partitions - 1) // OWNERS_PAGE
        return {
            number: primaries[number * size : (number + 1) * size] for number in set(numbers) if 0 <= number <= last
        }

    def with_pages(self, pages: Mapping[int, bytes]) -> Ownership:
        """An outline that knows further pages.

        Raises:
            ValueError: A page does not fit.

        Cost: 20 microseconds for 100,000 partitions.
        """
        owners = self.owners.copy()
        for number, page in pages.items():
            primaries = np.frombuffer(page, _DTYPE)
            place = owners[0, number * OWNERS_PAGE : (number + 1) * OWNERS_PAGE]
            if number < 0 or len(primaries) != len(place) or int(primaries.max(initial=0)) >= len(self.members):
                raise ValueError(
                    f"page {number} of {self.partitions} owners came with {len(primaries)} that do not fit"
                )
            place[:] = primaries
        return Ownership(self.members, self.shape, owners.tobytes(), self.digest)

    def _check_known(self, owners: npt.NDArray[np.uint16], partitions: npt.NDArray[np.int64]) -> None:
        """Raise UnknownOwnersError for the partitions whose owners, in the same order, are not known."""
        unknown = partitions[owners == _UNKNOWN]
        if len(unknown):
            raise UnknownOwnersError(
                "the owners of some partitions are not known here yet: fetch them",
                digest=self.digest,
                pages=sorted(set((unknown // OWNERS_PAGE).tolist())),  # np.unique imports numpy.ma at first: 20 ms
            )

    @cached_property
    def _index(self) -> dict[str, int]:
        return {member: position for position, member in enumerate(self.members)}

    @property
    def replicas(self) -> int:
        """Copies of each partition, the primary included."""
        return self.shape[0]

    @property
    def partitions(self) -> int:
        return self.shape[1]

    def primary(self, partition: int) -> str:
        """The member that owns a partition. Cost: 0.1 microseconds."""
        try:
            return self.members[self.owners.item(0, partition)]
        except IndexError:
            if self.digest is not None:
                chosen = np.array([partition], dtype=np.int64)
                self._check_known(self.owners[0, chosen], chosen)
            raise

    def owners_of(self, partitions: Sequence[int]) -> set[str]:
        """The members that own some of these partitions, of which there is at least one and none twice."""
        if len(partitions) == 1:
            return {self.primary(partitions[0])}
        if self.digest is not None:
            if len(partitions) == self.partitions:
                return set(self.members)
            self._check_known(self.owners[0, partitions], np.asarray(partitions, dtype=np.int64))
        if len(partitions) <= _FEW_PARTITIONS:
            return set(map(self.primary, partitions))
        row = self.owners[0]
        owning = (
            row[partitions.start : partitions.stop : partitions.step]
            if isinstance(partitions, range)
            else row[np.asarray(partitions, dtype=np.int64)]
        )
        return {self.members[index] for index in np.unique(owning).tolist()}

    def backups(self, partition: int) -> tuple[str, ...]:
        """The members that hold further copies, none of them the primary."""
        return tuple(self.members[index] for index in self.owners[1:, partition].tolist())

    def holders(self, partition: int) -> tuple[str, ...]:
        """The primary, then the backups."""
        return tuple(map(self.members.__getitem__, self.owners[:, partition].tolist()))

    def partitions_of(self, member: str) -> list[int]:
        """The partitions whose primary is the member, ascending; none when it is no owner."""
        return self._rows_with(member, self.owners[:1])

    def held_by(self, member: str) -> list[int]:
        """The partitions that the member holds any copy of, ascending."""
        return self._rows_with(member, self.owners)

    def primaries(self, partitions: Iterable[int]) -> dict[str, list[int]]:
        """Group partitions by owner, in the order given; members without any of them do not appear."""
        owner_of, members = self.owners[0], self.members
        if self.digest is not None:
            partitions = list(partitions)
            chosen = np.asarray(partitions, dtype=np.int64)
            self._check_known(owner_of[chosen], chosen)
        grouped: dict[str, list[int]] = {}
        for partition in partitions:
            grouped.setdefault(members[owner_of.item(partition)], []).append(partition)
        return grouped

    def _rows_with(self, member: str, owners: npt.NDArray[np.uint16]) -> list[int]:
        index = self._index.get(member)
        if index is None:
            return []
        found: list[int] = np.flatnonzero((owners == index).any(axis=0)).tolist()
        return found


class Topology(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """Members and ownership at one version.

    Attributes:
        version: Grows with every change of membership or ownership.
        members: All members, also those that own nothing.
        owners: Ownership by affinity group
            (:meth:`~secateur.partitioning.schemes.scheme.PartitionScheme.affinity_group`). Not to be changed.
    """

    version: int
    members: tuple[MemberAddress, ...]
    owners: Mapping[str, Ownership]

    @cached_property
    def outline(self) -> Topology:
        """The topology as clients get it at first; see :attr:`Ownership.outline`."""
        return Topology(
            self.version, self.members, {group: ownership.outline for group, ownership in self.owners.items()}
        )

    def with_known_owners(self, older: Topology) -> Topology:
        """This outline, with the pages of another one of the groups whose primaries are the same in both."""
        kept = {
            group: older.owners[group]
            for group, ownership in self.owners.items()
            if ownership.digest is not None and group in older.owners and older.owners[group].digest == ownership.digest
        }
        return Topology(self.version, self.members, {**self.owners, **kept}) if kept else self

    def with_pages(self, digest: bytes, pages: Mapping[int, bytes]) -> Topology:
        """The topology with further pages of the owners of an outline; the same if it has no such outline.

        Raises:
            ValueError: A page does not fit.
        """
        learned = {
            group: ownership.with_pages(pages) for group, ownership in self.owners.items() if ownership.digest == digest
        }
        return Topology(self.version, self.members, {**self.owners, **learned}) if learned else self

    @cached_property
    def member_ids(self) -> tuple[str, ...]:
        """The ids of the members, in their order."""
        return tuple(self._by_id)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The node of each member, in the order of the members."""
        return tuple(member.node for member in self.members)

    @cached_property
    def _by_id(self) -> dict[str, MemberAddress]:
        return {member.id: member for member in self.members}

    def has_member(self, member_id: str) -> bool:
        """Whether a member is part of this topology."""
        return member_id in self._by_id

    def member(self, member_id: str) -> MemberAddress:
        """Find a member.

        Raises:
            UnreachableError: It is not part of this topology.
        """
        member = self._by_id.get(member_id)
        if member is not None:
            return member
        raise UnreachableError(
            f"member {member_id} is not part of topology {self.version}, which has"
            f" {', '.join(self.member_ids) or 'none'}",
            member=member_id,
        )

    def ownership(self, group: str) -> Ownership:
        """The ownership of an affinity group.

        Raises:
            TopologyChangedError: This topology has no such group: it is older than the table, or the table has other
                ranges by now.
        """
        found = self.owners.get(group)
        if found is None:
            raise TopologyChangedError(
                f"topology {self.version} has no owners for affinity group {group!r}; fetch a newer one"
            )
        return found

    def primaries(self, group: str, partitions: Sequence[int]) -> dict[str, list[int]]:
        """Group partitions by the member that owns them."""
        return self.ownership(group).primaries(partitions)

    def check_live(self, owners: Iterable[str]) -> None:
        """Refuse to work with owners that have left without a successor.

        Raises:
            PartitionLostError: One of the owners is no member.
        """
        members = self._by_id
        lost = [owner for owner in owners if owner not in members]
        if lost:
            lost = sorted(set(lost))
            raise PartitionLostError(
                f"the last copies of partitions that the statement needs were on {', '.join(lost)}, which"
                f" left the cluster (topology version {self.version}): their rows are lost, unless these come back."
                " DROP the table, CREATE it again and load it; with BACKUPS n a table survives the loss of n members",
                members=lost,
                topology_version=self.version,
            )

    def check_any(self) -> None:
        """Refuse to work without members.

        Raises:
            PartitionLostError: All have left.
        """
        if not self.members:
            raise PartitionLostError(
                f"no member is left in the cluster (topology version {self.version}): start the cluster anew and load"
                " the tables again",
                topology_version=self.version,
            )


def gains_copies(before: Topology, after: Topology, member_id: str) -> bool:
    """Whether a member holds a copy of a partition, at any rank, that it did not hold before.

    Cost: about 3 ms for 100,000 partitions whose owners have changed, nothing for others.
    """
    for group, ownership in after.owners.items():
        earlier = before.owners.get(group)
        if earlier == ownership:
            continue
        had = () if earlier is None else earlier.held_by(member_id)
        if not set(ownership.held_by(member_id)).issubset(had):
            return True
    return False
