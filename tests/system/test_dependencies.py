"""What secateur says of the versions of its libraries, and that what it says was tested is what the tests run with."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from secateur.dependencies import DEPENDENCIES, Dependency

ROOT = Path(__file__).parents[2]
NOT_FROM_ELSEWHERE = ("dev", "docs", "native")
"""The extras of developers, and the one that is a distribution of this project."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0]


def test_each_library_that_users_install_is_listed_with_its_extra() -> None:
    asked: dict[str, set[str | None]] = {name_of(line): {None} for line in project()["dependencies"]}
    for extra, lines in project()["optional-dependencies"].items():
        for line in lines if extra not in NOT_FROM_ELSEWHERE else ():
            asked.setdefault(name_of(line), set()).add(extra)
    assert {one.name for one in DEPENDENCIES} == set(asked)
    assert [one for one in DEPENDENCIES if one.extra not in asked[one.name]] == []
    assert [one.installed for one in DEPENDENCIES] == [importlib.metadata.version(one.name) for one in DEPENDENCIES]


def test_what_was_tested_is_what_the_constraints_say() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {name: re.split(r"[ ;]", version)[0] for name, _, version in (line.partition("==") for line in lines)}
    assert [(one.name, one.tested) for one in DEPENDENCIES if pinned[one.name] != one.tested] == []


@pytest.mark.parametrize(
    ("installed", "tested", "is_newer"),
    [
        ("2.0.1", "2.0.0", True),
        ("2.1.0", "2.0.9", True),
        ("2.0.10", "2.0.9", True),
        ("2.1.0.dev5", "2.0.9", True),
        ("2.0", "2.0.0", False),
        ("2.0.0.post1", "2.0.0", False),
        ("1.9.9", "2.0.0", False),
        (None, "2.0.0", False),
    ],
)
def test_a_version_is_newer_than_the_tested_one(installed: str | None, tested: str, is_newer: bool) -> None:
    assert Dependency("a", tested).is_older_than(installed) is is_newer


SAYS = """
import warnings
from secateur import dependencies
dependencies.DEPENDENCIES = (dependencies.Dependency("msgpack", "0.1"), dependencies.Dependency("xxhash", "9999"))
import secateur
warnings.simplefilter("error")
for _ in range(2):
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
        assert conn.execute("SELECT 1").fetchall() == [(1,)]
"""


def test_a_start_says_once_what_is_newer_and_works_where_warnings_are_errors() -> None:
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, text=True, check=True)
    said = [line for line in done.stderr.splitlines() if "tested" in line]
    assert len(said) == 1, done.stderr
    assert "xxhash" not in said[0]
    assert f"msgpack {importlib.metadata.version('msgpack')} (tested: 0.1)" in said[0]
    assert "`secateur doctor`" in said[0]
