"""When the changes of a cluster with a data directory are on disk."""

from __future__ import annotations

from enum import StrEnum


class Fsync(StrEnum):
    """When an acknowledged write is on disk.

    Loads and definitions of tables are there before they are acknowledged, unless it is ``off``.
    """

    ALWAYS = "always"
    """Before it is acknowledged, on all copies."""
    INTERVAL = "interval"
    """A twentieth of a second later. What was acknowledged since is lost if all copies end at once."""
    OFF = "off"
    """When the operating system writes it: a loss of power loses more. The end of processes loses as much as with
    ``interval``."""
