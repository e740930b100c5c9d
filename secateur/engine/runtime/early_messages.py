"""Messages of jobs whose start has not arrived yet: kept, bounded, without I/O.

A fast member may send rows to a slow one before the coordinator's message gets there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from secateur.engine.exchange.exchange import Payload
from secateur.protocol.jobs import CreditRows, ExchangeRows

_ENDED_MAX: Final = 16_384
_NOTICE_BYTES: Final = 64


class EarlyMessages:
    """Keeps messages of a job until it starts.

    It also remembers jobs that have ended, so that their late messages are not kept.

    Args:
        bytes_max: Most bytes of payloads, all jobs together.
        wait_s: Seconds after which a job's messages are dropped.
    """

    def __init__(self, bytes_max: int, wait_s: float) -> None:
        self._bytes_max = bytes_max
        self._wait_s = wait_s
        self._jobs: OrderedDict[str, tuple[float, list[tuple[ExchangeRows | CreditRows, Payload]]]] = OrderedDict()
        self.bytes = 0
        """Bytes kept now."""
        self._ended: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._jobs)

    def keep(self, message: ExchangeRows | CreditRows, payload: Payload, now_s: float) -> bool:
        """Keep a message of a job that is not running here.

        Returns:
            False when the bound is passed: then all messages of that job are dropped, and its later ones are not kept
            either.
        """
        self.expire(now_s)
        if message.job in self._ended:
            return True
        size = _size(payload)
        if self.bytes + size > self._bytes_max:
            self.end(message.job)
            return False
        self._jobs.setdefault(message.job, (now_s, []))[1].append((message, payload))
        self.bytes += size
        return True

    def take(self, job: str) -> Sequence[tuple[ExchangeRows | CreditRows, Payload]]:
        """The job starts: return the messages that came for it, in order."""
        _, messages = self._jobs.pop(job, (0.0, []))
        self.bytes -= sum(_size(payload) for _, payload in messages)
        return messages

    def end(self, job: str) -> None:
        """The job has ended here, or never will start: drop its messages and all later ones."""
        self.take(job)
        self._ended[job] = None
        if len(self._ended) > _ENDED_MAX:
            self._ended.popitem(last=False)

    def has_ended(self, job: str) -> bool:
        """Whether the job is remembered as ended."""
        return job in self._ended

    def expire(self, now_s: float) -> None:
        """Drop jobs whose start never came."""
        while self._jobs:
            job, (since, _) = next(iter(self._jobs.items()))
            if now_s - since < self._wait_s:
                return
            self.end(job)


def _size(payload: Payload) -> int:
    return len(payload) + _NOTICE_BYTES
