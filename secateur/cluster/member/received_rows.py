"""Rows that clients and members send: checked on the event loop while there are few of them, in a thread otherwise."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pyarrow as pa

from secateur.errors import ProtocolError
from secateur.wire import decode_table

__all__ = ["read_parts", "received_rows"]

_INLINE_BYTES_MAX: Final = 1 << 20
"""Texts of so many bytes are checked in about 200 us, as long as a thread takes to wake up."""


async def received_rows(payload: memoryview) -> pa.Table:
    """The rows of a request. Whoever calls has found out before that they are wanted here.

    Raises:
        ProtocolError, LimitExceededError: As :func:`~secateur.wire.decode_table`.
    """
    if len(payload) <= _INLINE_BYTES_MAX:
        return decode_table(payload)
    return await asyncio.to_thread(decode_table, payload)


def read_parts(op: str, parts: list[Any]) -> list[tuple[int, int]]:
    """The partitions of a request's rows and how many rows each has, in order.

    Raises:
        ProtocolError: They are no such pairs.
    """
    for part in parts:
        if (
            type(part) is not list
            or len(part) != 2
            or type(part[0]) is not int
            or type(part[1]) is not int
            or part[1] < 0
        ):
            raise ProtocolError(
                f"{op}: parts are pairs of a partition and a number of rows, and one is {str(part)[:100]}"
            )
    return [(partition, count) for partition, count in parts]
