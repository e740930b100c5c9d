"""Four clients under load while members are killed and frozen, connections are reset and the controller is killed, at
random, with a seed.

``python tests/faults/mixed_load.py --seconds 180 --seed 7`` prints each fault as it happens, then what the clients met,
and ends with ``N passed, N failed``.

Members are Ray actors in processes of their own: they are killed with SIGKILL and frozen with SIGSTOP, and connections
are reset in the kernel (``ss -K``, which needs root on Linux; without it that fault is left out, and the report says
so). No more members are lost than the tables have backups, so at every moment a healthy copy of each row exists: a call
may be slow while a loss is noticed, but none may take longer than ``CALL_S_MAX``, and none may be wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa

import secateur
from ledger import Ledger
from secateur.cluster import Cluster
from workload import ACCOUNTS, BALANCE, CLIENTS, COUNTERS, FIXED_ROWS, KEYS, Call

BACKUPS = 2
CALL_S_MAX = 10.0
FROZEN_S = 20.0
GRACE_S = 120.0
MEMBERS = 4
PARTITIONS = 53


@dataclass(frozen=True)
class Outcome:
    """What a run showed.

    Attributes:
        calls: How many calls all clients made.
        wrong: A sentence for each lost, wrong, stale or partial answer.
        slow: A sentence for each call over ``CALL_S_MAX``.
        longest: A sentence for each of the longest calls that had an answer.
        errors: Calls that failed, counted by kind and text.
        faults: What was done, when (seconds since the start).
        unfinished: Clients that did not end.
    """

    calls: int
    wrong: list[str]
    slow: list[str]
    longest: list[str]
    errors: Counter[tuple[str, str]]
    faults: list[tuple[float, str]]
    unfinished: int

    @property
    def is_clean(self) -> bool:
        return not (self.wrong or self.slow or self.unfinished)


class Faults:
    """The processes of a cluster, and what is done to them."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._members = {member.id: _process_of(member.address) for member in cluster.members()}
        self._ports = [member.address.rsplit(":", 1)[1] for member in cluster.members()] + [
            cluster.address.rsplit(":", 1)[1]
        ]
        self._controller = _process_of(cluster.address)
        self._random = random.Random(f"{seed} faults")
        self._losses_left = BACKUPS
        self._frozen: tuple[str, float] | None = None
        self.started_s = time.monotonic()
        self.done: list[tuple[float, str]] = []

    def kill_member(self) -> None:
        if self._losses_left:
            self._losses_left -= 1
            self._note(f"kill -9 {(member := self._take())[0]}")
            os.kill(member[1], signal.SIGKILL)

    def freeze_member(self) -> None:
        if self._losses_left and self._frozen is None:
            self._losses_left -= 1  # silent for so long, it is given up and its rows are lost
            name, pid = self._take()
            self._note(f"SIGSTOP {name}")
            os.kill(pid, signal.SIGSTOP)
            self._frozen = (f"{name} {pid}", time.monotonic() + FROZEN_S)

    def reset_connections(self) -> None:
        """All connections to one member or to the controller break at once; both ends notice."""
        port = self._random.choice(self._ports)
        self._note(f"reset all connections to port {port}")
        subprocess.run(["ss", "-K", "dst", "127.0.0.1", "dport", "=", port], check=False, capture_output=True)

    def kill_controller(self) -> None:
        self._note("kill -9 controller")
        os.kill(self._controller, signal.SIGKILL)

    def thaw(self, *, now: bool = False) -> None:
        if self._frozen is not None and (now or time.monotonic() >= self._frozen[1]):
            name, pid = self._frozen[0].split()
            self._note(f"SIGCONT {name}")
            os.kill(int(pid), signal.SIGCONT)
            self._frozen = None

    @property
    def is_thawing(self) -> bool:
        """Whether a member is frozen that will be continued."""
        return self._frozen is not None

    def in_turn(self, kinds: list[Callable[[], None]]) -> Iterator[Callable[[], None]]:
        """Every kind of fault once in a random order, then again and again."""
        while True:
            yield from self._random.sample(kinds, len(kinds))

    def pause_s(self, at_least: float, at_most: float) -> float:
        return self._random.uniform(at_least, at_most)

    def _take(self) -> tuple[str, int]:
        name = self._random.choice(sorted(self._members))
        return name, self._members.pop(name)

    def _note(self, what: str) -> None:
        at = time.monotonic() - self.started_s
        self.done.append((at, what))
        print(f"{at:7.1f} s  {what}", flush=True)


def run(seconds: float, seed: int, *, with_controller: bool) -> Outcome:
    """Run the load for some seconds with faults chosen by a seed.

    Args:
        seconds: How long the clients ask; they then read everything back.
        seed: Chooses faults, their moments, and the calls of each client. Times are real, so a run is similar, not
            equal.
        with_controller: Whether the controller is killed in the last quarter. After that, new texts, loads and changes
            of several partitions may fail, and are not counted as slow.
    """
    folder = Path(tempfile.mkdtemp(prefix="secateur-faults-"))
    try:
        with secateur.start(members=MEMBERS, runtime="ray") as cluster:
            _create_tables(cluster)
            for name, keys in (("register", KEYS), ("counter", COUNTERS)):
                Ledger(folder / name, keys, create=True)
            faults = Faults(cluster, seed)
            clients = _start_clients(cluster, folder, seconds, seed)
            _hurt(faults, seconds, with_controller=with_controller)
            unfinished = _wait(clients)
            faults.thaw(now=True)
            return _outcome(folder, faults, unfinished)
    finally:
        shutil.rmtree(folder)


def _create_tables(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        for name, columns, key, hashed in (
            ("register", "id BIGINT, v BIGINT, p VARCHAR", "id", "id"),
            ("counter", "id BIGINT, n BIGINT", "id", "id"),
            ("account", "id BIGINT, amount BIGINT", "id", "id"),
            ("batches", "batch BIGINT, n BIGINT", "batch, n", "n"),
            ("fixed", "id BIGINT", "id", "id"),
        ):
            conn.execute(
                f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key})) PARTITION BY HASH ({hashed}) PARTITIONS"
                f" {PARTITIONS} BACKUPS {BACKUPS}"
            )
        conn.table("counter").load(pa.table({"id": range(COUNTERS), "n": [0] * COUNTERS}))
        conn.table("account").load(pa.table({"id": range(ACCOUNTS), "amount": [BALANCE] * ACCOUNTS}))
        conn.table("fixed").load(pa.table({"id": range(FIXED_ROWS)}))


def _start_clients(cluster: Cluster, folder: Path, seconds: float, seed: int) -> list[subprocess.Popen[bytes]]:
    environment = os.environ | {
        "SECATEUR_ADDRESS": cluster.address,
        "SECATEUR_TOKEN": getattr(cluster, "token", None) or "",
    }
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(secateur.__file__).parents[1]), environment.get("PYTHONPATH", "")])
    )
    program = str(Path(__file__).with_name("workload.py"))
    return [
        subprocess.Popen([sys.executable, program, str(folder), str(number), str(seconds), str(seed)], env=environment)
        for number in range(CLIENTS)
    ]


def _hurt(faults: Faults, seconds: float, *, with_controller: bool) -> None:
    """Faults at random moments, the first after a calm beginning, none in the last tenth.

    In a minute there is one of each kind.
    """
    kinds = [faults.kill_member, faults.freeze_member, faults.reset_connections, faults.reset_connections]
    if shutil.which("ss") is None or os.geteuid() != 0:
        print("connections are not reset: that needs root and ss", flush=True)
        kinds = kinds[:2]
    controller_at = 0.75 * seconds if with_controller else float("inf")
    following, choices = min(6.0, seconds / 5), faults.in_turn(kinds)
    while (now := time.monotonic() - faults.started_s) < 0.9 * seconds:
        faults.thaw()
        if now >= controller_at:
            controller_at = float("inf")
            faults.kill_controller()
        if now >= following:
            next(choices)()
            following = now + faults.pause_s(5, 15)
        time.sleep(0.05)
    while faults.is_thawing:
        faults.thaw()
        time.sleep(0.05)


def _wait(clients: list[subprocess.Popen[bytes]]) -> int:
    until = time.monotonic() + GRACE_S
    unfinished = 0
    for client in clients:
        try:
            client.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            unfinished += 1
            client.kill()
            client.wait()
    return unfinished


def _outcome(folder: Path, faults: Faults, unfinished: int) -> Outcome:
    reports = [json.loads(file.read_text()) for file in sorted(folder.glob("report-*.json"))]
    calls = [Call(**call) for report in reports for call in report["calls"]]
    killed_s = next((at for at, what in faults.done if what == "kill -9 controller"), float("inf"))
    epoch_s = time.time() - (time.monotonic() - faults.started_s)
    free = {"new text", "load", "transfer", "total", "count", "count batches"}

    def told(call: Call) -> str:
        return f"{call.kind} at {call.began_s - epoch_s:.1f} s took {call.took_s:.1f} s {call.error}".rstrip()

    slow = [
        told(call)
        for call in calls
        if call.took_s > CALL_S_MAX and not (call.kind in free and call.began_s + call.took_s - epoch_s > killed_s)
    ]
    return Outcome(
        calls=len(calls),
        wrong=[sentence for report in reports for sentence in report["wrong"]],
        slow=slow,
        longest=[told(call) for call in sorted(calls, key=lambda call: -call.took_s) if not call.error][:8],
        errors=Counter((call.kind, call.error) for call in calls if call.error),
        faults=faults.done,
        unfinished=unfinished + CLIENTS - len(reports) if len(reports) + unfinished < CLIENTS else unfinished,
    )


def _process_of(address: str) -> int:
    port = int(address.rsplit(":", 1)[1])
    return next(
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    parser.add_argument("--without-controller", action="store_true", help="leave the controller alive")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    outcome = run(arguments.seconds, arguments.seed, with_controller=not arguments.without_controller)
    print(f"{outcome.calls} calls, {outcome.errors.total()} failed, {len(outcome.faults)} faults")
    for (kind, error), count in outcome.errors.most_common(20):
        print(f"  {count:5} x {kind}: {error}")
    print("longest calls:")
    for sentence in outcome.longest:
        print(f"  {sentence}")
    for sentence in (*outcome.slow, *outcome.wrong):
        print(f"BAD {sentence}")
    bad = len(outcome.wrong) + len(outcome.slow) + outcome.unfinished
    print(f"{outcome.calls - bad} passed, {bad} failed")
    sys.exit(0 if outcome.is_clean else 1)


if __name__ == "__main__":
    main()
