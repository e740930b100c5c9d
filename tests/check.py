"""Checks a commit in minutes: what its change touches in full, of the rest what finds most.

``make check`` runs ruff and mypy; 100 seeds of the simulation and 500 random statements, from a seed that is printed;
the unit tests of the rooms that the change touches and of the rooms above them, by the floors of ``test_imports.py``;
the other tests that name a touched room; each test file that the change touches itself; all plans, files of SQL and
seeds of the design; and the tests that are marked ``smoke``, about one for each invariant of ARCHITECTURE.md. At the
end it says what it left out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = ROOT / "tests"
sys.path.insert(0, str(TESTS / "unit"))

from test_imports import FLOORS  # noqa: E402

ALWAYS: Final = ("tests/plans", "tests/sql", "tests/seeds")
EVERYWHERE: Final = ("pyproject.toml", "constraints.txt", "tests/conftest.py")
"""Files that touch every room."""
NAMES_ROOMS: Final = ("engine", "pitfalls", "property")
"""Folders of tests that belong to no room, or to several: those of their files run that name a touched room."""
SIMULATED: Final = 100
STATEMENTS: Final = 500


@dataclass(frozen=True)
class Step:
    """A command, and what it is called."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """What a change touches, and the tests that run for it."""

    touched: frozenset[str]
    above: frozenset[str]
    paths: tuple[str, ...]
    """Files and folders of tests, each of which runs whole."""
    left_out: tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="", help="the commit that the change is based on")
    parser.add_argument("--seed", type=int, required=True, help="of the simulation and of the random statements")
    parser.add_argument("--choose", action="store_true", help="only say what would be tested")
    options = parser.parse_args()
    base = options.base or default_base()
    choice = chosen(changed_files(base))
    print(f"make check BASE={base} SEED={options.seed}")
    print(f"touched: {', '.join(sorted(choice.touched)) or 'no room'}; above: {', '.join(sorted(choice.above)) or '-'}")
    if options.choose:
        print(*choice.paths, sep="\n")
        return 0
    began = time.monotonic()
    # One step on each of two cores, then the tests on both.
    beside = [
        [
            python(
                "simulation", "tests/simulation/run.py", "--workers=1", f"--seeds={SIMULATED}", f"--seed={options.seed}"
            )
        ],
        [
            python("ruff", "-m", "ruff", "check", "--quiet", "."),
            python("format", "-m", "ruff", "format", "--check", "--quiet", "."),
            python("types", "-m", "mypy"),
            python(
                "statements",
                "tests/property/placed_run.py",
                "--workers=1",
                f"--statements={STATEMENTS}",
                f"--seed={options.seed}",
            ),
        ],
    ]
    with ThreadPoolExecutor(len(beside)) as pool:
        failed = [name for names in pool.map(run_all, beside) for name in names]
    smoke = [str(path.relative_to(ROOT)) for path in (TESTS / "system").rglob("test_*.py") if is_smoke(path)]
    failed += run_all([pytest("tests", "not slow", choice.paths), pytest("smoke", "smoke and not slow", smoke)])
    print(f"left out: {', '.join(choice.left_out)}: `make test` runs them")
    print(f"{time.monotonic() - began:.0f} s, {'failed: ' + ', '.join(failed) if failed else 'passed'}")
    return int(bool(failed))


def default_base() -> str:
    """The commit on which the work of this branch began; on the main branch the one before, if nothing is changed."""
    for upstream in ("@{upstream}", "origin/HEAD", "main"):
        found = git("merge-base", "HEAD", upstream, may_fail=True)
        if found and (found != git("rev-parse", "HEAD") or git("status", "--porcelain")):
            return found[:12]
    return git("rev-parse", "HEAD~1")[:12]


def changed_files(base: str) -> list[str]:
    """The files that differ from a commit, with those that git does not know yet."""
    known, unknown = git("diff", "--name-only", base), git("ls-files", "--others", "--exclude-standard")
    return [*known.splitlines(), *unknown.splitlines()]


def chosen(files: Iterable[str]) -> Choice:
    """Choose the tests for a change of files, relative to the root of the project."""
    files = list(files)
    if any(file in EVERYWHERE or file.startswith("native/") for file in files):
        files.append("secateur/errors.py")
    touched = {room for file in files if (room := room_of(file))}
    known = [floor for floor, rooms in enumerate(FLOORS) if rooms & touched]
    above = {room for floor in FLOORS[min(known) + 1 :] for room in floor} - touched if known else set()
    units = [path for path in sorted((TESTS / "unit").iterdir()) if path.is_dir() and path.name[0] != "_"]
    paths = [TESTS / "unit" / f"{path.name}" for path in units if path.name in touched | above]
    paths += sorted((TESTS / "unit").glob("test_*.py"))
    paths += [ROOT / always for always in ALWAYS]
    names = re.compile(rf"\bsecateur\.({'|'.join(sorted(touched))})\b") if touched else None
    for folder in NAMES_ROOMS:
        tests = sorted((TESTS / folder).rglob("test_*.py"))
        paths += [path for path in tests if names and names.search(path.read_text(encoding="utf-8"))]
    changed = [ROOT / file for file in files if re.search(r"^tests/.*/test_\w+\.py$", file) and (ROOT / file).exists()]
    paths += [path for path in changed if not any(path.is_relative_to(other) for other in paths)]
    rooms = [f"tests/unit/{path.name}" for path in units if path not in paths]
    others = [f"most of tests/{folder}" for folder in (*NAMES_ROOMS, "system")]
    return Choice(
        frozenset(touched),
        frozenset(above),
        tuple(str(path.relative_to(ROOT)) for path in paths),
        (*others, "tests/tpc", "tests/simulation", "tests/faults", *rooms),
    )


def room_of(file: str) -> str:
    """The room of ``secateur/`` that a file belongs to, or whose unit tests it is; none for others."""
    found = re.match(r"(?:secateur|tests/unit)/(\w+)", file)
    return found[1] if found and any(found[1] in rooms for rooms in FLOORS) else ""


def is_smoke(path: Path) -> bool:
    return "mark.smoke" in path.read_text(encoding="utf-8")


def python(name: str, *arguments: str) -> Step:
    return Step(name, (sys.executable, *arguments))


def pytest(name: str, marked: str, paths: Sequence[str]) -> Step:
    workers = os.environ.get("WORKERS", "3")
    return python(name, "-m", "pytest", "-q", "-m", marked, "-n", workers, "--dist", "loadfile", *paths)


def run_all(steps: Iterable[Step]) -> list[str]:
    """Run steps one after the other; the names of those that failed, whose output is printed."""
    failed = []
    for step in steps:
        began = time.monotonic()
        done = subprocess.run(step.command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = (done.stdout + done.stderr).strip().splitlines()
        last = lines[-1].strip("= ") if lines else ""
        print(
            f"{step.name}: {time.monotonic() - began:.0f} s, {'failed' if done.returncode else last or 'ok'}",
            flush=True,
        )
        if done.returncode:
            failed.append(step.name)
            print(*lines, sep="\n", flush=True)
    return failed


def git(*arguments: str, may_fail: bool = False) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=not may_fail)
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
