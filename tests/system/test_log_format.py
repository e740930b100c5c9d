"""``log_format="json"``: every line of secateur on standard error is an object, whoever writes it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import secateur
from secateur.cli.app import app
from secateur.errors import ProgrammingError

CODE = """
import logging, secateur
with secateur.start(members=1, runtime="embedded", log_format="json", slow_statement_s=0) as cluster:
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        conn.execute("SELECT * FROM t WHERE k = 7").fetchall()
logging.getLogger("of.user").warning("as before")
"""


def test_lines_of_a_cluster_are_objects() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    *ours, theirs = done.stderr.splitlines()
    assert theirs == "as before"
    found = [json.loads(line) for line in ours]
    (slow,) = (line for line in found if line["logger"] == "secateur.slow_statements")
    assert slow["message"] == "slow statement"
    assert slow["fields"]["statement"] == "SELECT * FROM t WHERE k = 7"
    assert slow["fields"]["id"].startswith("m1:")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ProgrammingError, match="'text', 'json'"):
        secateur.start(members=1, runtime="embedded", log_format="xml")  # type: ignore[arg-type]
    for command in (["start"], ["dashboard"]):
        refused = CliRunner().invoke(app, [*command, "--log-format", "xml"])
        assert refused.exit_code == 2
        assert "'text', 'json'" in refused.output
