"""The setting ``SET pruning``, of a session or of the cluster."""

from __future__ import annotations

from enum import StrEnum


class Pruning(StrEnum):
    """Whether statements run only where their partitions are. False in a condition when off."""

    ON = "on"
    """Run where the required partitions are."""
    OFF = "off"
    """Run everything everywhere."""
    VERIFY = "verify"
    """Run both ways and raise when the rows differ."""

    def __bool__(self) -> bool:
        return self is not Pruning.OFF

    def __repr__(self) -> str:
        return repr(self.value)
