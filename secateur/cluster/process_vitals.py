"""Asks the operating system for the processor time and the resident memory of this process."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_STATM: Final = Path("/proc/self/statm")


class ProcessVitals(NamedTuple):
    """The processor time and memory that a process takes.

    Attributes:
        process_id: Its number on its machine.
        cpu_s: Seconds of processor time of all of its threads since it began.
        resident_bytes: Bytes of its memory that are resident; None where the operating system does not say so.
    """

    process_id: int
    cpu_s: float
    resident_bytes: int | None


def process_vitals() -> ProcessVitals:
    """Look at this process. Costs ten microseconds."""
    resident_bytes = None
    with suppress(OSError):  # Linux has it
        resident_bytes = int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return ProcessVitals(os.getpid(), time.process_time(), resident_bytes)
