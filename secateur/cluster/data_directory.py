"""The data directory of a cluster: whose it is, and what its members last knew of the cluster.

It has a file ``CLUSTER``, and a directory for each member, with the member's copy of the cluster's record.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import xxhash

from secateur.cluster.settings import ClusterSettings
from secateur.errors import DamagedDirectoryError, DiskError, ProgrammingError
from secateur.protocol.codec import decode, encode, from_json
from secateur.protocol.recovery import ClusterRecord, ControllerState
from secateur.storage.log.disk import Disk

_log = logging.getLogger(__name__)

RECORD: Final = "RECORD"
_CLUSTER: Final = "CLUSTER"
_FORMAT: Final = 1
_CHECKSUM_BYTES: Final = 8


class _Owner(msgspec.Struct, frozen=True):
    """The content of the file ``CLUSTER``, as JSON.

    Attributes:
        format: The version of the format of all files below.
        cluster: The id of the cluster.
    """

    format: int
    cluster: str


def written_record(record: ClusterRecord) -> bytes:
    """The bytes of a record on disk."""
    data = encode(record)
    return xxhash.xxh3_64_digest(data) + data


def read_record(disk: Disk) -> ClusterRecord | None:
    """The record on a member's disk; None before the first.

    Raises:
        DamagedDirectoryError: It is not as it was written.
    """
    if RECORD not in disk.list():
        return None
    return _record_of(disk.read(RECORD), disk.path)


def _record_of(data: bytes, path: str) -> ClusterRecord:
    checksum, encoded = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
    if checksum != xxhash.xxh3_64_digest(encoded):
        raise DamagedDirectoryError(f"{path}/{RECORD} is damaged", path=path, file=RECORD)
    return decode(encoded, ClusterRecord)


def claimed(settings: ClusterSettings, *, is_named: bool) -> ClusterSettings:
    """The settings for a cluster on its data directory, which becomes its own if it is new.

    Args:
        settings: The settings.
        is_named: Whether the user has chosen the id of the cluster.

    Returns:
        The settings with the id of the cluster that the directory belongs to.

    Raises:
        ProgrammingError: The directory belongs to a cluster of another id.
        DiskError: It cannot be made or read, or has a newer format.
    """
    if settings.data_directory is None:
        return settings
    directory = Path(settings.data_directory)
    file = directory / _CLUSTER
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            if any(directory.iterdir()):
                raise DiskError(
                    f"data directory {directory} has files, and is not that of a cluster: give an empty one",
                    path=str(directory),
                )
            _write(file, msgspec.json.encode(_Owner(_FORMAT, settings.cluster_id)))
            return settings
        owner = from_json(file.read_bytes(), _Owner)
    except OSError as error:
        raise DiskError(f"data directory {directory} cannot be used: {error}", path=str(directory)) from error
    except msgspec.DecodeError as error:
        raise DamagedDirectoryError(f"{file} is damaged: {error}", path=str(directory), file=_CLUSTER) from error
    if owner.format > _FORMAT:
        raise DiskError(
            f"data directory {directory} has format {owner.format}, written by a newer secateur; this one reads formats"
            f" up to {_FORMAT}: start the newer version",
            path=str(directory),
        )
    if is_named and owner.cluster != settings.cluster_id:
        raise ProgrammingError(
            f"data directory {directory} belongs to cluster {owner.cluster!r}, not to {settings.cluster_id!r}: leave"
            " cluster_id out, or choose another directory"
        )
    return replace(settings, cluster_id=owner.cluster)


def members_to_start(settings: ClusterSettings) -> tuple[list[str], bool]:
    """The ids of the members to start, and whether their data directories have the data of a cluster.

    Members that were drained are started as well, since all have to report, and are ended then.

    Raises:
        ProgrammingError: The cluster had more members than are to be started.
        DiskError: A directory cannot be read. Records that are damaged are left out: a member has a copy of its own.
    """
    newest = _newest_record(settings.data_directory)
    if newest is None:
        return [f"m{index + 1}" for index in range(settings.members)], False
    members, state = newest.topology.member_ids, decode(newest.state, ControllerState)
    staying = set(members).difference(state.drained)
    if settings.members < len(staying):
        raise ProgrammingError(
            f"data directory {settings.data_directory} has the data of {len(staying)} members, and members="
            f"{settings.members}: start all of them"
        )
    added = range(state.last_member + 1, state.last_member + 1 + settings.members - len(staying))
    return [*members, *(f"m{number}" for number in added)], True


def members_on_disk(data_directory: str) -> list[str]:
    """The members of the newest record on this machine that have a record here; their processes may live.

    Raises:
        DiskError: A directory cannot be read.
    """
    newest = _newest_record(data_directory)
    members = () if newest is None else newest.topology.member_ids
    return [member_id for member_id in members if (Path(data_directory) / member_id / RECORD).exists()]


def _newest_record(data_directory: str | None) -> ClusterRecord | None:
    records = []
    for file in [] if data_directory is None else sorted(Path(data_directory).glob(f"*/{RECORD}")):
        try:
            records.append(_record_of(file.read_bytes(), str(file.parent)))
        except DamagedDirectoryError as error:
            _log.warning("%s", error)
        except OSError as error:
            raise DiskError(f"{file} cannot be read: {error}", path=str(file.parent)) from error
    return max(records, key=lambda record: (record.epoch, record.version), default=None)


def _write(file: Path, data: bytes) -> None:
    temporary = file.with_suffix(".tmp")
    with temporary.open("wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.rename(file)
