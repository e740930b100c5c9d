"""The two kernels that answer a fragment of a statement over Arrow tables, with the same answer.

``arrow`` where it can answer exactly, in microseconds; ``duckdb`` for the whole dialect, in about a millisecond.
``fragment.run`` chooses.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "fragment": [
        "ChunkedResult",
        "CompleteResult",
        "Fragment",
        "KernelName",
        "StreamedResult",
        "open_answer",
        "run",
        "run_with",
    ]
}

__all__, __getattr__ = exports(__name__, _FILES)
