"""Files into tables: the command ``secateur load``, ``TableHandle.load`` and COPY, which read them alike."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import secateur
from secateur.cli.app import app
from secateur.cluster import Cluster
from secateur.errors import DataError, DuplicateKeyError, NullKeyError, ParameterError, UnknownTableError

Run = Callable[..., Result]
COLUMNS = "id BIGINT PRIMARY KEY, amount DECIMAL(10,2), d DATE, s VARCHAR"


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("SECATEUR_ADDRESS", cluster.address)
    monkeypatch.setenv("SECATEUR_TOKEN", cluster.token or "")
    monkeypatch.setenv("SECATEUR_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def running(*words: str, exit_code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == exit_code, (result.output, result.exception)
        return result

    return running


@pytest.fixture
def table(conn: secateur.Connection, table_name: str) -> secateur.TableHandle:
    conn.execute(f"CREATE TABLE {table_name} ({COLUMNS}) PARTITION BY HASH (id) PARTITIONS 3")
    return conn.table(table_name)


def rows(conn: secateur.Connection, table: secateur.TableHandle | str) -> list[tuple[Any, ...]]:
    return conn.execute(f"FROM {getattr(table, 'name', table)} ORDER BY id").fetchall()


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("DECIMAL(38,10)", "12345678901234567.01", Decimal("12345678901234567.01")),
        ("VARCHAR", "1.10", "1.10"),
        ("VARCHAR", "00501", "00501"),
        ("VARCHAR", "01/02/2025", "01/02/2025"),
        ("HUGEINT", "123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
@pytest.mark.smoke
def test_values_are_read_by_the_types_of_the_table_as_copy_reads_them(
    run: Run, conn: secateur.Connection, table_name: str, type_: str, text: str, expected: Any
) -> None:
    Path("a.csv").write_text(f"id,v\n1,{text}\n")
    names = [f"{table_name}_{way}" for way in ("command", "python", "copy")]
    for name in names:
        conn.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v {type_})")
    assert "1 row" in run("load", "a.csv", "--table", names[0]).stderr
    assert conn.table(names[1]).load("a.csv") == 1
    conn.execute(f"COPY {names[2]} FROM '{Path('a.csv').absolute()}'")
    assert [rows(conn, name) for name in names] == [[(1, expected)]] * 3


EUROPEAN = "id;amount;d;s\n1;12.50;31/12/2025;ü\n2;100;01/02/2025;NA\n3;;;''\n"
OPTIONS = {"delimiter": ";", "null": "NA", "date_format": "%d/%m/%Y", "encoding": "latin-1", "quote": "'"}
WORDS = [word for name, value in OPTIONS.items() for word in (f"--{name.replace('_', '-')}", value)]
LOADED = [
    (1, Decimal("12.50"), dt.date(2025, 12, 31), "ü"),
    (2, Decimal("100.00"), dt.date(2025, 2, 1), None),
    (3, None, None, ""),
]


def test_every_option_holds_for_a_table_that_is_there(
    run: Run, conn: secateur.Connection, table: secateur.TableHandle
) -> None:
    Path("a.csv").write_bytes(EUROPEAN.encode("latin-1"))
    run("load", "a.csv", "--table", table.name, *WORDS)
    assert rows(conn, table) == LOADED
    assert table.load("a.csv", "overwrite", **OPTIONS) == 3
    assert rows(conn, table) == LOADED
    text = EUROPEAN.partition("\n")[2]
    Path("b.csv").write_bytes(text.encode("latin-1"))
    words = ["--no-header", "--columns", "id, amount DECIMAL(5,1), d, s", "--mode", "overwrite"]
    run("load", "b.csv", "--table", table.name, *WORDS, *words)
    assert rows(conn, table) == LOADED


def test_every_option_holds_for_a_table_that_is_created(run: Run, conn: secateur.Connection, table_name: str) -> None:
    Path("a.csv").write_bytes(EUROPEAN.encode("latin-1"))
    words = ["load", "a.csv", "--table", table_name, "--create", "--primary-key", "id", *WORDS]
    statement = (
        f'CREATE TABLE "{table_name}" ("id" BIGINT NOT NULL, "amount" DECIMAL(18,2), "d" DATE, "s" VARCHAR,'
        ' PRIMARY KEY ("id"))'
    )
    told = run(*words, "--dry-run")
    assert told.stdout == f"{statement};\n"
    assert told.stderr == (
        "a.csv: 3 rows of id BIGINT, amount DECIMAL(18,2), d DATE, s VARCHAR\n"
        f"3 rows would be loaded into {table_name}\n"
    )
    assert json.loads(run(*words, "--dry-run", "--json").stdout) == {
        "table": table_name,
        "rows": 3,
        "create": statement,
        "dry_run": True,
    }
    with pytest.raises(UnknownTableError):
        conn.table(table_name)
    run(*words, "--columns", "id INTEGER, amount DECIMAL(10,2)")
    assert rows(conn, table_name) == LOADED
    assert conn.table(table_name).schema.field("id").type == pa.int32()


def test_a_table_that_is_created_has_no_guessed_dates(run: Run, conn: secateur.Connection, table_name: str) -> None:
    Path("a.csv").write_text("id,d\n1,01/02/2025\n2,03/04/2025\n")
    told = run("load", "a.csv", "--table", table_name, "--create", "--primary-key", "id")
    assert "a.csv: column d has dates as texts: say which part is the day" in told.stderr
    assert "--date-format" in told.stderr
    assert rows(conn, table_name) == [(1, "01/02/2025"), (2, "03/04/2025")]


def test_a_dry_run_reads_everything_and_loads_nothing(
    run: Run, conn: secateur.Connection, table: secateur.TableHandle
) -> None:
    Path("a.csv").write_text("id,amount,d,s\n1,2,2025-01-01,x\n")
    Path("b.csv").write_text("id,amount,d,s\n1,2,2025-01-01,x\n2,2.555,2025-01-01,x\n")
    told = run("load", "a.csv", "--table", table.name, "--dry-run").stderr
    assert "a.csv: 1 row of id BIGINT, amount DECIMAL(10,2), d DATE, s VARCHAR" in told
    told = run("load", "a.csv", "b.csv", "--table", table.name, "--dry-run", exit_code=1).stderr
    assert "DataError: b.csv:3:3: column amount: '2.555' is no DECIMAL(10,2)" in told
    assert rows(conn, table) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "n.csv",
            "id,amount,d,s\n1,2.5,,\n2,abc,,\n",
            "DataError: n.csv:3:3: column amount: 'abc' is no DECIMAL(10,2)",
        ),
        ("k.csv", "amount,id,d,s\n1,1,,\n,,,\n", "NullKeyError: k.csv:3:2: table "),
        ("n.json", '{"id":1,"amount":"x","d":null,"s":""}', "DataError: n.json:1:18: column amount: 'x' is no DECIMAL"),
        ("k.json", '[{"id":1},\n {"id": null}]', "NullKeyError: k.json:2:9: table "),
        ("l.csv", "id,amount\n1,2\n", "DataError: l.csv: table "),
        ("u.csv", "id,amonut\n1,2\n", "UnknownColumnError: u.csv:1:4: the table has no column 'amonut'"),
    ],
)
def test_errors_have_the_file_the_line_the_column_and_the_value(
    run: Run, conn: secateur.Connection, table: secateur.TableHandle, name: str, text: str, message: str
) -> None:
    Path(name).write_text(text)
    missing = ["--missing", "null"] if name == "k.json" else []
    told = run("load", name, "--table", table.name, *missing, exit_code=1).stderr
    assert told.startswith(message)
    assert told.count("\n") == 1
    assert rows(conn, table) == []


def test_errors_of_parquet_name_the_file_and_the_row(
    run: Run, conn: secateur.Connection, table: secateur.TableHandle
) -> None:
    data = pa.table({"id": range(3), "amount": ["1", "2", "x"], "d": pa.nulls(3), "s": ["", "", ""]})
    pq.write_table(data, "a.parquet")
    told = run("load", "a.parquet", "--table", table.name, exit_code=1).stderr
    assert told.startswith("DataError: a.parquet: column amount, row 3: 'x'")
    with pytest.raises(DataError, match=r"a.parquet: column amount, row 3"):
        table.load("a.parquet")


def test_columns_that_a_file_lacks(run: Run, conn: secateur.Connection, table: secateur.TableHandle) -> None:
    table.load([{"id": 1, "amount": 5, "d": dt.date(2025, 1, 1), "s": "x"}])
    Path("a.csv").write_text("s,id\ny,1\n")
    words = ["load", "a.csv", "--table", table.name, "--mode"]
    assert (
        "lack amount, d: give the columns, or pass missing='null' (--missing null)"
        in run(*words, "overwrite", exit_code=1).stderr
    )
    run(*words, "upsert")
    assert rows(conn, table) == [(1, Decimal("5.00"), dt.date(2025, 1, 1), "y")]
    run(*words, "upsert", "--missing", "null")
    assert rows(conn, table) == [(1, None, None, "y")]
    run(*words, "upsert", "--missing", "zero", exit_code=2)


def test_objects_that_lack_what_others_have(run: Run, conn: secateur.Connection, table: secateur.TableHandle) -> None:
    table.load([{"id": 1, "amount": 5, "d": None, "s": "x"}])
    Path("a.json").write_text('{"id": 2, "s": "y"}\n{"id": 1}\n')
    told = run("load", "a.json", "--table", table.name, "--mode", "upsert", exit_code=1).stderr
    assert told.startswith("DataError: a.json:2:1: the object lacks 's', which others have")
    with pytest.raises(DataError, match=r"a.json:2:1: the object lacks 's'"):
        table.load("a.json", "upsert")
    table.load("a.json", "upsert", missing="null")
    assert rows(conn, table) == [(1, None, None, None), (2, None, None, "y")]


def test_options_of_files_are_for_files(table: secateur.TableHandle) -> None:
    with pytest.raises(ParameterError, match="delimiter: for the path of a file"):
        table.load({"id": [1]}, delimiter=";")


def test_a_load_of_a_file_is_all_or_nothing(
    conn: secateur.Connection, table: secateur.TableHandle, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,amount,d,s\n" + "".join(f"{number},,,x\n" for number in range(70_000)) + "x,,,\n")
    with pytest.raises(DataError, match=r"a.csv:70002:1: column id: 'x' is no BIGINT"):
        table.load(path)
    path.write_text("id,amount,d,s\n1,,,\n2,,,\n1,,,\n")
    with pytest.raises(DuplicateKeyError):
        table.load(path)
    path.write_text("id,amount,d,s\n1,,,\n,,,\n")
    with pytest.raises(NullKeyError, match=r"a.csv:3:1: table"):
        table.load(path)
    assert rows(conn, table) == []
