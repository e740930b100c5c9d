from __future__ import annotations

from types import SimpleNamespace

import pytest

from secateur.connectors.spark.endpoint import Endpoint
from secateur.errors import InterfaceError

CONF = "spark.secateur.address"
VARIABLE = "SECATEUR_ADDRESS"


def session(**conf: str) -> SimpleNamespace:
    return SimpleNamespace(conf=SimpleNamespace(get=conf.get))


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("SECATEUR_TOKEN", raising=False)


@pytest.mark.parametrize(
    ("given", "conf", "variable", "expected"),
    [
        pytest.param("secateur://a:1", "secateur://b:2", "secateur://c:3", "secateur://a:1", id="argument-first"),
        pytest.param(None, "secateur://b:2", "secateur://c:3", "secateur://b:2", id="then-the-session"),
        pytest.param(None, None, "secateur://c:3", "secateur://c:3", id="then-the-environment"),
    ],
)
def test_where_the_address_comes_from(
    monkeypatch: pytest.MonkeyPatch, given: str | None, conf: str | None, variable: str, expected: str
) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    spark = session(**({CONF: conf} if conf else {}))
    assert Endpoint.of(spark, given, None) == Endpoint(expected)


def test_where_the_token_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECATEUR_TOKEN", "c")
    assert Endpoint.of(session(**{"spark.secateur.token": "b"}), "secateur://h:1", "a").token == "a"
    assert Endpoint.of(session(**{"spark.secateur.token": "b"}), "secateur://h:1", None).token == "b"
    assert Endpoint.of(session(), "secateur://h:1", None).token == "c"


def test_the_token_is_not_shown() -> None:
    assert "hush" not in repr(Endpoint("secateur://h:1", "hush"))


def test_nothing_says_where_the_cluster_is() -> None:
    with pytest.raises(InterfaceError, match=rf"address=cluster\.address.*{CONF}.*{VARIABLE}"):
        Endpoint.of(session(), None, None)


def test_an_address_that_is_none_is_found_before_spark_starts_anything() -> None:
    with pytest.raises(InterfaceError, match="http://h:1"):
        Endpoint.of(session(), "http://h:1", None)
