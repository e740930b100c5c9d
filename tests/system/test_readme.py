"""The README's example prints what the README says, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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


def typed(python: list[str]) -> subprocess.CompletedProcess[str]:
    """Run blocks in one session, as a reader types them."""
    return subprocess.run([sys.executable, "-c", "\n".join(python)], capture_output=True, text=True, timeout=150)


def test_the_blocks_can_be_typed_one_after_the_other() -> None:
    python = [block for block in blocks("python") if "pyspark" not in block]
    assert len(python) >= 2
    done = typed([*python, "print(job.result().num_rows)"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1"  # all of a customer's orders are of one amount


@pytest.mark.spark
@pytest.mark.slow
def test_the_blocks_can_be_typed_with_the_one_for_spark() -> None:
    done = typed([*blocks("python"), "print(sum(job.result()['orders'].to_pylist()))"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "130"


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
