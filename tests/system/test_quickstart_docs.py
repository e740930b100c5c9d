"""What ``docs/quickstart.md`` says runs from top to bottom, in a process of its own, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "quickstart.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.slow
def test_the_blocks_can_be_typed_one_after_the_other() -> None:
    python = "\n".join(text for language, text in BLOCKS if language == "python")
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    printed = [text for language, text in BLOCKS if language == "text"]
    assert len(printed) == 3
    for text in printed:
        assert f"\n{text}" in done.stdout
    assert "1,000,000 rows" in done.stdout
    assert "execution: local on 1 of 3 members" in done.stdout
