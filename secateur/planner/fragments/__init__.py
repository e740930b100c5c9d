"""The forms of fragments for the arrow kernel."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "arrow_compiler": ["KernelDeclined", "compile_arrow"],
    "arrow_joins": ["JoinInput", "compile_arrow_join"],
    "literal_columns": ["literal_column"],
}

__all__, __getattr__ = exports(__name__, _FILES)
