"""The command ``secateur``: a shell for SQL, and commands that start, fill, look at and end clusters."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "rendering": ["CommandError", "OutputFormat", "extent_text", "failing_with_a_message", "write_rows"],
    "scripts": ["Script", "run_scripts"],
}

__all__, __getattr__ = exports(__name__, _FILES)
