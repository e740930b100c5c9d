"""What is left to DuckDB, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelDeclined:
    """The arrow kernel cannot compute something; ``reason`` explains why."""

    reason: str


class DeclineError(Exception):
    """Something is left to DuckDB; it never leaves this room."""
