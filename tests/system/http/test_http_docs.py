"""The tables of ``docs/http.md`` are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from secateur import errors
from secateur.http import PARAMETER_TYPES
from secateur.server import ServerLimits
from secateur.server.answers import status_of
from secateur.server.dag_forms import VertexForm
from secateur.tunable import tunables_of

PAGE = (Path(__file__).parents[3] / "docs" / "http.md").read_text(encoding="utf-8")


def test_the_processors_are_those_of_the_form() -> None:
    rows = re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| ", PAGE.partition("| processor | fields |")[2].partition("\n\n")[0], re.M
    )
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    forms = get_args(get_args(VertexForm)[0])
    assert named == {name for form in forms for name in get_args(form.model_fields["processor"].annotation)}


def test_the_limits_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d,.]+) \| (\w+) \| (.*) \|$", PAGE.partition("## Limits")[2], re.MULTILINE)
    assert rows == [(one.name, f"{one.default:,}", one.unit, one.effect) for one in tunables_of(ServerLimits)]


def test_the_types_of_parameters_are_named() -> None:
    (named,) = re.findall(r"^The types are (.*?)\.$", PAGE, re.DOTALL | re.MULTILINE)
    assert re.split(r",\s+|\s+and\s+", named) == list(PARAMETER_TYPES)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (int(row[0]), name)
        for row in re.findall(r"^\| ([45]\d\d) \| (.*) \|$", PAGE, re.MULTILINE)
        for name in re.findall(r"`(\w+Error)`", row[1])
    ],
)
def test_the_status_of_an_error_is_that_of_the_page(status: int, name: str) -> None:
    assert status_of(getattr(errors, name)("x")) == status
