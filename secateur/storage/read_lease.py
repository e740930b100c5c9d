"""The read lease: until when a member may answer for its partitions without asking the controller.

The cluster removes a member that was silent for too long, and others serve its partitions from then on. The member may
still be alive: it was suspended for a while, or the network between it and the controller failed. Every read therefore
checks the clock: after the end of its lease a member answers nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

from secateur.errors import TopologyChangedError

lease_clock_s: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
"""Seconds that only grow, also while the machine is suspended, where the platform has such a clock."""


class ReadLease:
    """The end of the lease of one member.

    The thread that renews it sets it, and the event loop that answers reads it. It never ends if it is never set.

    Attributes:
        clock: As above.
        until_s: The moment, on that clock, from which the member does not answer any more.
    """

    __slots__ = ("clock", "until_s")

    def __init__(self, clock: Callable[[], float] = lease_clock_s) -> None:
        self.clock = clock
        self.until_s = math.inf

    @property
    def is_valid(self) -> bool:
        """Whether the member may answer now."""
        return self.clock() < self.until_s

    def check(self) -> None:
        """Refuse to answer after the end of the lease. Costs a fifth of a microsecond.

        Raises:
            TopologyChangedError: The lease has ended; ``details`` has ``lease_ended``. Nothing was done.
        """
        if self.clock() >= self.until_s:
            raise TopologyChangedError(
                "this member has received nothing from its cluster for longer than its lease, so other"
                " members may own its partitions by now: nothing was done. Fetch the owners again, and"
                " retry",
                lease_ended=True,
            )
