"""The jobs on record on a member's disk: a file for each job, which is replaced whenever the job changes.

They are apart from the log, because a job is a few kilobytes that change a few times, and its DAG may be large.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import xxhash

from secateur.errors import DiskError
from secateur.protocol.codec import decode, encode
from secateur.protocol.jobs import KeptJob
from secateur.storage.log.disk import Disk

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PREFIX: Final = "job-"
_CHECKSUM_BYTES: Final = 8


class _Content(msgspec.Struct, frozen=True, array_like=True):
    """A file: the encoded job, and its DAG."""

    job: bytes
    dag: bytes


class JobFiles:
    """Keeps the files. Lives on the member's event loop; files are read and written in threads, one after the other.

    Args:
        disk: The member's disk.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._turn = asyncio.Lock()

    async def read(self) -> list[tuple[KeptJob, bytes]]:
        """All jobs with their DAGs. A file that is damaged is left out: another member has the job as well.

        Raises:
            DiskError: The disk cannot be read.
        """
        return await self._work(self._read)

    async def write(self, job: KeptJob, dag: bytes) -> None:
        """Have a job on disk, in place of an earlier version of it.

        Raises:
            DiskError: The disk is full or fails.
        """
        await self._work(lambda: self._disk.replace(_file_of(job.state.job_id), _written(job, dag)))

    async def remove(self, job_id: str) -> None:
        """Forget a job.

        Raises:
            DiskError: The disk fails.
        """
        await self._work(lambda: self._disk.remove(_file_of(job_id)))

    async def clear(self) -> None:
        """Forget all jobs.

        Raises:
            DiskError: The disk fails.
        """
        await self._work(self._clear)

    async def _work(self, work: Callable[[], T]) -> T:
        async with self._turn:
            try:
                return await asyncio.get_running_loop().run_in_executor(None, work)
            except OSError as error:
                raise DiskError(
                    f"the jobs on record could not be kept in {self._disk.path}: {error}", path=self._disk.path
                ) from error

    def _read(self) -> list[tuple[KeptJob, bytes]]:
        found = []
        for name in self._disk.list():
            if name.startswith(_PREFIX):
                data = self._disk.read(name)
                checksum, encoded = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
                if checksum != xxhash.xxh3_64_digest(encoded):
                    _log.warning("%s/%s is damaged: its job is taken from other members", self._disk.path, name)
                    continue
                content = decode(encoded, _Content)
                found.append((decode(content.job, KeptJob), content.dag))
        return found

    def _clear(self) -> None:
        for name in self._disk.list():
            if name.startswith(_PREFIX):
                self._disk.remove(name)


def _file_of(job_id: str) -> str:
    """The name of the file of a job, whose id a client has chosen."""
    return f"{_PREFIX}{xxhash.xxh3_128_hexdigest(job_id.encode())}"


def _written(job: KeptJob, dag: bytes) -> bytes:
    encoded = encode(_Content(encode(job), dag))
    return xxhash.xxh3_64_digest(encoded) + encoded
