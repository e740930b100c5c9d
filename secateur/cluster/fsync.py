"""Defines when the changes of a cluster with a data directory are on disk."""

from __future__ import annotations

from enum import StrEnum


class Fsync(StrEnum):
    """The moment at which an acknowledged write is on disk.

    Loads and definitions of tables are on disk before they are acknowledged, unless it is ``off``.
    """

    ALWAYS = "always"
    """Before the write is acknowledged, on all copies."""
    INTERVAL = "interval"
    """A twentieth of a second later. Writes acknowledged since are lost if all copies end at once."""
    OFF = "off"
    """Whenever the operating system writes it: a power failure loses more than with ``interval``, the end of processes
    as much."""
