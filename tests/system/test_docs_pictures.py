"""The picture in docs/jobs.md is what the code beside it makes; to draw it anew, run this file as a script from the repository."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
PICTURE = DOCS / "job_plan.svg"


def blocks() -> tuple[str, str]:
    """The code under "Pictures", and the output that stands below it."""
    section = (DOCS / "jobs.md").read_text(encoding="utf-8").partition("## Pictures\n")[2].partition("\n## ")[0]
    code, text = re.findall(r"```(?:python|text)\n(.*?)\n```", section, re.DOTALL)
    return code, text


def run_code() -> tuple[str, str]:
    """What the code prints, and the picture of its plan."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(blocks()[0], names)
    return printed.getvalue().rstrip("\n"), names["plan"].to_svg()


def test_the_text_and_the_picture_are_those_of_the_code() -> None:
    text, picture = run_code()
    assert text == blocks()[1]
    assert picture == PICTURE.read_text(encoding="utf-8").rstrip("\n")


if __name__ == "__main__":
    made_text, made_picture = run_code()
    PICTURE.write_text(made_picture + "\n", encoding="utf-8")
    print(made_text)
