"""Four clients under load while members are killed and frozen, connections are reset and the controller is killed, with
a seed.

``python tests/faults/mixed_load.py --seconds 300 --seed 7`` prints each fault as it happens, then what the clients met,
and ends with ``N passed, N failed``.

Members are Ray actors in processes of their own: they are killed with SIGKILL and frozen with SIGSTOP, and connections
are reset in the kernel (``ss -K``, which needs root on Linux; without it that fault is left out, and the report says
so). A member that dies is replaced, and its copies are made again. A member is hurt only while one more loss leaves a
copy of every row, so a call may be slow while a loss is noticed, but none may take longer than ``CALL_S_MAX``, and none
may be wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import psutil
import pyarrow as pa

import secateur
from ledger import Ledger
from secateur.cluster import Cluster
from secateur.errors import Error
from workload import ACCOUNTS, BALANCE, CLIENTS, COUNTERS, FIXED_ROWS, KEYS, Call

BACKUPS = 2
CALL_S_MAX = 10.0
FROZEN_S = 20.0
GRACE_S = 120.0
MEMBERS = 4
PARTITIONS = 53

KINDS: Final = ("kill", "freeze", "reset", "controller")
_LEAST_COPIES: Final = "SELECT max(copies_missing) FROM secateur.partitions"


@dataclass(frozen=True)
class Plan:
    """What is done to a cluster, and when.

    Attributes:
        kinds: Kinds of faults; each comes once in a random order, then again and again.
        every_s: Seconds between two faults, at least and at most.
        controller_kills: How often the controller is killed, at even intervals, besides.
        fsync: When acknowledged writes are on disk; None for a cluster without a data directory.
    """

    kinds: Sequence[str] = ("kill", "freeze", "reset", "reset")
    every_s: tuple[float, float] = (5.0, 15.0)
    controller_kills: int = 2
    fsync: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run showed.

    Attributes:
        calls: How many calls all clients made.
        wrong: A sentence for each lost, wrong, stale or partial answer.
        slow: A sentence for each call over ``CALL_S_MAX``.
        longest: A sentence for each of the longest calls that had an answer.
        errors: Calls that failed, counted by kind and text.
        not_retryable: Those of them that no retry may follow.
        faults: What was done, when (seconds since the start).
        unavailable_s: For each fault and each key that was asked for in the time until the next, the longest time
            without an answer, in seconds.
        unfinished: Clients that did not end.
    """

    calls: int
    wrong: list[str]
    slow: list[str]
    longest: list[str]
    errors: Counter[tuple[str, str]]
    not_retryable: list[str]
    faults: list[tuple[float, str]]
    unavailable_s: list[float]
    unfinished: int

    @property
    def is_clean(self) -> bool:
        return not (self.wrong or self.slow or self.not_retryable or self.unfinished)

    def unavailability(self, percentile: float) -> float:
        """A percentile of :attr:`unavailable_s`, in seconds."""
        return float(np.percentile(self.unavailable_s, percentile)) if self.unavailable_s else 0.0


@dataclass
class Frozen:
    """A process that is stopped, and when it goes on."""

    process: int
    name: str
    until_s: float
    is_over: bool = field(default=False)


class Faults:
    """The processes of a cluster, and what is done to them."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._controller_port = cluster.address.rsplit(":", 1)[1]
        self._random = random.Random(f"{seed} faults")
        self._frozen: Frozen | None = None
        self.started_s = time.monotonic()
        self.done: list[tuple[float, str]] = []
        self.left_out = 0

    def do(self, kind: str) -> None:
        """Do one fault, unless it would take the last copy of a row."""
        match kind:
            case "kill":
                if (member := self._member_to_lose()) is not None:
                    self._note(f"kill -9 {member[0]}")
                    os.kill(member[1], signal.SIGKILL)
            case "freeze":
                if self._frozen is None and (member := self._member_to_lose()) is not None:
                    self._note(f"SIGSTOP {member[0]}")
                    os.kill(member[1], signal.SIGSTOP)
                    self._frozen = Frozen(member[1], member[0], time.monotonic() + FROZEN_S)
            case "reset":
                port = self._random.choice([*self._ports(), self._controller_port])
                self._note(f"reset all connections to port {port}")
                subprocess.run(["ss", "-K", "dst", "127.0.0.1", "dport", "=", port], check=False, capture_output=True)
            case "controller":
                if (process := _process_at(self._controller_port)) is not None:
                    self._note("kill -9 controller")
                    os.kill(process, signal.SIGKILL)
            case _:
                raise ValueError(kind)

    def thaw(self, *, now: bool = False) -> None:
        """Let a frozen member go on when its time has come."""
        frozen = self._frozen
        if frozen is not None and (now or time.monotonic() >= frozen.until_s):
            self._note(f"SIGCONT {frozen.name}")
            os.kill(frozen.process, signal.SIGCONT)
            self._frozen = None

    @property
    def is_thawing(self) -> bool:
        """Whether a member is frozen that will be continued."""
        return self._frozen is not None

    def in_turn(self, kinds: Sequence[str]) -> Iterator[str]:
        """Every kind of fault once in a random order, then again and again."""
        while True:
            yield from self._random.sample(kinds, len(kinds))

    def pause_s(self, at_least: float, at_most: float) -> float:
        return self._random.uniform(at_least, at_most)

    def _member_to_lose(self) -> tuple[str, int] | None:
        """A member and its process, if one more loss leaves a copy of every row; the frozen one counts as lost."""
        try:
            with self._cluster.connect() as conn:
                ((missing,),) = conn.execute(_LEAST_COPIES).fetchall()
            members = [member for member in self._cluster.members() if member.is_alive]
        except Error as error:
            self._leave_out(f"the cluster does not tell which copies it has: {error}")
            return None
        processes = {member.id: _process_at(member.address.rsplit(":", 1)[1]) for member in members}
        living = {
            name: process
            for name, process in processes.items()
            if process is not None and (self._frozen is None or process != self._frozen.process)
        }
        frozen_and_counted = self._frozen is not None and self._frozen.name in processes
        if missing + frozen_and_counted >= BACKUPS or not living:
            self._leave_out(f"{missing} copies of a partition are missing")
            return None
        name = self._random.choice(sorted(living))
        return name, living[name]

    def _ports(self) -> list[str]:
        try:
            return [member.address.rsplit(":", 1)[1] for member in self._cluster.members() if member.is_alive]
        except Error:
            return []

    def _leave_out(self, why: str) -> None:
        self.left_out += 1
        print(f"{time.monotonic() - self.started_s:7.1f} s  no member is hurt now: {why}", flush=True)

    def _note(self, what: str) -> None:
        at = time.monotonic() - self.started_s
        self.done.append((at, what))
        print(f"{at:7.1f} s  {what}", flush=True)


def run(seconds: float, seed: int, plan: Plan) -> Outcome:
    """Run the load for some seconds with faults chosen by a seed.

    Args:
        seconds: How long the clients ask; they then read everything back.
        seed: Chooses faults, their moments, and the calls of each client. Times are real, so a run is similar, not
            equal.
        plan: The faults.
    """
    folder = Path(tempfile.mkdtemp(prefix="secateur-faults-"))
    try:
        on_disk = {} if plan.fsync is None else {"data_directory": str(folder / "data"), "fsync": plan.fsync}
        with secateur.start(
            members=MEMBERS, runtime="ray", member_silence_s=1.5, start_timeout_s=300.0, **on_disk
        ) as cluster:
            _create_tables(cluster)
            for name, keys in (("register", KEYS), ("counter", COUNTERS)):
                Ledger(folder / name, keys, create=True)
            faults = Faults(cluster, seed)
            clients = _start_clients(cluster, folder, seconds, seed)
            try:
                _hurt(faults, seconds, plan)
                unfinished = _wait(clients)
            finally:
                faults.thaw(now=True)
                for client in clients:
                    client.kill()
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


def _hurt(faults: Faults, seconds: float, plan: Plan) -> None:
    """Faults after a calm beginning, none in the last tenth."""
    kinds = list(plan.kinds)
    if "reset" in kinds and (shutil.which("ss") is None or os.geteuid() != 0):
        print("connections are not reset: that needs root and ss", flush=True)
        kinds = [kind for kind in kinds if kind != "reset"]
    kills = [seconds * (turn + 1) / (plan.controller_kills + 1) for turn in range(plan.controller_kills)]
    following, choices = min(6.0, seconds / 5), faults.in_turn(kinds)
    while (now := time.monotonic() - faults.started_s) < 0.9 * seconds:
        faults.thaw()
        if kills and now >= kills[0]:
            kills.pop(0)
            faults.do("controller")
        if now >= following:
            faults.do(next(choices))
            following = max(now, following + faults.pause_s(*plan.every_s))
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
    epoch_s = time.time() - (time.monotonic() - faults.started_s)

    def told(call: Call) -> str:
        return f"{call.kind} at {call.began_s - epoch_s:.1f} s took {call.took_s:.1f} s {call.error}".rstrip()

    return Outcome(
        calls=len(calls),
        wrong=[sentence for report in reports for sentence in report["wrong"]],
        slow=[told(call) for call in calls if call.took_s > CALL_S_MAX],
        longest=[told(call) for call in sorted(calls, key=lambda call: -call.took_s) if not call.error][:8],
        errors=Counter((call.kind, call.error) for call in calls if call.error),
        not_retryable=[told(call) for call in calls if "retry_safe=False" in call.error],
        faults=faults.done,
        unavailable_s=_unavailable(calls, [epoch_s + at for at, _ in faults.done]),
        unfinished=unfinished + CLIENTS - len(reports) if len(reports) + unfinished < CLIENTS else unfinished,
    )


def _unavailable(calls: list[Call], faults_s: Sequence[float]) -> list[float]:
    """The longest time without an answer, of each key after each fault: that of one call, or of several that failed."""
    by_key: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.key:
            by_key[call.key].append(call)
    found = []
    for of_key in by_key.values():
        of_key.sort(key=lambda call: call.began_s)
        waits: list[tuple[float, float]] = []  # when it began to be asked for, and when it was answered
        asked_s: float | None = None
        for call in of_key:
            asked_s = call.began_s if asked_s is None else asked_s
            if not call.error:
                waits.append((asked_s, call.began_s + call.took_s))
                asked_s = None
        for begin_s, end_s in itertools.pairwise([*faults_s, float("inf")]):
            after = [end - max(start, begin_s) for start, end in waits if end > begin_s and start < end_s]
            if after:
                found.append(max(after))
    return found


def _process_at(port: str) -> int | None:
    """The process that listens at a port of this machine; None when there is none."""
    return next(
        (
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == int(port)
        ),
        None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=Plan.kinds, help="kinds of faults, in turn")
    parser.add_argument("--every", type=float, help="seconds between two faults; by default 5 to 15")
    parser.add_argument("--controller-kills", type=int, default=Plan.controller_kills)
    parser.add_argument("--fsync", choices=("always", "interval", "off"), help="with a data directory")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    every_s = Plan.every_s if arguments.every is None else (arguments.every, arguments.every)
    outcome = run(
        arguments.seconds,
        arguments.seed,
        Plan(tuple(arguments.kinds), every_s, arguments.controller_kills, arguments.fsync),
    )
    print(f"{outcome.calls} calls, {outcome.errors.total()} failed, {len(outcome.faults)} faults")
    for (kind, error), count in outcome.errors.most_common(20):
        print(f"  {count:5} x {kind}: {error}")
    print("longest calls:")
    for sentence in outcome.longest:
        print(f"  {sentence}")
    shares = ", ".join(
        f"p{percentile:g} {outcome.unavailability(percentile):.2f} s" for percentile in (50, 90, 99, 100)
    )
    print(f"a key without an answer after a fault: {shares}")
    for sentence in (*outcome.slow, *outcome.not_retryable, *outcome.wrong):
        print(f"BAD {sentence}")
    bad = len(outcome.wrong) + len(outcome.slow) + len(outcome.not_retryable) + outcome.unfinished
    print(f"{outcome.calls - bad} passed, {bad} failed")
    sys.exit(0 if outcome.is_clean else 1)


if __name__ == "__main__":
    main()
