"""A process whose threads do at once what users do, each for the first time; ends with 0 if all answers are right.

Then it forks while its threads rest, and while they go on: each child uses the connection of its parent. Its argument
is JSON with the fields of :class:`Plan`.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Final, NoReturn

from public_uses import USES, User, prepare

import secateur

HANGS_S: Final = 200
"""A process that takes so long writes where its threads are, and ends."""
WARM: Final = ("look_up_by_key", "look_up_by_a_computed_key", "get_and_put", "explain", "execute_many", "make_mistakes")
"""What threads go on with while the process is forked: nothing that imports, or that a library locks for long. A fork
in the middle of that leaves locks behind that are not secateur's.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a process does.

    Attributes:
        folder: For files.
        seed: Decides the order.
        address: Of the cluster that it uses; empty: it starts two at once.
        token: The secret of that.
        url: Of its HTTP server.
        threads: How many there are.
        shares: Whether they share one connection; otherwise each begins with one of its own.
        together: How many uses all threads do in the same order; 0 spreads all uses over the threads.
        rounds: How often each thread does all uses then.
        forks: How many children are forked while threads rest, and again while they work.
        spawns: How many children of multiprocessing begin anew meanwhile.
        uses: The names of the uses; none for all.
    """

    folder: str
    seed: int
    address: str = ""
    token: str = ""
    url: str = ""
    threads: int = 8
    shares: bool = False
    together: int = 0
    rounds: int = 0
    forks: int = 0
    spawns: int = 0
    uses: tuple[str, ...] = ()


class Process:
    """Carries a plan out."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self._names = list(plan.uses or USES)
        self._chance.shuffle(self._names)
        self._failures: list[str] = []
        self._places = [(plan.address, plan.token, plan.url)] if plan.address else []
        self._stops: list[Callable[[], None]] = []
        self._shared: secateur.Connection | None = None

    def run(self) -> int:
        """Returns what the process ends with."""
        plan = self._plan
        sys.setswitchinterval(10 ** self._chance.uniform(-6, -4))
        if not self._places:
            self._at_once([self._start] * 2)
        if plan.shares:
            self._shared = self._connected()
        parts = [self._names[: plan.together] or self._names[at :: plan.threads] for at in range(plan.threads)]
        self._at_once([partial(self._do, names) for names in parts])
        sys.setswitchinterval(10 ** self._chance.uniform(-5, -3))
        if plan.rounds:
            self._at_once([partial(self._do, self._shuffled(plan.rounds)) for _ in range(plan.threads)])
        for _ in range(plan.forks):
            names = [name for name in self._names if "polars" not in name]  # its threads are not in the child
            self._fork(self._chance.sample(names, min(4, len(names))), ends=not self._stops)
        if plan.forks:
            warm = [partial(self._do, self._chance.sample(WARM, 3)) for _ in range(plan.threads)]
            self._at_once(warm, self._have_children)
        for stop in self._stops:
            stop()
        print("\n".join(self._failures), file=sys.stderr, flush=True)
        return len(self._failures) > 0

    def _shuffled(self, rounds: int) -> list[str]:
        names = self._names * rounds
        self._chance.shuffle(names)
        return names

    def _have_children(self) -> None:
        again = replace(self._plan, seed=self._plan.seed + 1, threads=4, together=3, uses=WARM, forks=0, spawns=0)
        spawned = [get_context("spawn").Process(target=run, args=(again,)) for _ in range(self._plan.spawns)]
        for process in spawned:
            process.start()
        for _ in range(self._plan.forks):
            self._fork(self._chance.sample(WARM, 2))
        for process in spawned:
            process.join()
            if process.exitcode:
                self._failures.append(f"a child of multiprocessing ended with {process.exitcode}")

    def _start(self) -> None:
        from secateur.server import HttpServer

        cluster = secateur.start(members=2, runtime="embedded", member_silence_s=10.0)
        with cluster.connect() as conn:
            prepare(conn)
        server = HttpServer(cluster.address, cluster.token)
        server.start()
        self._stops += [server.stop, cluster.stop]
        self._places.append((cluster.address, cluster.token or "", server.url))

    def _connected(self, place: int = 0) -> secateur.Connection:
        address, token, _ = self._places[place]
        return secateur.connect(address, token)

    def _at_once(self, parts: Sequence[Callable[[], None]], meanwhile: Callable[[], object] = int) -> None:
        """Have threads do their parts, beginning at the same moment."""
        barrier = threading.Barrier(len(parts) + 1)

        def work(part: Callable[[], None]) -> None:
            barrier.wait()
            try:
                part()
            except BaseException:
                self._failures.append(traceback.format_exc())

        threads = [threading.Thread(target=work, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        barrier.wait()
        meanwhile()
        for thread in threads:
            thread.join()

    def _do(self, names: Sequence[str]) -> None:
        at = threading.get_ident() // 4096 % len(self._places)
        address, token, url = self._places[0 if self._shared else at]
        conn = self._shared or self._connected(at)
        user = User(conn, self._plan.folder, url, address, token)
        for name in names:
            try:
                USES[name](user)
            except BaseException:
                self._failures.append(f"{name}: {traceback.format_exc()}")
        if self._shared is None:
            conn.close()

    def _fork(self, names: Sequence[str], *, ends: bool = False) -> None:
        """Have a child do something; it ``ends`` as a program does, or at once, as those of multiprocessing."""
        sys.stderr.flush()
        child = os.fork()
        if child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code:
                self._failures.append(f"a child that did {names} and {ends=} ended with {code}")
            return
        signal.alarm(HANGS_S // 2)
        self._failures.clear()
        self._do(names)
        if self._failures:
            print("\n".join(self._failures), file=sys.stderr, flush=True)
        code = len(self._failures) > 0
        if ends:
            sys.exit(code)
        os._exit(code)


def run(plan: Plan) -> NoReturn:
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(HANGS_S)
    sys.exit(Process(plan).run())


if __name__ == "__main__":
    run(Plan(**json.loads(sys.argv[1])))
