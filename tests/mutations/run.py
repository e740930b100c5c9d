"""Plants each fault of :mod:`planted` in a copy of the checkout, and says which test finds it.

The tests are those that ``make check`` would choose for a change of that file, in the order in which they find most in
a second, up to the first failure: the unit tests of its room, of these first those that name what the file exports;
other tests about the room; plans, SQL, seeds and smoke; the rooms above; then random statements and seeds of the
simulation. With ``--whole`` a fault that none of them finds is looked for by ``make test``.

A failing test counts if it fails once more by itself, and passes without the fault: a test that was only slow on a busy
machine finds nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

from check import ALWAYS, SIMULATED, STATEMENTS, chosen, is_smoke  # noqa: E402

from planted import PLANTED, Mutation  # noqa: E402

STAGES: Final = ("room", "about it", "always", "smoke", "above", "statements", "simulation")
WHOLE: Final = "make test"
_STAGE_S_MAX: Final = 3600.0
_NO_TESTS: Final = 5
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_EXPORTED: Final = re.compile(r"^__all__ = \[(.*?)\]", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a fault.

    Attributes:
        by: The test or the command that found it; nothing if none did.
        stage: Where it was found.
        seconds: How long that took.
    """

    by: str
    stage: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="faults whose names contain one of these")
    parser.add_argument("--workers", type=int, default=1, help="faults that are planted at the same time")
    parser.add_argument("--stages", nargs="+", default=STAGES, choices=STAGES, help="only these")
    parser.add_argument("--whole", action="store_true", help="look with all of `make test` for what they do not find")
    options = parser.parse_args()
    stages = [*options.stages, *([WHOLE] if options.whole else [])]
    wanted = [one for one in PLANTED if not options.only or any(part in one.name for part in options.only)]
    copies: SimpleQueue[Copy] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="secateur-mutations-") as folder:
        for number in range(options.workers):
            copies.put(Copy(Path(folder) / str(number)))

        def look_for(mutation: Mutation) -> bool:
            copy = copies.get()
            try:
                found = copy.find(mutation, stages)
            except LookupError as error:
                print(f"STALE      {error}", flush=True)
                return False
            finally:
                copies.put(copy)
            what = f"{found.seconds:5.0f} s  " if found.by else "NOT FOUND"
            print(f"{what:10} {mutation.room}: {mutation.name}; {found.stage}: {found.by or '-'}", flush=True)
            return bool(found.by)

        with ThreadPoolExecutor(options.workers) as pool:
            found = sum(pool.map(look_for, wanted))
    print(f"{found} of {len(wanted)} found")
    return int(found < len(wanted))


class Copy:
    """A copy of the checkout, in which one fault is planted at a time.

    Args:
        folder: Where.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def find(self, mutation: Mutation, stages: Sequence[str]) -> Found:
        """Plant a fault, and look for it.

        Raises:
            LookupError: It cannot be planted.
        """
        began_s = time.monotonic()
        with self._planted(mutation):
            for stage, command in commands(mutation, self._folder):
                by = self._found_by(command, mutation) if stage in stages else ""
                if by:
                    return Found(by, stage, time.monotonic() - began_s)
        return Found("", stages[-1], time.monotonic() - began_s)

    def _found_by(self, command: Sequence[str], mutation: Mutation) -> str:
        """The test, or the command if that has no tests, that finds the fault; nothing if it does not."""
        while True:
            code, output = self._run(command)
            if code in (0, _NO_TESTS):
                return ""
            failed = _FAILED.findall(output)
            if self._is_right(pytest("slow or not slow", failed[0]) if failed else command, mutation):
                return str(failed[0]) if failed else " ".join(command[1:])
            if not failed:
                return ""
            command = [*command, f"--deselect={failed[0]}"]

    def _is_right(self, command: Sequence[str], mutation: Mutation) -> bool:
        """Whether a command fails with the fault that is planted, and passes without it."""
        if not self._run(command)[0]:
            return False
        path = self._folder / "secateur" / mutation.file
        faulty = path.read_text(encoding="utf-8")
        write(path, (ROOT / "secateur" / mutation.file).read_text(encoding="utf-8"))
        try:
            return not self._run(command)[0]
        finally:
            write(path, faulty)

    @contextmanager
    def _planted(self, mutation: Mutation) -> Iterator[None]:
        path = self._folder / "secateur" / mutation.file
        right = path.read_text(encoding="utf-8")
        write(path, mutation.planted_in(right))
        try:
            yield
        finally:
            write(path, right)

    def _run(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in the copy; its exit code and output."""
        environment = {**os.environ, "PYTHONPATH": str(self._folder)}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                code = process.wait(_STAGE_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            output.seek(0)
            return code, output.read()


def write(path: Path, source: str) -> None:
    """Write a source so that Python compiles it again: what it has compiled it knows by the size and the second."""
    path.write_text(source, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


def commands(mutation: Mutation, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The stages in their order, each with its command."""
    choice = chosen([f"secateur/{mutation.file}"])
    own = {f"tests/unit/{room}" for room in choice.touched}
    above = [path for path in choice.paths if path.removeprefix("tests/unit/") in choice.above]
    about = [path for path in choice.paths if path not in own and path not in above and path not in ALWAYS]
    exported = _EXPORTED.search((ROOT / "secateur" / mutation.file).read_text(encoding="utf-8"))
    names = re.compile("|".join(rf"\b{name}\b" for name in re.findall(r"\w+", exported[1] if exported else "")) or "$^")
    files = sorted(path for room in own for path in (folder / room).rglob("test_*.py"))
    files.sort(key=lambda path: names.search(path.read_text(encoding="utf-8")) is None)
    smoke = [path for path in sorted((folder / "tests/system").rglob("test_*.py")) if is_smoke(path)]
    seed = str(time.time_ns() % 10**6)
    alone = ("--workers=1", f"--seed={seed}")
    if files:
        yield "room", pytest("not slow", *(str(path.relative_to(folder)) for path in files))
    yield "about it", pytest("not slow", *about)
    yield "always", pytest("not slow", *ALWAYS)
    yield "smoke", pytest("smoke", *(str(path.relative_to(folder)) for path in smoke))
    if above:
        yield "above", pytest("not slow", *above)
    yield "statements", [sys.executable, "tests/property/placed_run.py", f"--statements={STATEMENTS}", *alone]
    yield "simulation", [sys.executable, "tests/simulation/run.py", f"--seeds={SIMULATED}", *alone]
    yield WHOLE, pytest("not slow", "secateur", "tests")


def pytest(marked: str, *paths: str) -> list[str]:
    """Run tests up to the first that fails; the one that looks for the texts of the faults would find all of them."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "--ignore=tests/unit/test_mutations.py", "-m", marked]
    return [
        sys.executable,
        "-m",
        "pytest",
        *options,
        *(path for path in paths if path != "tests/unit/test_mutations.py"),
    ]


if __name__ == "__main__":
    sys.exit(main())
