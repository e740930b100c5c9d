"""Runs seeds of the simulation, each in a process of its own.

``python tests/simulation/run.py --seeds 2000`` ends with ``N passed, N failed``; for each seed that fails it says why
and how to run it again. ``--seed 17`` alone runs one seed and says what happened.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import signal
import sys
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any, Final

_SEED_S_MAX: Final = 120.0
_HASH_SEED: Final = "0"


def main() -> int:
    parser = argparse.ArgumentParser(description="Deterministic simulation of a cluster.")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="seeds that run at the same time")
    parser.add_argument(
        "--plant", default="", help="a fault of the product that is to be found; see plants.py; all: each in its turn"
    )
    parser.add_argument("--focus", action="store_true", help="only seeds that are about the plant's kind of trouble")
    parser.add_argument("--without-backups", action="store_true", help="tables without backups; no process dies")
    parser.add_argument("--until-failure", action="store_true", help="end at the first seed that fails")
    parser.add_argument("--log", default="", help="a file for every event, to compare two runs of one seed")
    parser.add_argument("--json", action="store_true", help="print each outcome as a line of JSON")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:  # the order of sets is part of a seed
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    _load(arguments.log)
    if arguments.plant == "all":
        return _find_all(arguments.seed, arguments.seeds, arguments.workers, is_focused=arguments.focus)
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    begun_s = monotonic()
    passed, failed, calls = 0, 0, 0
    errors: Counter[str] = Counter()
    options = {"without_backups": arguments.without_backups}
    for outcome in _outcomes(
        iter(seeds), arguments.workers, options, plant=arguments.plant, is_focused=arguments.focus
    ):
        calls += outcome["calls"]
        errors.update(outcome["errors"])
        if arguments.json:
            print(json.dumps(outcome), flush=True)
        elif outcome["wrong"] or arguments.seeds == 1:
            _tell(outcome)
        passed, failed = passed + (not outcome["wrong"]), failed + bool(outcome["wrong"])
        if failed and arguments.until_failure:
            break
    seconds = monotonic() - begun_s
    print(f"{calls} calls, {sum(errors.values())} of them failed; {(passed + failed) / seconds:.1f} seeds a second")
    for error, count in sorted(errors.items()):
        print(f"  {count:6} {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _find_all(first: int, seeds: int, workers: int, *, is_focused: bool) -> int:
    """Find each plant; prints for each the seed that does, and what it says."""
    from plants import PLANTS

    missed = 0
    for plant in PLANTS:
        found = None
        for outcome in _outcomes(iter(range(first, first + seeds)), workers, {}, plant=plant, is_focused=is_focused):
            if outcome["wrong"]:
                found = outcome
                break
        missed += found is None
        print(json.dumps({"plant": plant, "seed": found and found["seed"], "wrong": found and found["wrong"][0]}))
    print(f"{len(PLANTS) - missed} found, {missed} missed", flush=True)
    return 1 if missed else 0


def _load(log: str) -> None:
    """Put the virtual machine under this process, and load everything that seeds need."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import operating_system

    operating_system.install()
    import logging

    import pyarrow as pa

    pa.set_cpu_count(1)
    logging.disable(logging.CRITICAL)
    from machine import Machine

    Machine("loading")
    import world

    world.install()
    for name in _lazily_loaded():
        importlib.import_module(name)
    import plants  # noqa: F401
    from texts import remember_texts
    from warm_up import warm_up

    remember_texts()
    warm_up()
    if log:
        Machine.log = Path(log).open("w")  # noqa: SIM115 -- it is written to until the process ends


def _lazily_loaded() -> list[str]:
    import secateur

    root = Path(secateur.__file__).parent
    names = []
    for folder in ("client", "engine", "planner", "storage", "cluster", "partitioning", "protocol", "wire"):
        for path in sorted((root / folder).rglob("*.py")):
            name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
            if not name.endswith(".ray"):
                names.append(name.removesuffix(".__init__"))
    return names


def _outcomes(seeds: Any, workers: int, options: dict[str, bool], *, plant: str = "", is_focused: bool = False) -> Any:
    """Fork a process for each seed, so that no seed sees what another has left."""
    running: dict[int, tuple[int, int, float, bytearray]] = {}
    try:
        while True:
            while len(running) < workers and (seed := next(seeds, None)) is not None:
                reading, child = _begin(seed, options, plant, is_focused=is_focused)
                running[reading] = (seed, child, monotonic(), bytearray())
            if not running:
                return
            readable, _, _ = select.select(list(running), [], [], 1.0)
            for reading in readable:
                seed, child, _, received = running[reading]
                if data := os.read(reading, 1 << 16):
                    received += data
                    continue
                os.close(reading)
                os.waitpid(child, 0)
                del running[reading]
                yield json.loads(received) if received else _lost(seed, "the process has ended without a word")
            for reading, (seed, child, begun_s, _) in list(running.items()):
                if monotonic() - begun_s > _SEED_S_MAX:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    os.close(reading)
                    del running[reading]
                    yield _lost(seed, f"the seed has not ended within {_SEED_S_MAX:g} s")
    finally:
        for reading, (_, child, _, _) in running.items():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)


def _begin(seed: int, options: dict[str, bool], plant: str, *, is_focused: bool) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return reading, child
    os.close(reading)
    try:
        import gc
        import traceback

        gc.disable()
        from machine import Machine
        from plants import FOUND_BY, PLANTS
        from scenario import run

        try:
            if plant:
                PLANTS[plant]()
            outcome = run(seed, **options, leaning=FOUND_BY[plant] if is_focused else None).to_dict()
            if Machine.log is not None:
                Machine.log.flush()
        except BaseException:
            outcome = _lost(seed, traceback.format_exc())
        data = json.dumps(outcome).encode()
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _lost(seed: int, why: str) -> dict[str, Any]:
    return {
        "seed": seed,
        "wrong": [why],
        "trace": "",
        "calls": 0,
        "errors": {},
        "faults": [],
        "longest_s": 0.0,
        "steps": 0,
    }


def _tell(outcome: dict[str, Any]) -> None:
    print(f"seed {outcome['seed']}, trace {outcome['trace']}, {outcome['steps']} steps, {outcome['calls']} calls")
    for line in (*outcome["faults"], *(f"WRONG {sentence}" for sentence in outcome["wrong"])):
        print(f"  {line}")
    if outcome["wrong"]:
        print(f"  again: make simulate SEED={outcome['seed']} SEEDS=1", flush=True)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what Python does at its end waits for threads, which are virtual here
