from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import secateur
from secateur.connectors.spark.environment import this_environment

ROOT = str(Path(secateur.__file__).parent.parent)


def session(master: str, python: str, **environment: str) -> SimpleNamespace:
    return SimpleNamespace(_sc=SimpleNamespace(master=master, pythonExec=python, environment=environment))


@pytest.mark.parametrize("master", ["local", "local[2]", "local-cluster[2,1,1024]"])
def test_local_workers_run_here_while_registering(master: str) -> None:
    spark = session(master, "python4", A="1", PYTHONPATH="/user/lib")
    with this_environment(spark):
        assert spark._sc.pythonExec == sys.executable
        assert spark._sc.environment["A"] == "1"
        assert spark._sc.environment["PYTHONPATH"] == os.pathsep.join((ROOT, "/user/lib"))
    assert spark._sc.pythonExec == "python4"
    assert spark._sc.environment == {"A": "1", "PYTHONPATH": "/user/lib"}


def test_what_was_there_comes_back_after_an_exception() -> None:
    spark = session("local", "python4")
    with pytest.raises(ZeroDivisionError), this_environment(spark):
        raise ZeroDivisionError
    assert (spark._sc.pythonExec, spark._sc.environment) == ("python4", {})


def test_an_installed_secateur_needs_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("site.getsitepackages", lambda: [ROOT])
    spark = session("local", "python4")
    with this_environment(spark):
        assert spark._sc.environment == {}


@pytest.mark.parametrize("spark", [session("yarn", "python4"), SimpleNamespace()], ids=["cluster", "connect"])
def test_workers_elsewhere_are_left_alone(spark: SimpleNamespace) -> None:
    with this_environment(spark):
        assert spark == spark.__class__(**vars(spark))
        assert getattr(spark, "_sc", SimpleNamespace(pythonExec="python4")).pythonExec == "python4"
