"""A whole cluster over TLS: clients, members, the controller, HTTP and the command line."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
import trustme
from typer.testing import CliRunner

import secateur
from secateur.cli.app import app
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError, ProtocolError
from secateur.server import HttpServer

ROWS = pa.table({"id": pa.array(range(600), pa.int64()), "v": pa.array(range(600), pa.int64())})


@pytest.fixture(scope="module")
def secured(tls: secateur.Tls) -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", token="secret", tls=tls, member_silence_s=10.0) as running:
        with running.connect() as conn:
            conn.execute(
                "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 1"
            )
            conn.table("t").load(ROWS)
        yield running


@pytest.mark.smoke
def test_statements_loads_changes_and_jobs_run_over_tls(secured: Cluster, tls: secateur.Tls) -> None:
    with secateur.connect(secured.address, "secret", tls=secateur.Tls(ca=tls.ca)) as conn:
        assert conn.execute("SELECT v FROM t WHERE id = ?", [5]).fetchall() == [(5,)]
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(600, sum(range(600)))]
        joined = "SELECT count(*) FROM t a JOIN t b ON a.id = b.v"  # rows travel between members
        assert conn.execute(joined).fetchall() == [(600,)]
        conn.execute("UPDATE t SET v = v + 1 WHERE id = 7")
        assert conn.execute("SELECT v FROM t WHERE id = 7").fetchall() == [(8,)]
        conn.execute("UPDATE t SET v = 7 WHERE id = 7")
    assert [member.is_alive for member in secured.members()] == [True] * 3


def test_the_process_that_started_it_connects_by_address_alone(secured: Cluster) -> None:
    with secateur.connect(secured.address, "secret") as conn:
        assert conn.execute("SELECT v FROM t WHERE id = 5").fetchall() == [(5,)]


def test_a_connection_without_tls_or_trust_is_refused_at_every_port(
    secured: Cluster, cluster: Cluster, tls: secateur.Tls
) -> None:
    with pytest.raises(AuthenticationError, match="is not accepted"):
        secateur.connect(secured.address, "secret", tls=secateur.Tls())
    with pytest.raises(ProtocolError, match="leave tls= out here"):
        secateur.connect(cluster.address, cluster.token, tls=secateur.Tls(ca=tls.ca))
    for member in secured.members():  # which show the certificate as well
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"https://{member.address}", timeout=20)


def test_a_member_that_is_killed_is_replaced_over_tls(tls: secateur.Tls) -> None:
    with secateur.start(members=2, runtime="embedded", tls=tls, member_silence_s=3.0) as own, own.connect() as conn:
        conn.execute(
            "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 4 BACKUPS 1"
        )
        conn.table("t").load(ROWS)
        own.kill_member("m1")
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(600,)]
        own.kill_controller()
        conn.execute("INSERT INTO t VALUES (600, 600)")
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(601,)]


def test_http_is_served_with_a_certificate(secured: Cluster, tls: secateur.Tls) -> None:
    trusted = ssl.create_default_context(cafile=tls.ca)
    client = secateur.Tls(ca=tls.ca)
    with HttpServer(secured.address, "secret", tls=tls, cluster_tls=client) as server:
        assert server.url.startswith("https://127.0.0.1:")
        with httpx.Client(base_url=server.url, verify=trusted, timeout=60) as http:
            assert http.get("/healthz").json() == {"status": "ok", "cluster": "reachable"}
            assert http.get("/metrics").status_code == 401
            assert http.get("/metrics", headers={"Authorization": "Bearer secret"}).status_code == 200
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{server.url}/healthz", timeout=20)


def test_plain_http_at_the_port_of_https_is_refused_in_a_sentence(secured: Cluster, tls: secateur.Tls) -> None:
    trusted = ssl.create_default_context(cafile=tls.ca)
    with HttpServer(secured.address, "secret", tls=tls, cluster_tls=secateur.Tls(ca=tls.ca)) as server:
        plain = server.url.replace("https", "http")
        for asked in (
            lambda: httpx.get(f"{plain}/metrics", headers={"Authorization": "Bearer secret"}, timeout=20),
            lambda: httpx.post(f"{plain}/api/v1/statements", content=b"x" * 1_000_000, timeout=20),
        ):
            answer = asked()
            assert (answer.status_code, answer.headers["connection"]) == (400, "close")
            assert f"speaks HTTPS alone, and the request came over HTTP: ask {server.url} instead" in answer.text
        with httpx.Client(base_url=server.url, verify=trusted, timeout=60) as http:
            assert http.get("/healthz").status_code == 200


def test_commands_trust_the_authority_of_the_environment(
    secured: Cluster, tls: secateur.Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECATEUR_ADDRESS", secured.address)
    monkeypatch.setenv("SECATEUR_TOKEN", "secret")
    monkeypatch.setenv("SECATEUR_TLS_CA", str(tls.ca))
    result = CliRunner().invoke(app, ["sql", "--format", "csv", "-c", "SELECT v FROM t WHERE id = 5"])
    assert (result.exit_code, result.stdout.split()) == (0, ["v", "5"])


def test_the_command_starts_a_cluster_with_a_certificate(
    tls: secateur.Tls, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("SECATEUR_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("SECATEUR_ADDRESS", "SECATEUR_TOKEN", "SECATEUR_TLS_CA"):
        monkeypatch.delenv(name, raising=False)
    runner = CliRunner()
    options = ["--members", "1", "--tls-certificate", str(tls.certificate), "--tls-ca", str(tls.ca)]
    started = runner.invoke(app, ["start", "--runtime", "embedded", *options])
    assert started.exit_code == 0, started.output
    try:
        assert f"export SECATEUR_TLS_CA={tls.ca}" in started.stdout
        asked = runner.invoke(app, ["sql", "--format", "csv", "-c", "SELECT 1 + 1 AS two"])
        assert (asked.exit_code, asked.stdout.split()) == (0, ["two", "2"]), asked.output
        address = started.stdout.split()[4]
        with pytest.raises(AuthenticationError, match="speaks TLS alone"):
            secateur.connect(address, "any")
    finally:
        assert runner.invoke(app, ["stop"]).exit_code == 0


@pytest.mark.ray
@pytest.mark.slow
def test_members_on_ray_speak_tls(tls: secateur.Tls) -> None:
    with secateur.start(members=2, tls=tls) as own, own.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 4")
        conn.table("t").load(ROWS)
        assert conn.execute("SELECT count(*) FROM t a JOIN t b ON a.id = b.v").fetchall() == [(600,)]


def test_a_cluster_needs_a_certificate(tls: secateur.Tls) -> None:
    with pytest.raises(secateur.ProgrammingError, match="tls= of a cluster needs a certificate"):
        secateur.start(members=1, runtime="embedded", tls=secateur.Tls(ca=tls.ca))


def test_http_shows_a_certificate_that_was_renewed(
    secured: Cluster, tls: secateur.Tls, authority: trustme.CA, tmp_path: Path
) -> None:
    def put() -> bytes:
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "new.pem"))
        (tmp_path / "new.pem").replace(tmp_path / "http.pem")
        return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())

    def shown(url: str) -> bytes:
        host, _, port = url.removeprefix("https://").partition(":")
        return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port)), timeout=20))

    first = put()
    own = secateur.Tls(certificate=tmp_path / "http.pem")
    with HttpServer(secured.address, "secret", tls=own, cluster_tls=secateur.Tls(ca=tls.ca)) as server:
        assert shown(server.url) == first
        second = put()
        assert shown(server.url) == second
        trusted = ssl.create_default_context(cafile=tls.ca)
        assert httpx.get(f"{server.url}/healthz", verify=trusted, timeout=60).status_code == 200
