"""The records of the suites: JSON files of measurements and their conditions, and bars, which are promised ratios."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["Bar", "print_bars", "with_byte_code", "write_record"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio that was promised.

    Attributes:
        what: Candidate against control.
        ratio: Measured in this run.
        bound: The promise, in words.
        met: Whether the ratio keeps it.
    """

    what: str
    ratio: float
    bound: str
    met: bool

    @classmethod
    def at_most(cls, what: str, ratio: float, bound: float) -> Bar:
        return cls(what, ratio, f"at most {bound:g}", ratio <= bound)

    @classmethod
    def at_least(cls, what: str, ratio: float, bound: float) -> Bar:
        return cls(what, ratio, f"at least {bound:g}", ratio >= bound)


def write_record(
    path: Path, suite: str, libraries: Sequence[str], measured: dict[str, Any], bars: Sequence[Bar]
) -> None:
    """Write everything that was measured, with what it was measured on and with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "suite": suite,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "versions": {name: version(name) for name in libraries},
        **measured,
        "bars": [asdict(bar) for bar in bars],
    }
    path.write_text(json.dumps(record, indent=2) + "\n")


def print_bars(bars: Sequence[Bar]) -> None:
    """One line for each bar."""
    for bar in bars:
        print(f"{'met' if bar.met else 'MISSED'}: {bar.what} is {bar.ratio:.2f}, {bar.bound}")


def with_byte_code() -> None:
    """Let the processes that this one starts keep byte code, as an installed package has it.

    Otherwise, where ``PYTHONDONTWRITEBYTECODE`` is set, each worker of Spark compiles every file that it loads.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
