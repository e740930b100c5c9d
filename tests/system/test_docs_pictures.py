"""The picture in docs/jobs.md is what the code beside it makes."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def test_the_text_and_the_picture_are_those_of_the_code() -> None:
    section = (DOCS / "jobs.md").read_text(encoding="utf-8").partition("## Pictures\n")[2].partition("\n## ")[0]
    code, text, statistics_snapshot = re.findall(r"```(?:python|text|mermaid)\n(.*?)\n```", section, re.DOTALL)
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    assert printed.getvalue().rstrip("\n") == text
    assert names["plan"].to_mermaid() == statistics_snapshot
