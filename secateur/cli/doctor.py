"""``secateur doctor``: what this machine has of what secateur needs, and what to do about the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import typer

import secateur
from secateur.cli import local_clusters
from secateur.cli.failures import failing_with_a_message
from secateur.cli.options import AsJson
from secateur.cli.rendering import print_records
from secateur.errors import Error

__all__ = ["doctor"]

_PYTHON_MIN: Final = (3, 11)
_JAVA_MIN: Final = 17
_MEMORY_MIN: Final = 2 << 30
_LIBRARIES: Final = {  # library -> the extra that installs it; None for what secateur itself needs
    "pyarrow": None,
    "duckdb": None,
    "sqlglot": None,
    "ray": "ray",
    "pyspark": "spark",
    "uvloop": "fast",
    "fastapi": "server",
}


@dataclass(frozen=True, slots=True)
class _Finding:
    """One thing that was looked at.

    ``state`` is ``ok``, ``missing`` (something does not work without it) or ``broken`` (nothing does).
    """

    what: str
    state: str
    found: str
    advice: str = ""


@failing_with_a_message
def doctor(as_json: AsJson = False) -> None:
    """Look at Python, libraries, Java, memory, loopback and clusters of this machine, and say what to do.

    The exit code is 1 if something is broken; what is missing is needed only for what its line says.

    For example:

        secateur doctor
    """
    findings = [finding for check in _CHECKS for finding in check()]
    print_records([asdict(finding) for finding in findings], as_json=as_json, empty="")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)


def _python() -> Iterator[_Finding]:
    version = platform.python_version()
    if sys.version_info < _PYTHON_MIN:
        yield _Finding("python", "broken", version, "secateur needs Python 3.11 or later")
    else:
        yield _Finding("python", "ok", version)
    yield _Finding("secateur", "ok", secateur.__version__)


def _libraries() -> Iterator[_Finding]:
    for library, extra in _LIBRARIES.items():
        try:
            yield _Finding(library, "ok", importlib.metadata.version(library))
        except importlib.metadata.PackageNotFoundError:
            if extra is None:
                yield _Finding(library, "broken", "not installed", "pip install --force-reinstall secateur")
            else:
                yield _Finding(library, "missing", "not installed", f'pip install "secateur[{extra}]"')


def _java() -> Iterator[_Finding]:
    java = shutil.which("java")
    if java is None:
        yield _Finding("java", "missing", "not on PATH", "Spark needs Java 17 or later; nothing else does")
        return
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    found = re.search(r'version "([0-9]+)', said)
    if found is None or int(found[1]) < _JAVA_MIN:
        yield _Finding("java", "missing", said.partition("\n")[0] or java, "Spark needs Java 17 or later")
    else:
        yield _Finding("java", "ok", found[1])


def _machine() -> Iterator[_Finding]:
    yield _Finding("cores", "ok", str(os.cpu_count() or "unknown"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < _MEMORY_MIN:
        yield _Finding("memory", "missing", f"{memory / (1 << 30):.1f} GiB", "Ray and three members need about 2 GiB")
    else:
        yield _Finding("memory", "ok", f"{memory / (1 << 30):.1f} GiB")


def _loopback() -> Iterator[_Finding]:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        yield _Finding("loopback", "broken", str(error), "clusters listen on 127.0.0.1: look at firewall and sandbox")
    else:
        yield _Finding("loopback", "ok", "127.0.0.1 listens")


def _clusters() -> Iterator[_Finding]:
    for cluster in local_clusters.running():
        what = f"cluster {cluster.name}"
        try:
            with secateur.connect(cluster.address, cluster.token, connect_timeout_s=3, tls=cluster.tls) as connection:
                members = connection.execute("SELECT count(*) FROM secateur.members WHERE state = 'active'").fetchone()
        except Error as error:
            yield _Finding(what, "missing", error.message, f"read {local_clusters.log_of(cluster.name)}")
        else:
            yield _Finding(what, "ok", f"{cluster.address}, {members[0] if members else 0} members")


_CHECKS: Final[tuple[Callable[[], Iterator[_Finding]], ...]] = (
    _python,
    _libraries,
    _java,
    _machine,
    _loopback,
    _clusters,
)
