"""Rows that clients and members send, checked on the event loop if they are few, and in a thread otherwise."""

from __future__ import annotations

import asyncio
from typing import Final

import pyarrow as pa

from secateur.wire import decode_table

__all__ = ["received_rows"]

_INLINE_BYTES_MAX: Final = 1 << 20
"""Texts of so many bytes are checked in about 200 us, as long as a thread takes to wake up."""
_OWN_BYTES_MAX: Final = 4096
"""So few bytes are copied out of what was received with them: rows that are kept as they came keep no more alive."""


async def received_rows(payload: memoryview) -> pa.Table:
    """The rows of a request. The caller has checked that they belong here.

    Raises:
        ProtocolError, LimitExceededError: As :func:`~secateur.wire.decode_table`.
    """
    if len(payload) <= _OWN_BYTES_MAX:
        return decode_table(bytes(payload))
    if len(payload) <= _INLINE_BYTES_MAX:
        return decode_table(payload)
    return await asyncio.to_thread(decode_table, payload)
