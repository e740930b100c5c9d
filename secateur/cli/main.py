"""The entry point of the command ``secateur``, which says what to install where a library is missing."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process, and end it with the exit code: 0, 1 for a failure, 2 for wrong usage."""
    try:
        from secateur.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "prompt_toolkit"):
            raise
        print(f'secateur: the command needs {error.name}: pip install "secateur[cli]"', file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None
    app()
