"""``python -m secateur.cli``: the same as the command ``secateur``."""

from __future__ import annotations

from secateur.cli.main import main

main()
