"""The actor that hosts a member.

It imports neither the client nor the controller: a member that takes the place of a lost one is there a second sooner.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import sys
from concurrent.futures import Future
from typing import Final

import ray

from secateur.cluster.loop_thread import LoopThread
from secateur.cluster.member.host import MemberHost
from secateur.cluster.runtimes.ray_actors import address_of_actor, configure_tracing
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import ProcessAddress
from secateur.structured_logs import use_log_format

_log = logging.getLogger(__name__)

_GC_THRESHOLD: Final = 20_000


class MemberActor:
    """Hosts a member in a Ray worker process; one that Ray has started anew has another member come, or come back."""

    def __init__(
        self, member_id: str, settings: ClusterSettings, controller_address: str, is_on_one_machine: bool
    ) -> None:
        keep_freed_memory()
        use_log_format(settings.log_format, member_id)
        configure_tracing(settings.tracing)
        own_address = address_of_actor(settings, is_on_one_machine)
        self._loop = LoopThread(f"secateur-{member_id}")
        self._controller_address = controller_address
        self._start_timeout_s = settings.start_timeout_s
        self._host: MemberHost | None = None
        self._coming: Future[None] | None = None
        if ray.get_runtime_context().was_current_actor_reconstructed:
            # It answers meanwhile: the controller may be started anew as well, and ask for its address.
            self._coming = self._loop.submit(self._come(settings, own_address))
        else:
            self._host = self._loop.call(lambda: MemberHost(member_id, settings, controller_address, own_address))

    async def _come(self, settings: ClusterSettings, own_address: ProcessAddress) -> None:
        try:
            self._host = await MemberHost.replacement(settings, self._controller_address, own_address)
            _started()
        except Exception:
            _log.exception("no member can come in the place of one that has ended")
            raise

    def start(self) -> None:
        assert self._host is not None, "called once, by the process that has made it"
        self._loop.run(self._host.start(), self._start_timeout_s)
        _started()

    def member_id(self) -> str:
        """The member that lives here; "" if it is still to come."""
        return "" if self._host is None else self._host.member_id

    def controller_address(self) -> str:
        return self._controller_address

    def stop_as(self, member_id: str) -> bool:
        if self._host is None or not self._loop.run(self._host.stop_as(member_id)):
            return False
        self._loop.stop()
        return True

    def stop(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
        if self._host is not None:
            self._loop.run(self._host.stop())
        self._loop.stop()


def _started() -> None:
    """A member serves from now on.

    What is loaded by now stays: the collector need not look at it again in the middle of a statement, nor come by every
    few statements.
    """
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)


# Of glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

_ARRAY_BYTES_MAX: Final = 32 << 20
_FREE_BYTES_MAX: Final = 64 << 20


def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory for the next arrays of up to 32 MB, instead of returning it to the system.

    Kernels make arrays of a megabyte for every block of rows, and getting fresh pages for each takes longer than the
    computation in them. For a process that belongs to a member; Arrow's buffers and DuckDB's have allocators of their
    own. Does nothing where the C library is not glibc.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):  # AttributeError: musl has no mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _ARRAY_BYTES_MAX)
        libc.mallopt(_M_TRIM_THRESHOLD, _FREE_BYTES_MAX)
