"""The format ``secateur`` finds cluster and token as the functions do, though Spark plans in other processes."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkFiles
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import secateur
from secateur.client.execution.retry_policy import CONNECT_TIMEOUT_S
from secateur.connectors.spark.endpoint import settings_of_driver
from secateur.errors import UnreachableError

pytestmark = pytest.mark.spark


@pytest.fixture
def spark(spark_session: Callable[..., SparkSession], monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    monkeypatch.delenv("SECATEUR_TOKEN", raising=False)
    monkeypatch.delenv("SECATEUR_ADDRESS", raising=False)
    return spark_session()


def read(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("secateur").options(table="t", **options).load()


def test_a_secret_is_found_where_the_functions_find_it(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        secateur.start(members=1, runtime="embedded") as own,
        secateur.start(members=1, runtime="embedded", token="chosen") as chosen,
    ):
        for cluster in (own, chosen):
            with cluster.connect() as conn:
                conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        assert read(spark, address=own.address).columns == ["id"]
        with pytest.raises(PySparkException) as refused:
            read(spark, address=chosen.address)
        lines = str(refused.value).splitlines()
        assert len(lines) <= 3, "no traceback of Spark's"
        assert 'none was given: pass token=... to connect (.option("token", ...) in Spark)' in lines[0]
        spark.conf.set("spark.secateur.token", "chosen")
        assert read(spark, address=chosen.address).columns == ["id"]
        spark.conf.unset("spark.secateur.token")
        monkeypatch.setenv("SECATEUR_TOKEN", "chosen")
        assert read(spark, address=chosen.address).columns == ["id"]
        monkeypatch.setenv("SECATEUR_ADDRESS", chosen.address)
        assert read(spark).columns == ["id"]


def test_a_stream_of_changes_finds_the_secret_as_well(spark: SparkSession, tmp_path: Path) -> None:
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2 WITH (change_feed = true)"
        )
        conn.execute("INSERT INTO t VALUES (1), (2)")
        options = {"address": cluster.address, "changeFeed": "true", "startingPosition": "earliest"}
        changes = spark.readStream.format("secateur").options(**options).load("t")
        sink = changes.writeStream.format("memory").queryName("seen").trigger(availableNow=True)
        sink.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
        assert sorted(row.id for row in spark.table("seen").collect()) == [1, 2]


@pytest.mark.slow  # nobody answers for ten seconds
def test_a_wrong_address_fails_soon_and_a_cluster_that_was_found_is_waited_for(spark: SparkSession) -> None:
    def seconds_until_refused(address: str) -> float:
        begun_s = time.monotonic()
        with pytest.raises(PySparkException) as refused:
            read(spark, address=address)
        lines = str(refused.value).splitlines()
        assert len(lines) <= 3, "no traceback of Spark's"
        assert "no process answers" in lines[0]
        return time.monotonic() - begun_s

    assert seconds_until_refused("secateur://127.0.0.1:1") < CONNECT_TIMEOUT_S
    begun_s = time.monotonic()
    with pytest.raises(UnreachableError):
        secateur.spark.write(spark.range(1), "t", address="secateur://127.0.0.1:1")
    assert time.monotonic() - begun_s < CONNECT_TIMEOUT_S
    with secateur.start(members=1, runtime="embedded") as cluster:
        with cluster.connect() as conn:
            conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        assert read(spark, address=cluster.address).columns == ["id"]
    assert seconds_until_refused(cluster.address) >= CONNECT_TIMEOUT_S


def test_one_session_is_not_taken_for_another(spark: SparkSession) -> None:
    address, elsewhere = "secateur://127.0.0.1:1", "secateur://127.0.0.1:2"
    secateur.spark.register(spark)
    spark.conf.set("spark.secateur.address", address)
    spark.conf.set("spark.secateur.token", "one")
    other = spark.newSession()
    try:
        assert settings_of_driver(address) == {"address": address, "token": "one"}  # who else could be meant?
        assert settings_of_driver(None) == {}, "rows might go to the cluster of the wrong session"
        other.conf.set("spark.secateur.token", "two")
        assert settings_of_driver(address) == {}
        assert settings_of_driver(elsewhere) == {}
    finally:
        for session in (spark, other):
            session.conf.unset("spark.secateur.address")
            session.conf.unset("spark.secateur.token")


def test_only_the_processes_of_this_user_and_of_this_spark_are_answered(spark: SparkSession) -> None:
    secateur.spark.register(spark)
    spark.conf.set("spark.secateur.token", "hush")
    try:
        directory = Path(tempfile.gettempdir(), f"secateur-{os.getuid()}")
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        own = SparkFiles.getRootDirectory()
        of_a_stream = f"{own}/streaming_job"
        for files, answer in ((own, "hush"), (of_a_stream, "hush"), (f"{own}0", None), ("/tmp/of/another", None)):
            with socket.socket(socket.AF_UNIX) as channel:
                channel.connect(str(directory / str(os.getpid())))
                channel.sendall(json.dumps({"files": files, "address": "secateur://127.0.0.1:1"}).encode())
                channel.shutdown(socket.SHUT_WR)
                answered = json.load(channel.makefile())
            assert (answered and answered["token"]) == answer
    finally:
        spark.conf.unset("spark.secateur.token")


def test_the_socket_goes_with_its_process() -> None:
    script = """
import os, tempfile, secateur
with secateur.start(members=1, runtime="embedded"):
    print(os.path.join(tempfile.gettempdir(), f"secateur-{os.getuid()}", str(os.getpid())))
"""
    path = Path(subprocess.check_output([sys.executable, "-c", script], text=True, timeout=100).strip())
    assert path.parent.is_dir()
    assert not path.exists()
