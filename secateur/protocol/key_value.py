"""Requests and replies of reads by primary key, which need no plan."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from secateur.protocol.message import Message

FOUND_ROWS_MAX: Final = 256
"""Up to so many rows that were found by their keys are sent as plain values: who asks for them wants Python values."""


class FoundRows(msgspec.Struct, frozen=True, array_like=True):
    """The rows of some keys, in the order of the keys, without those that are not there.

    Attributes:
        missing: The positions of the keys that have no row, ascending.
        values: The values of each column of the table, if there are few rows; else the rows are the payload.
    """

    missing: list[int]
    values: list[list[Any]] | None = None


class GetRows(Message[FoundRows], frozen=True, array_like=True):
    """Ask the owner of some keys for their rows.

    Attributes:
        table_id: The table.
        table_version: The version of its definition that the client knows: its columns and ranges.
        keys: Complete primary keys: canonical values in key order.
    """

    table_id: int
    table_version: int
    keys: list[list[Any]]
