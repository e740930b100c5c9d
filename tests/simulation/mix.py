"""What a seed is about: which cluster, which faults, what clients do, and for how long.

Half of the seeds are a swarm: each has a few of the groups of tables, a random part of the kinds of faults and, for
each client, of the calls. What is left out does not get in the way of the rest: a call that mends what another has
broken, or a fault that ends what another one needs, hides whole classes of errors from runs that have everything; and
among few kinds of calls and faults the same two meet again and again, in many orders. Such a run also has fewer tables
to create, to move and to read back. Some seeds have everything all the same, because an error may need four things at
one time. The others lean towards one kind of trouble that is rare elsewhere.

Source: A. Groce, C. Zhang, E. Eide, Y. Chen, J. Regehr, "Swarm testing", ISSTA 2012.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from clients import GROUPS, PAUSE_S

__all__ = ["LEANINGS", "Leaning", "Mix"]

_LEANING_SHARE: Final = 0.35
"""Of seeds that are about one kind of trouble."""
_EVERYTHING_SHARE: Final = 0.15
"""Of seeds that have every group of tables."""
_GROUPS_MAX: Final = 3
"""How many the others have at most."""
_FAULT_SHARES: Final = (0.25, 0.5)
"""How many of the kinds of faults there are."""
_DURABLE_SHARE: Final = 0.35
_CARELESS_SHARE: Final = 0.15
_SCALE_SHARE: Final = 0.15
"""Of seeds that are not about one kind of trouble, those in which the owner scales the cluster."""
_SCALE_PAUSE_S: Final = 4.0
_CANCELLED_SHARES: Final = (0.0, 0.0, 0.0, 0.15)
"""Of calls, those that clients end early."""
_FAULTS_S: Final = (2.0, 3.0, 4.0, 8.0)
"""How long faults go on: short runs find more in the same time, and some need long ones."""


@dataclass(frozen=True)
class Leaning:
    """One kind of trouble.

    Attributes:
        groups: The groups of tables that there are, by name.
        faults: The faults that happen, by name.
        calls: What clients do, by name, beside reading a row.
        is_durable: Whether members have disks.
        is_split: Whether all clients are about one key, and members are cut off with one of them again and again: only
            there it is likely that a client asks a member that was replaced for a row that others have changed.
        scales_without_backups: Whether tables have no backups, and the owner scales the cluster all the time.
        pause_s: How long a client rests between two calls, on average.
        cancelled_share: How many calls clients end early.
        faults_s: How long faults go on.
        weight: How many seeds lean that way, in proportion to others.
    """

    groups: tuple[str, ...] = ("registers", "counters")
    faults: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    is_durable: bool = False
    is_split: bool = False
    scales_without_backups: bool = False
    pause_s: float = PAUSE_S
    cancelled_share: float = 0.0
    faults_s: float = 5.0
    weight: int = 1


LEANINGS: Final[dict[str, Leaning]] = {
    "splits": Leaning(("registers",), is_split=True, faults_s=8.0, weight=2),
    "machines": Leaning(faults=("isolate_and_lose",), calls=("upsert", "increment"), pause_s=0.03),
    "kills": Leaning(faults=("kill_member",), calls=("upsert", "increment")),
    "loads": Leaning(("registers", "state", "batches"), ("kill_member",), ("load_batch", "load_state", "read_state")),
    "answers": Leaning(faults=("lose_answers",), calls=("increment",)),
    "power": Leaning(faults=("lose_power",), calls=("upsert", "increment"), is_durable=True),
    "leaving": Leaning(faults=("kill_controller",), calls=("upsert", "increment"), scales_without_backups=True),
    "distances": Leaning(("replicated",), ("slow",), ("upsert", "get"), pause_s=0.03),
    "cancellations": Leaning(("registers", "counters", "accounts", "state", "batches"), cancelled_share=0.4),
    "alterations": Leaning(
        ("altered",),
        ("kill_member", "kill_controller"),
        ("alter", "increment", "increment_on_conflict", "read_all"),
    ),
    "altered_disks": Leaning(
        ("altered",),
        ("kill_member", "kill_controller", "lose_power", "disk"),
        ("alter", "increment", "increment_on_conflict", "read_all"),
        is_durable=True,
        pause_s=0.03,
    ),
    "creations": Leaning(("registers", "definitions"), ("reset",), ("create_table",), scales_without_backups=True),
}
"""The kinds of trouble, by name."""


@dataclass(frozen=True)
class Mix:
    """What one run is made of.

    Attributes:
        leaning: The kind of trouble that it is about, if any.
        groups: The groups of tables that there are, by name.
        fault_share: How many of the kinds of faults happen.
        is_durable: Whether members have disks.
        backups: Of all tables.
        kills: Whether processes die.
        is_careless: Whether more members may be lost than there are backups.
        scale_pause_s: The longest rest of the owner between two changes of the number of members; None for no change.
        faults_s: How long faults go on.
        cancelled_share: How many calls clients end early.
    """

    leaning: Leaning | None
    groups: tuple[str, ...]
    fault_share: float
    is_durable: bool
    backups: int
    kills: bool
    is_careless: bool
    scale_pause_s: float | None
    faults_s: float
    cancelled_share: float

    @staticmethod
    def of(seed: int, *, leaning: str | None = None, without_backups: bool = False) -> Mix:
        """Draw one.

        Args:
            seed: The seed.
            leaning: The kind of trouble, by name; None to draw it as well.
            without_backups: Whether members have the only copies, and no process dies.
        """
        draw = random.Random(f"{seed} mix")
        backups = draw.choice((1, 1, 2))
        if leaning is None and not without_backups and draw.random() < _LEANING_SHARE:
            (leaning,) = draw.choices(list(LEANINGS), [leaning.weight for leaning in LEANINGS.values()])
        if leaning is not None:
            about = LEANINGS[leaning]
            is_alone = about.scales_without_backups
            return Mix(
                leaning=about,
                groups=about.groups,
                fault_share=1.0,
                is_durable=about.is_durable or draw.random() < _DURABLE_SHARE,
                backups=0 if is_alone else backups,
                kills=True,
                is_careless=False,
                scale_pause_s=0.5 if is_alone else None,
                faults_s=about.faults_s,
                cancelled_share=about.cancelled_share,
            )
        count = (
            len(GROUPS) if draw.random() < _EVERYTHING_SHARE / (1 - _LEANING_SHARE) else draw.randint(1, _GROUPS_MAX)
        )
        chosen = draw.sample(GROUPS, count)
        return Mix(
            leaning=None,
            groups=tuple(name for name in GROUPS if name in chosen),
            fault_share=draw.choice(_FAULT_SHARES),
            is_durable=not without_backups and draw.random() < _DURABLE_SHARE,
            backups=0 if without_backups else backups,
            kills=not without_backups,
            is_careless=without_backups or draw.random() < _CARELESS_SHARE,
            scale_pause_s=_SCALE_PAUSE_S if draw.random() < _SCALE_SHARE else None,
            faults_s=draw.choice(_FAULTS_S),
            cancelled_share=draw.choice(_CANCELLED_SHARES),
        )
