"""The README's example prints what the README says, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import secateur

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_example_prints_what_the_readme_says() -> None:
    (example, *_), (printed, *_) = blocks("python"), blocks("text")
    done = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout == printed


def test_explain_says_why_in_the_words_of_the_readme(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE orders (customer_id VARCHAR, PRIMARY KEY (customer_id)) PARTITION BY HASH (customer_id) PARTITIONS 271")
    _, why = blocks("text")
    assert why in str(conn.explain("SELECT * FROM orders WHERE lower(customer_id) = 'c2'"))
    conn.execute("DROP TABLE orders")


def test_the_commands_are_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = {line.split()[2] for block in blocks("console") for line in block.splitlines() if line.startswith("$ make")}
    assert commands
    assert commands <= targets
