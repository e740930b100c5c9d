"""BACKUP writes tables that RESTORE, DuckDB and others can read; a damaged or unfinished backup is never restored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import secateur
from secateur.client.backup_files import MANIFEST, read_manifest
from secateur.cluster import Cluster
from secateur.errors import (
    DataError,
    Error,
    NotSupportedError,
    ProgrammingError,
    SqlSyntaxError,
    TableExistsError,
    UnknownTableError,
)
from secateur.partitioning.types.sql_text import quoted

TYPES = (
    "id BIGINT PRIMARY KEY, t TINYINT, s SMALLINT, i INTEGER, h HUGEINT, ut UTINYINT, us USMALLINT, ui UINTEGER,"
    " ub UBIGINT, f FLOAT, d DOUBLE, c DECIMAL(38,10), n DECIMAL(4,1), v VARCHAR, b BLOB, dt DATE, tm TIME,"
    " ts TIMESTAMP, tz TIMESTAMPTZ, iv INTERVAL, u UUID, bo BOOLEAN, l INTEGER[], ll VARCHAR[][], li INTERVAL[],"
    " lf INTERVAL[2]"
)
ROWS = """
    SELECT 1, -128, -32768, -2147483648, (-170141183460469231731687303715884105727::HUGEINT / 10), 255, 65535,
    4294967295, 18446744073709551615, 'nan'::FLOAT, '-inf'::DOUBLE, 9999999999999999999999999999.9999999999, -999.9,
    'a' || chr(0) || 'ü', '\\x00\\xFF'::BLOB, DATE '0001-01-01', TIME '23:59:59.999999',
    TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMPTZ '2024-02-29 12:00:00.000001+02',
    INTERVAL '3 months -4 days 5.000006 seconds', 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'::UUID, true, [1, NULL, 3],
    [['x', ''], NULL, []], [INTERVAL 1 MONTH, NULL, INTERVAL 7 MICROSECONDS], [INTERVAL 1 MONTH, NULL]
    UNION ALL SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', ''::BLOB, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, [], [], [], NULL
    UNION ALL SELECT 3, 0, 0, 0, 0, 0, 0, 0, 0, -0.0, 0, 0, 0, 'ß', 'x'::BLOB, DATE '1970-01-01', TIME '00:00:00',
    TIMESTAMP '1970-01-01', TIMESTAMPTZ '1970-01-01 00:00:00+00', INTERVAL '0 days',
    '00000000-0000-0000-0000-000000000000'::UUID, false, NULL, NULL, NULL, [NULL, INTERVAL 7 DAYS]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as running:
        yield running


@pytest.fixture
def conn(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as connection:
        for name, kind in connection.execute("SELECT table_name, table_type FROM secateur.tables").fetchall():
            connection.execute(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {quoted(name)}")
        yield connection


def rows(conn: secateur.Connection, sql: str) -> list[Any]:
    return sorted(map(repr, conn.execute(sql).fetchall()))


def a_table(conn: secateur.Connection, name: str = "t", count: int = 100) -> None:
    conn.execute(f'CREATE TABLE "{name}" (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 8')
    conn.execute(f"INSERT INTO \"{name}\" SELECT range, 'v' || range FROM range({count})")


def test_every_type_comes_back_exactly(conn: secateur.Connection, tmp_path: Path) -> None:
    conn.execute(f"CREATE TABLE types ({TYPES}) PARTITION BY HASH (id) PARTITIONS 4 BACKUPS 0")
    conn.execute(f"INSERT INTO types {ROWS}")
    before = rows(conn, "SELECT *, typeof(iv), epoch_us(ts), encode(v) FROM types")
    assert conn.execute(f"BACKUP TO '{tmp_path}/b'").rowcount == 3
    conn.execute("DROP TABLE types")
    assert conn.execute(f"RESTORE FROM '{tmp_path}/b'").rowcount == 3
    assert rows(conn, "SELECT *, typeof(iv), epoch_us(ts), encode(v) FROM types") == before
    files = f"{tmp_path}/b/tables/*/*.parquet"
    ours = conn.execute("SELECT id, h, ub, c, v, b, ts, u, ll FROM types ORDER BY id").fetchall()
    theirs = duckdb.sql(f"SELECT id, h::HUGEINT, ub, c, v, b, ts, u, ll FROM '{files}' ORDER BY id").fetchall()
    assert theirs == ours, "DuckDB reads the files"


def test_definitions_come_back(conn: secateur.Connection, tmp_path: Path) -> None:
    conn.execute(
        "CREATE TABLE ranged (d DATE, k INTEGER, v DOUBLE, PRIMARY KEY (d, k)) PARTITION BY HASH (k) PARTITIONS 2,"
        " RANGE (d) (PARTITION old VALUES < '2024-01-01', PARTITION '2024-01-01' <= VALUES < '2025-01-01')"
    )
    conn.execute("ALTER TABLE ranged ADD PARTITION '2025-01-01' <= VALUES < '2026-01-01'")
    conn.execute("INSERT INTO ranged VALUES ('2023-05-05', 1, 1.5), ('2025-05-05', 2, NULL)")
    conn.execute("CREATE INDEX by_v ON ranged (v)")
    conn.execute('CREATE TABLE "Größe ""x"" / ß" (k VARCHAR PRIMARY KEY) REPLICATED')
    conn.execute('INSERT INTO "Größe ""x"" / ß" VALUES (\'\'), (\'ü\')')
    conn.execute("CREATE TABLE nothing (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 3 BACKUPS 2")
    conn.execute("CREATE VIEW base AS SELECT d, k FROM ranged WHERE k > 0")
    conn.execute("CREATE VIEW above AS SELECT count(*) AS n FROM base")
    conn.execute("CREATE OR REPLACE VIEW base AS SELECT d, k FROM ranged")  # made later than the view that reads it
    definitions = "SELECT table_name, table_type, sql, partitions, backups, replicated FROM secateur.tables"
    before = rows(conn, definitions)
    assert conn.execute(f"BACKUP TO '{tmp_path}/b'").rowcount == 4
    for sql in ("VIEW above", "VIEW base", "TABLE ranged", 'TABLE "Größe ""x"" / ß"', "TABLE nothing"):
        conn.execute(f"DROP {sql}")
    assert conn.execute(f"RESTORE FROM '{tmp_path}/b'").rowcount == 4
    assert rows(conn, definitions) == before
    assert conn.execute("SELECT n FROM above").fetchone() == (2,)
    assert rows(conn, 'SELECT * FROM "Größe ""x"" / ß"') == ["('',)", "('ü',)"]
    assert conn.table("ranged").definition.indexes[0].name == "by_v"
    manifest = json.loads((tmp_path / "b" / MANIFEST).read_text())
    (ranged,) = [table for table in manifest["tables"] if table["name"] == "ranged"]
    assert ranged["primary_key"] == ["d", "k"]
    assert ranged["columns"][0] == {"name": "d", "type": "DATE", "nullable": False}
    assert ranged["ranges"][0]["partition"] == 0
    assert "old" in ranged["ranges"][0]["range"]
    (nothing,) = [table for table in manifest["tables"] if table["name"] == "nothing"]
    assert (nothing["rows"], nothing["files"]) == (0, [])


def test_some_tables_only(conn: secateur.Connection, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        a_table(conn, name)
    conn.execute("CREATE VIEW w AS SELECT * FROM a")
    assert conn.execute(f"BACKUP TABLE a, B TO '{tmp_path}/b'").rowcount == 200
    for name in ("VIEW w", "TABLE a", "TABLE b"):
        conn.execute(f"DROP {name}")
    assert conn.execute(f"RESTORE TABLE b FROM '{tmp_path}/b'").rowcount == 100
    assert {row[0] for row in conn.execute("SELECT table_name FROM secateur.tables").fetchall()} == {"b", "c"}
    with pytest.raises(UnknownTableError, match=r"has no table 'c'; it has a, b"):
        conn.execute(f"RESTORE TABLE c FROM '{tmp_path}/b'")


@pytest.mark.smoke
def test_what_exists_is_replaced_only_if_that_is_asked(conn: secateur.Connection, tmp_path: Path) -> None:
    a_table(conn, "same")
    a_table(conn, "other")
    conn.execute(f"BACKUP TO '{tmp_path}/b'")
    before = rows(conn, "SELECT * FROM same")
    conn.execute("DELETE FROM same WHERE k < 50")
    conn.execute("INSERT INTO same VALUES (1000, 'new')")
    conn.execute("DROP TABLE other")
    conn.execute("CREATE TABLE other (x INTEGER PRIMARY KEY) REPLICATED")
    with pytest.raises(TableExistsError, match=r"'same' exists already.*RESTORE OR REPLACE"):
        conn.execute(f"RESTORE FROM '{tmp_path}/b'")
    assert conn.execute("SELECT count(*) FROM same").fetchone() == (51,), "nothing was changed"
    kept = conn.table("same").definition.table_id
    assert conn.execute(f"RESTORE OR REPLACE FROM '{tmp_path}/b'").rowcount == 200
    assert rows(conn, "SELECT * FROM same") == before
    assert conn.table("same").definition.table_id == kept, "its rows were replaced at once"
    assert rows(conn, "SELECT * FROM other") == before


@pytest.mark.parametrize("damage", ["a changed byte", "a shorter file", "no file"])
def test_a_damaged_backup_changes_nothing(conn: secateur.Connection, tmp_path: Path, damage: str) -> None:
    a_table(conn, "first")
    a_table(conn, "second")
    conn.execute(f"BACKUP TO '{tmp_path}/b'")
    (file,) = read_manifest(tmp_path / "b").tables[1].files
    path = tmp_path / "b" / file.path
    content = bytearray(path.read_bytes())
    match damage:
        case "a changed byte":
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
        case "a shorter file":
            path.write_bytes(content[:-1])
        case _:
            path.unlink()
    conn.execute("DELETE FROM first WHERE k = 1")
    with pytest.raises(DataError, match=r"the backup of table second is damaged.*nothing was restored"):
        conn.execute(f"RESTORE OR REPLACE FROM '{tmp_path}/b'")
    assert conn.execute("SELECT count(*) FROM first").fetchone() == (99,)


def test_a_manifest_that_is_not_ours_is_refused(conn: secateur.Connection, tmp_path: Path) -> None:
    a_table(conn)
    conn.execute(f"BACKUP TO '{tmp_path}/b'")
    path = tmp_path / "b" / MANIFEST
    document = json.loads(path.read_text())
    outside = {**document["tables"][0], "files": [{**document["tables"][0]["files"][0], "path": "../../passwd"}]}
    cases: list[tuple[str, type[Error], str]] = [
        (path.read_text()[:-20], DataError, "is damaged"),
        (json.dumps({**document, "version": 99}), NotSupportedError, "version 99"),
        (json.dumps({**document, "format": "tar"}), DataError, "format 'tar'"),
        (json.dumps({**document, "tables": [{"name": 7}]}), DataError, "is damaged"),
        (json.dumps({**document, "tables": [outside]}), DataError, "outside of the backup"),
    ]
    for text, kind, said in cases:
        path.write_text(text)
        with pytest.raises(kind, match=said):
            conn.execute(f"RESTORE OR REPLACE FROM '{tmp_path}/b'")
    path.unlink()
    with pytest.raises(ProgrammingError, match=r"is no backup on the machine of this client.*manifest\.json"):
        conn.execute(f"RESTORE FROM '{tmp_path}/b'")
    assert conn.execute("SELECT count(*) FROM t").fetchone() == (100,)


def test_a_backup_that_fails_leaves_no_folder(
    conn: secateur.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_table(conn)

    def fail(path: Path) -> str:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("secateur.client.backup_files.checksum", fail)
        with pytest.raises(ProgrammingError, match=r"cannot be written.*No space left"):
            conn.execute(f"BACKUP TO '{tmp_path}/b'")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ProgrammingError, match="exists already"):
        conn.execute(f"BACKUP TO '{tmp_path}/full'")
    (tmp_path / "empty").mkdir()
    assert conn.execute(f"BACKUP TO '{tmp_path}/empty'").rowcount == 100


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("BACKUP t TO 'x'", SqlSyntaxError, "TO"),
        ("BACKUP TO x", SqlSyntaxError, "the path of a folder, as 'text'"),
        ("BACKUP TABLE missing TO 'x'", UnknownTableError, "missing"),
        ("RESTORE TO 'x'", SqlSyntaxError, "FROM"),
        ("RESTORE OR REPLACE TABLE FROM 'x'", SqlSyntaxError, "FROM"),
        ("RESTORE FROM 'x' now", SqlSyntaxError, "now"),
    ],
)
def test_mistakes_are_pointed_at(conn: secateur.Connection, sql: str, kind: type[Error], said: str) -> None:
    with pytest.raises(kind, match=said):
        conn.execute(sql)
