"""The command ``secateur``: a shell for SQL, and commands that start, fill, look at and end clusters."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "failures": ["CommandError", "failing_with_a_message"],
    "rendering": ["OutputFormat", "extent_text", "write_rows"],
    "scripts": ["Script", "run_scripts"],
}

__all__, __getattr__ = exports(__name__, _FILES)
