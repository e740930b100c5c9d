"""The log of a member: records are collected on the event loop, and written by a thread, many at a time.

With ``fsync="always"`` one sync serves all writes that wait for it (*group commit*): while the disk is busy, the
records of further writes collect. The event loop itself never touches a file.

A disk that refuses a write or a sync leaves the end of the file unknown, and a second sync would report success without
having written anything (Rebello et al., "Can Applications Recover from fsync Failures?", 2020). So the file is never
used again: the member takes no more writes until a checkpoint of everything it has in memory is on disk, and the log
goes on in a new file.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from secateur.cluster.loop_thread import BackgroundTasks, threads_end
from secateur.cluster.settings import Fsync
from secateur.errors import DiskError
from secateur.storage.log.checkpoint import SEGMENT, Checkpoint
from secateur.storage.log.disk import Disk
from secateur.storage.log.records import FrameWriter, MakeBody, WrittenSnapshot

_log = logging.getLogger(__name__)

LOG_BYTES_MAX: Final = 256 << 20
_INTERVAL_S: Final = 0.05
_BATCH_MAX: Final = 1024
_MEND_S: Final = 1.0

MakeCheckpoint = Callable[[int, Mapping[tuple[int, int], WrittenSnapshot]], Checkpoint]


class MemberLog:
    """Writes the log of one member, and checkpoints. Lives on its event loop.

    Args:
        fsync: When records are on disk.
        log_bytes_max: A checkpoint is written when the log has grown by that much.
        mend_s: Seconds between two tries to write to a disk that has refused.

    Attributes:
        disk: As given.
    """

    def __init__(
        self,
        disk: Disk,
        fsync: Fsync,
        *,
        log_bytes_max: int = LOG_BYTES_MAX,
        mend_s: float = _MEND_S,
    ) -> None:
        self.disk = disk
        self._fsync = fsync
        self._make_checkpoint: MakeCheckpoint
        self._log_bytes_max = log_bytes_max
        self._mend_s = mend_s
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="secateur-log")
        self._background = BackgroundTasks()
        self._file = FrameWriter(0)
        self._number = 0
        self._written: Mapping[tuple[int, int], WrittenSnapshot] = {}
        self._pending: list[MakeBody] = []
        self._appended = 0
        self._flushed = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._is_flushing = False
        self._timer: asyncio.TimerHandle | None = None
        self._turning = asyncio.Lock()  # held while a batch is written, and while the log turns to another file
        self._checkpointing = asyncio.Lock()
        self._broken: DiskError | None = None

    async def begin(
        self, number: int, written: Mapping[tuple[int, int], WrittenSnapshot], checkpoint: MakeCheckpoint
    ) -> None:
        """Write a first checkpoint of what the member has, and begin to take records.

        Args:
            number: Higher than those of all files that are there.
            written: The snapshots on disk.
            checkpoint: Makes a checkpoint of that number of all that the member has; the snapshots on disk are given.

        Raises:
            DiskError: The disk is full or fails.
        """
        self._number, self._written, self._make_checkpoint = number - 1, written, checkpoint
        try:
            await self._start_anew()
        except OSError as error:
            raise self._disk_error("cannot write to its data directory", error) from error

    def append(self, body: MakeBody) -> None:
        """Record a change that was made in this turn of the loop; :meth:`durable` says when it is on disk."""
        self._pending.append(body)
        self._appended += 1
        if self._is_flushing or self._broken is not None:
            return
        if self._fsync is Fsync.ALWAYS or len(self._pending) >= _BATCH_MAX:
            self._flush_now()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_INTERVAL_S, self._flush_now)

    def check(self) -> None:
        """Refuse a write that could not be recorded.

        Raises:
            DiskError: The disk has refused to write, and no checkpoint has been written since; nothing was written.
        """
        if self._broken is not None:
            raise DiskError(f"{self._broken}; nothing was written", **self._broken.details)

    @property
    def is_broken(self) -> bool:
        """Whether :meth:`check` refuses a write."""
        return self._broken is not None

    @property
    def unsynced(self) -> int:
        """The place in the log behind the last record, for :meth:`is_durable`; 0 if writes do not wait for the disk."""
        return self._appended if self._fsync is Fsync.ALWAYS else 0

    def is_durable(self, place: int) -> bool:
        """Whether the records before a place are on disk."""
        return place <= self._flushed

    async def durable(self) -> None:
        """Return once a change that is visible is on disk, or at once if the setting does not promise that.

        Raises:
            DiskError: The disk has refused: the change is visible here, but may not survive a restart.
        """
        try:
            if self._broken is not None or self._fsync is Fsync.ALWAYS:
                await self.flushed()
        except DiskError as error:
            visible = f"{error.message}; the change is visible, but it may not survive a restart"
            raise DiskError(visible, **error.details) from error

    async def flushed(self) -> None:
        """Return once everything that was appended is on disk; with ``fsync="off"``, given to the operating system.

        Raises:
            DiskError: The disk has refused. What that means is for the caller to say: a load that could not be prepared
                is not visible, and a table that could not be created is not there.
        """
        if self._broken is not None:
            raise self._again(self._broken)
        if self._flushed < self._appended:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((self._appended, future))
            self._flush_now()
            await future

    async def close(self) -> None:
        """Write what was appended, and let go of the disk."""
        if self._timer is not None:
            self._timer.cancel()
        async with self._turning:
            if self._pending and self._broken is None:
                await self._write_pending(self._write)
            await self._background.close()
        await threads_end(self._threads)
        self.disk.close()

    # -- writing

    def _flush_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_flushing and self._broken is None:
            self._is_flushing = True
            self._background.start(self._flush(), "write the log")

    async def _flush(self) -> None:
        try:
            while self._pending and self._broken is None:
                async with self._turning:
                    if self._broken is not None:  # a checkpoint met the disk's refusal while this waited
                        return
                    if not await self._write_pending(self._write):
                        return
        finally:
            self._is_flushing = False
        if self._file.end > self._log_bytes_max and not self._checkpointing.locked() and self._broken is None:
            self._background.start(self._checkpoint(), "write a checkpoint")

    async def _write_pending(self, write: Callable[..., None], *args: Any) -> bool:
        """Have what is pending written, in the turn of this log; whether the disk has taken it."""
        batch, self._pending = self._pending, []
        try:
            await self._in_thread(write, batch, *args)
        except OSError as error:
            self._break("could not write its log", error)
            return False
        self._flushed += len(batch)
        self._wake()
        return True

    def _write(self, batch: list[MakeBody]) -> None:
        name = f"{SEGMENT}{self._number}"
        self.disk.append(name, self._file.framed(body() for body in batch))
        if self._fsync is not Fsync.OFF:
            self.disk.sync(name)
            self._file.synced()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for upto, future in waiting:
            if upto > self._flushed:
                self._waiting.append((upto, future))
            elif not future.done():
                future.set_result(None)

    # -- checkpoints

    async def _checkpoint(self) -> None:
        """Turn to a new file of the log, and write what is in the files before it as a checkpoint."""
        async with self._checkpointing:
            async with self._turning:
                if self._broken is not None:
                    return
                # What is pending was made before: the checkpoint has it, and its records belong in front of it.
                checkpoint = self._make_checkpoint(self._number + 1, self._written)
                if not await self._write_pending(self._turn_to, checkpoint.number):
                    return
            try:
                await self._in_thread(self._finish, checkpoint)
            except OSError as error:
                _log.warning("%s: a checkpoint could not be written, and the log grows on: %s", self.disk.path, error)

    def _turn_to(self, batch: list[MakeBody], number: int) -> None:
        name = f"{SEGMENT}{self._number}"
        self.disk.append(name, self._file.framed(body() for body in batch))
        self.disk.sync(name)
        self.disk.append(f"{SEGMENT}{number}", b"")
        self.disk.sync(f"{SEGMENT}{number}")
        self._number, self._file = number, FrameWriter(number)

    def _finish(self, checkpoint: Checkpoint) -> None:
        self._written = checkpoint.write(self.disk)
        checkpoint.remove_older(self.disk, self._written)

    # -- a disk that refuses

    def _break(self, what: str, error: OSError) -> None:
        self._broken = self._disk_error(what, error)
        _log.error("%s; this member takes no writes until a checkpoint of its data is written", self._broken)
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(self._again(self._broken))
        self._background.start(self._mend(), "mend the log")

    async def _mend(self) -> None:
        while True:
            await asyncio.sleep(self._mend_s)
            try:
                await self._start_anew()
            except OSError:
                continue
            break  # a disk that refuses again from here on has a mend of its own
        _log.warning("%s: the data of this member are on disk again, and it takes writes", self.disk.path)
        if self._pending:
            self._flush_now()

    async def _start_anew(self) -> None:
        """Write all that the member has as a checkpoint, and go on in a new file, whatever is in those before it."""
        async with self._checkpointing, self._turning:
            self._number += 1
            checkpoint = self._make_checkpoint(self._number, self._written)
            contained = self._appended  # the checkpoint has what was made up to here
            self._pending.clear()
            await self._in_thread(self._write_anew, checkpoint)
            self._file = FrameWriter(self._number)
            self._flushed, self._broken = contained, None
            self._wake()

    def _write_anew(self, checkpoint: Checkpoint) -> None:
        # The checkpoint comes first: a new file behind one with a torn tail would make that look like damage.
        self._written = checkpoint.write(self.disk)
        self.disk.append(f"{SEGMENT}{checkpoint.number}", b"")
        self.disk.sync(f"{SEGMENT}{checkpoint.number}")
        checkpoint.remove_older(self.disk, self._written)

    async def _in_thread(self, work: Callable[..., None], *args: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    @staticmethod
    def _again(broken: DiskError) -> DiskError:
        """An error of its own for each that is told, since each adds its traceback."""
        return DiskError(broken.message, **broken.details)

    def _disk_error(self, what: str, error: OSError) -> DiskError:
        free_bytes = None
        if error.errno == errno.ENOSPC:
            with contextlib.suppress(OSError):
                free_bytes = self.disk.free_bytes()
        room = "" if free_bytes is None else f" ({free_bytes} bytes are free: make room)"
        return DiskError(
            f"a member {what} in {self.disk.path}: {error.strerror or error}{room}",
            path=self.disk.path,
            **({} if free_bytes is None else {"free_bytes": free_bytes}),
        )
