"""What the README says of extras, commands and EXPLAIN is so. Its examples are typed by ``pages/test_pages.py``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import secateur

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_it_says_how_to_install() -> None:
    install = [line for block in blocks("console") for line in block.splitlines() if "pip install" in line]
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    named = {extra for line in install for group in re.findall(r"\[([a-z,]+)\]", line) for extra in group.split(",")}
    assert len(install) >= 2
    assert "ray" in named <= extras


def test_explain_says_why_in_the_words_of_the_readme(conn: secateur.Connection) -> None:
    conn.execute(
        "CREATE TABLE orders (customer_id VARCHAR, PRIMARY KEY (customer_id)) PARTITION BY HASH (customer_id)"
        " PARTITIONS 271"
    )
    _, why = blocks("text")
    assert why in str(conn.explain("SELECT * FROM orders WHERE lower(customer_id) = 'c2'"))
    conn.execute("DROP TABLE orders")


def test_the_commands_are_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = {
        line.split()[2] for block in blocks("console") for line in block.splitlines() if line.startswith("$ make")
    }
    assert commands
    assert commands <= targets
