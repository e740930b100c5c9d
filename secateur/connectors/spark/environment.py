"""The environment of our data source: the Python of Spark's workers, and the session that looks the source up.

PySpark starts its workers with ``PYSPARK_PYTHON``, or with the first ``python3`` in the path, which is often not the
interpreter of the calling process. Where Spark runs on this machine we know the right one; on a cluster only its owner
does, and :mod:`~secateur.connectors.spark.failures` explains the mistake.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import secateur

_SESSION_CLASS: Final = "org.apache.spark.sql.classic.SparkSession"


@contextmanager
def this_environment(spark: SparkSession) -> Iterator[None]:
    """While open, anything registered with a local Spark runs in this interpreter, with this secateur.

    Functions that the user registers are not affected.

    Does nothing when Spark does not run on this machine, and for Spark Connect, whose server is elsewhere.
    """
    context = getattr(spark, "_sc", None)
    if context is None or not context.master.startswith("local"):
        yield
        return
    python, environment = context.pythonExec, dict(context.environment)
    context.pythonExec = sys.executable
    root = str(Path(secateur.__file__).parent.parent)
    if root not in site.getsitepackages():
        # a worker finds an installed secateur, but not one that this process imports from its working
        # directory
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    try:
        yield
    finally:
        context.pythonExec = python
        context.environment.clear()
        context.environment.update(environment)


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread, as ``createDataFrame`` does too.

    Spark looks data sources up in the active session, not in that of the DataFrame: a thread that Spark did not start
    has none, and of several sessions another may be active. Spark Connect has no such state.
    """
    if runs_beside_us(spark):
        getattr(spark._jvm, _SESSION_CLASS).setActiveSession(spark._jsparkSession)


def runs_beside_us(spark: SparkSession) -> bool:
    """Whether Spark's driver is on this machine and is not a Spark Connect server."""
    return getattr(spark, "_jvm", None) is not None


def is_known_format(spark: SparkSession, name: str) -> bool:
    """Whether a session finds the Python data source of a format; False for Spark Connect, which does not tell.

    The first call of a Spark looks through its Python modules, as the first use of a format would.
    """
    return runs_beside_us(spark) and bool(
        spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(name)
    )
