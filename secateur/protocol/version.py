"""The version of the protocol."""

from __future__ import annotations

from typing import Final

PROTOCOL_VERSION: Final = 4
"""The version is in the head of every frame, so a peer of another version is recognised by its first bytes.

It grows when frames, messages or the values in them change such that an older release would misread or refuse them: a
field that is added to a struct with a default value is no such change.
"""
