"""The rest of a result, which a member makes as it is read."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from secateur.client.channel_pool import ChannelPool
from secateur.errors import Error, MemberLostError, UnreachableError
from secateur.protocol.query import CloseResult, NextRows
from secateur.wire import CallControl, Channel, decode_tables

GRANT_BYTES: Final = 4 << 20
"""The bytes that a client accepts at a time. A result up to this size is one answer; a larger one is sent in parts of
about this size.
"""


class ResultStream:
    """Fetches one part after another from a member, each on demand.

    In between the member makes no more than a bounded number of bytes.

    It has a channel to itself, since the result belongs to that. Dropped without :meth:`close` it hangs up, with the
    same effect. For one thread at a time.

    Args:
        pool: Where the channel came from.
        channel: Over which the first part came.
        control: The object that ends the statement.
    """

    def __init__(self, pool: ChannelPool, channel: Channel, control: CallControl | None = None) -> None:
        self._pool = pool
        self._control = control
        self._channel: Channel | None = channel
        self._failure: Error | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing comes any more."""
        return self._channel is None and self._failure is None

    def next(self) -> pa.Table | None:
        """The next part, or None after the last one. One round trip.

        Raises:
            Error: Why the rest cannot come, such as a member that was lost; the statement is not repeated, since rows
                of it have been seen. Every further call raises the same.
        """
        if self._failure is not None:
            raise self._failure
        if self._channel is None:
            return None
        try:
            answer = self._channel.request(NextRows(GRANT_BYTES), control=self._control)
        except BaseException as error:
            if isinstance(error, (MemberLostError, UnreachableError)):
                error.safe_to_retry()  # the statement is a read, and may be repeated from its beginning
            self._failure = error if isinstance(error, Error) else None
            channel, self._channel = self._channel, None
            self._pool.drop(channel)
            raise
        if not answer.message.has_more:
            channel, self._channel = self._channel, None
            self._pool.give_back(channel)
        return decode_tables(answer.parts)

    def close(self) -> None:
        """Leave the rest: the members stop to make it. May be called twice."""
        channel, self._channel = self._channel, None
        if channel is None:
            return
        try:
            channel.request(CloseResult())
        except Error:  # hanging up says the same
            self._pool.drop(channel)
        else:
            self._pool.give_back(channel)
