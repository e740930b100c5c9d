"""The version of the protocol."""

from __future__ import annotations

from typing import Final

__all__ = ["PROTOCOL_VERSION"]

PROTOCOL_VERSION: Final = 2
"""In the head of every frame, so that a peer of another version is told apart by the first bytes that it sends.

It grows when frames, messages or the values
in them change such that an older release would misread them: a field that is added with a default value is no such
change."""
