"""Pictures by Graphviz, if its program ``dot`` is installed."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final

from secateur.errors import NotSupportedError

_PROGRAM: Final = "dot"
_TIMEOUT_S: Final = 30.0


def is_installed() -> bool:
    """Whether the program is on the path."""
    return shutil.which(_PROGRAM) is not None


def svg(dot: str) -> str:
    """A graph in the language of Graphviz as SVG, a document of its own. Costs a process: about 20 ms.

    Raises:
        NotSupportedError: Graphviz is not installed, or it takes longer than half a minute.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        raise NotSupportedError(
            "to_svg() draws with Graphviz, whose program 'dot' is not on PATH: install it "
            "(Debian: apt-get install graphviz; macOS: brew install graphviz), "
            "or use to_mermaid(), which GitHub and JupyterLab draw by themselves"
        )
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=dot.encode(), capture_output=True, check=True, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise NotSupportedError(
            f"Graphviz did not draw the graph within {_TIMEOUT_S:g} s: use to_dot() or to_mermaid()"
        ) from None
    return done.stdout.decode()
