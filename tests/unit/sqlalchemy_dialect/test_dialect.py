"""The URL of an engine, and how SQLAlchemy finds the dialect."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from secateur import Tls
from secateur.sqlalchemy_dialect import SecateurDialect

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("secateur://h:7/?token=s", {"address": "secateur://h:7", "token": "s"}),
        ("secateur://:s@h:7", {"address": "secateur://h:7", "token": "s"}),
        ("secateur://[::1]:7/?token=s", {"address": "secateur://[::1]:7", "token": "s"}),
        ("secateur://", {"address": None, "token": None}),
        (
            "secateur://h:7/?timeout_s=2.5&tls_ca=ca.pem",
            {"address": "secateur://h:7", "token": None, "timeout_s": 2.5, "tls": Tls(ca="ca.pem")},
        ),
    ],
)
def test_what_a_url_says(url: str, expected: dict[str, Any]) -> None:
    assert SecateurDialect().create_connect_args(make_url(url)) == ((), {"autocommit_only": True, **expected})


@pytest.mark.parametrize("url", ["secateur://ann@h:7", "secateur://h:7/sales", "secateur://h:7/?tokn=s"])
def test_what_a_url_cannot_say_is_refused(url: str) -> None:
    with pytest.raises(ArgumentError, match="in the URL of the engine is not known: write secateur://"):
        SecateurDialect().create_connect_args(make_url(url))


def test_the_package_names_the_dialect() -> None:
    points = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["entry-points"]["sqlalchemy.dialects"]
    module, _, name = points["secateur"].partition(":")
    assert getattr(importlib.import_module(module), name) is SecateurDialect
