"""The ledger of tenants, as members tell it."""

from __future__ import annotations

from typing import Final

import msgspec

from secateur.protocol.message import Message
from secateur.protocol.plan_summary import LatencyHistogram

OTHERS: Final = "others"
"""The line of the tenants that have none of their own because there are too many."""


class TenantHour(msgspec.Struct, array_like=True):
    """What one tenant has used of one member in one hour.

    Attributes:
        tenant: Its name; "" for the owner, :data:`OTHERS` for many.
        hour: The beginning of the hour, in seconds since the epoch.
        statements: Statements that have ended, and reads of rows by their keys.
        failed: Statements that have failed.
        refused: Statements that were refused because of a limit, or because too many waited.
        processor_s: Seconds of processor time.
        waiting_s: Seconds for which statements waited for their turn.
        rows_read: Rows that were read.
        rows: Rows of results, and rows that were changed.
        bytes_sent: Bytes of answers.
        latencies: The times of the statements.
    """

    tenant: str
    hour: int
    statements: int = 0
    failed: int = 0
    refused: int = 0
    processor_s: float = 0.0
    waiting_s: float = 0.0
    rows_read: int = 0
    rows: int = 0
    bytes_sent: int = 0
    latencies: LatencyHistogram = LatencyHistogram()

    def add(self, other: TenantHour) -> None:
        """Add what another line has."""
        for name in ("statements", "failed", "refused", "processor_s", "waiting_s", "rows_read", "rows", "bytes_sent"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latencies = LatencyHistogram.merged((self.latencies, other.latencies))


class TenantHours(msgspec.Struct, frozen=True):
    """The lines of a member."""

    lines: list[TenantHour] = []


class GetTenantHours(Message[TenantHours], frozen=True):
    """What each tenant has used of a member; nothing where none but the owner was ever connected."""
