"""Processes whose threads use everything for the first time at once, and go on after forks: right answers, no crash.

Each is a process of its own, with a switch interval of microseconds and an order decided by its seed.
``SECATEUR_FIRST_USES_SECONDS`` says for how long the slow test goes on with other seeds.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest
from first_uses import Plan
from public_uses import prepare

import secateur
from secateur.server import HttpServer

PROGRAM: Final = Path(__file__).with_name("first_uses.py")
SECONDS: Final = float(os.environ.get("SECATEUR_FIRST_USES_SECONDS", "60"))
QUICK: Final[Mapping[str, Mapping[str, Any]]] = {
    "one connection, and forks": {"shares": True, "together": 5, "forks": 2, "spawns": 1},
    "clusters of its own": {"address": "", "together": 5},
}
LONG: Final[Mapping[str, Mapping[str, Any]]] = {
    **QUICK,
    "a connection each": {},
    "the same uses": {"together": 5},
    "the same uses, and forks": {"together": 5, "forks": 3, "spawns": 1},
    "one connection": {"shares": True, "threads": 16},
    "one connection, many rounds": {"shares": True, "threads": 12, "together": 5, "rounds": 3},
    "clusters of its own, and forks": {"address": "", "shares": True, "together": 5, "forks": 2},
}
"""What processes do, by name."""


@pytest.fixture(scope="module")
def place() -> Iterator[dict[str, str]]:
    with (
        secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as cluster,
        cluster.connect() as conn,
        HttpServer(cluster.address, cluster.token) as server,
    ):
        prepare(conn)
        yield {"address": cluster.address, "token": cluster.token or "", "url": server.url}


@pytest.mark.parametrize("kind", list(QUICK))
def test_first_uses_by_threads(place: dict[str, str], tmp_path: Path, kind: str) -> None:
    run_process(place, tmp_path, kind, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
def test_first_uses_forks_and_threads_for_long(place: dict[str, str], tmp_path: Path) -> None:
    first, end_s = random.SystemRandom().randrange(1 << 30), time.monotonic() + SECONDS
    turns = zip(itertools.count(first), itertools.cycle(LONG))

    def go_on(_: int) -> int:
        done = 0
        while time.monotonic() < end_s:
            seed, kind = next(turns)
            run_process(place, tmp_path, kind, seed)
            done += 1
        return done

    with ThreadPoolExecutor(2) as pool:
        print(sum(pool.map(go_on, range(2))), "processes from seed", first)


def run_process(place: dict[str, str], folder: Path, kind: str, seed: int) -> None:
    plan = Plan(**{"folder": str(folder), "seed": seed, **place, **LONG[kind]})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), json.dumps(asdict(plan))],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{kind}, seed {seed}, ended with {done.returncode}:\n{done.stderr}"
