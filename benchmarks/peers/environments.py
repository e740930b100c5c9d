"""Where a peer's libraries come from: a Python environment or jars of its own below ``build/peers``.

pip and Maven fetch from wherever the machine has configured them to. What is there already is kept, while the pins are
the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

__all__ = ["HERE", "Jars", "NotAvailableError", "Venv", "java_argv"]

HERE: Final = Path(__file__).parents[2]
_JAVA: Final = Path(__file__).with_name("java")
_INSTALL_S: Final = 900.0
_SHARED_SOURCES: Final = ("Json.java", "CallLoop.java")
# What both peers' documents ask for on Java 17.
_OPENED: Final = (
    "java.base/jdk.internal.access",
    "java.base/jdk.internal.misc",
    "java.base/sun.nio.ch",
    "java.base/sun.util.calendar",
    "java.management/com.sun.jmx.mbeanserver",
    "jdk.internal.jvmstat/sun.jvmstat.monitor",
    "java.base/sun.reflect.generics.reflectiveObjects",
    "jdk.management/com.sun.management.internal",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.net",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.locks",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.math",
    "java.sql/java.sql",
    "java.base/java.time",
    "java.base/java.text",
    "java.management/sun.management",
)


class NotAvailableError(Exception):
    """A peer cannot be installed on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class Venv:
    """A Python environment with these requirements.

    Attributes:
        name: Its folder below ``build/peers``.
        requirements: As pip reads them; pinned.
    """

    name: str
    requirements: tuple[str, ...]

    def python(self, below: Path) -> Path:
        """The interpreter; the environment is made if it is not there.

        Raises:
            NotAvailableError: pip could not install the requirements.
        """
        folder = below / self.name / "venv"
        python = folder / "bin" / "python"
        stamp, wanted = folder / "installed", "\n".join(self.requirements)
        if not (stamp.exists() and stamp.read_text() == wanted):
            shutil.rmtree(folder, ignore_errors=True)
            log = below / self.name / "install.log"
            _run([sys.executable, "-m", "venv", str(folder)], log)
            _run([str(python), "-m", "pip", "install", "--disable-pip-version-check", *self.requirements], log)
            stamp.write_text(wanted)
        return python


@dataclass(frozen=True, slots=True)
class Jars:
    """Jars by their coordinates, with what they depend on, and our Java files compiled against them.

    Attributes:
        name: Their folder below ``build/peers``.
        coordinates: As ``group:artifact:version``.
        sources: Files of the folder ``java``.
    """

    name: str
    coordinates: tuple[str, ...]
    sources: tuple[str, ...]

    def classpath(self, below: Path) -> str:
        """The class path; jars are fetched and sources compiled if they are not there.

        Raises:
            NotAvailableError: There is no JDK or no Maven, or one of them failed.
        """
        for tool, why in (("javac", "a JDK of 17 or later"), ("mvn", "Maven")):
            if shutil.which(tool) is None:
                raise NotAvailableError(f"{tool} is not on PATH: install {why}")
        folder = below / self.name
        jars, classes, log = folder / "jars", folder / "classes", folder / "install.log"
        stamp, wanted = jars / "fetched", "\n".join(self.coordinates)
        if not (stamp.exists() and stamp.read_text() == wanted):
            shutil.rmtree(jars, ignore_errors=True)
            jars.mkdir(parents=True)
            (folder / "pom.xml").write_text(_pom(self.coordinates))
            copying = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
            _run(["mvn", "--batch-mode", "--quiet", "--file", str(folder / "pom.xml"), *copying], log)
            stamp.write_text(wanted)
        shutil.rmtree(classes, ignore_errors=True)
        files = [str(_JAVA / source) for source in (*_SHARED_SOURCES, *self.sources)]
        _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), *files], log)
        return f"{classes}{os.pathsep}{jars}/*"


def java_argv(classpath: str, heap: str, main: str, *arguments: str, properties: Sequence[str] = ()) -> list[str]:
    """A command that runs a Java class in at most so much heap, at UTC and on the loopback interface."""
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    given = [f"-D{one}" for one in ("user.timezone=UTC", "java.net.preferIPv4Stack=true", *properties)]
    return ["java", f"-Xmx{heap}", "-XX:+UseG1GC", *opened, *given, "-cp", classpath, main, *arguments]


def _pom(coordinates: Sequence[str]) -> str:
    dependencies = ""
    for one in coordinates:
        group, artifact, version = (escape(part) for part in one.split(":"))
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>benchmarks</groupId><artifactId>peer</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )


def _run(command: Sequence[str], log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, timeout=_INSTALL_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotAvailableError(f"{Path(command[0]).name} did not finish: {error}") from error
    if done.returncode:
        raise NotAvailableError(f"{Path(command[0]).name} failed with {done.returncode}; see {log}")
