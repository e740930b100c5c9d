"""``secateur doctor``: what this machine has of what secateur needs, and what to do about the rest."""

from __future__ import annotations

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
from secateur.cli import clusters
from secateur.cli.clusters import AsJson, ClusterName, KnownCluster, located, typed
from secateur.cli.rendering import print_records
from secateur.dependencies import DEPENDENCIES
from secateur.errors import Error
from secateur.native import OFF, native_module

_PYTHON_MIN: Final = (3, 11)
_JAVA_MIN: Final = 17
_MEMORY_MIN: Final = 2 << 30


@dataclass(frozen=True, slots=True)
class _Finding:
    """One thing that was looked at.

    ``state`` is ``ok``, ``untested`` (newer than what was tested), ``missing`` (something does not work without it) or
    ``broken`` (nothing does).
    """

    what: str
    state: str
    found: str
    tested: str = ""
    advice: str = ""


def doctor(name: ClusterName = None, as_json: AsJson = False) -> None:
    """Look at Python, libraries, Java, memory, loopback and clusters of this machine, and say what to do.

    The exit code is 1 if something is broken; what is missing is needed only for what its line says. Of libraries, the
    newest version that secateur was tested with stands beside the installed one. With --name, only that cluster is
    looked at.

    For example:

        secateur doctor
    """
    known = clusters.running() if name is None else [located(name)]
    findings = [finding for check in _CHECKS for finding in check()] + [_cluster(cluster) for cluster in known]
    print_records([asdict(finding) for finding in findings], as_json=as_json, empty="")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)


def _python() -> Iterator[_Finding]:
    version = platform.python_version()
    if sys.version_info < _PYTHON_MIN:
        yield _Finding("python", "broken", version, advice="secateur needs Python 3.11 or later")
    else:
        yield _Finding("python", "ok", version)
    yield _Finding("secateur", "ok", secateur.__version__)


def _libraries() -> Iterator[_Finding]:
    for library in DEPENDENCIES:
        installed, state, advice = library.installed, "ok", ""
        if library.is_older_than(installed):
            state, advice = "untested", f'pip install "{library.name}=={library.tested}"'
        elif installed is None and library.extra is None:
            state, advice = "broken", "pip install --force-reinstall secateur"
        elif installed is None:
            state, advice = "missing", f'pip install "secateur[{library.extra}]"'
        yield _Finding(library.name, state, installed or "not installed", library.tested, advice)


def _java() -> Iterator[_Finding]:
    java = shutil.which("java")
    if java is None:
        yield _Finding("java", "missing", "not on PATH", advice="Spark needs Java 17 or later; nothing else does")
        return
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    found = re.search(r'version "([0-9]+)', said)
    if found is None or int(found[1]) < _JAVA_MIN:
        yield _Finding("java", "missing", said.partition("\n")[0] or java, advice="Spark needs Java 17 or later")
    else:
        yield _Finding("java", "ok", found[1])


def _machine() -> Iterator[_Finding]:
    yield _Finding("cores", "ok", str(os.cpu_count() or "unknown"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < _MEMORY_MIN:
        advice = "Ray and three members need about 2 GiB"
        yield _Finding("memory", "missing", f"{memory / (1 << 30):.1f} GiB", advice=advice)
    else:
        yield _Finding("memory", "ok", f"{memory / (1 << 30):.1f} GiB")


def _loopback() -> Iterator[_Finding]:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        advice = "clusters listen on 127.0.0.1: look at firewall and sandbox"
        yield _Finding("loopback", "broken", str(error), advice=advice)
    else:
        yield _Finding("loopback", "ok", "127.0.0.1 listens")


def _cluster(cluster: KnownCluster) -> _Finding:
    what = f"cluster {cluster.name}"
    try:
        with secateur.connect(cluster.address, cluster.token, connect_timeout_s=3, tls=cluster.tls) as connection:
            members = connection.execute("SELECT count(*) FROM secateur.members WHERE state = 'active'").fetchone()
    except Error as error:
        log = "" if cluster.pid is None else f"read {clusters.log_of(cluster.name)}; "
        return _Finding(what, "missing", error.message, advice=f"{log}{typed('stop', cluster.name)} ends it")
    return _Finding(what, "ok", f"{cluster.address}, {members[0] if members else 0} members")


def _native() -> Iterator[_Finding]:
    if os.environ.get("SECATEUR_NATIVE") == OFF:
        yield _Finding("secateur-native", "ok", "switched off by SECATEUR_NATIVE=0: short statements run in Python")
    elif native_module() is None:
        advice = 'pip install "secateur[native]" answers short statements in less time; nothing needs it'
        yield _Finding("secateur-native", "missing", "not installed", advice=advice)
    else:
        yield _Finding("secateur-native", "ok", "answers short statements")


_CHECKS: Final[tuple[Callable[[], Iterator[_Finding]], ...]] = (
    _python,
    _libraries,
    _native,
    _java,
    _machine,
    _loopback,
)
