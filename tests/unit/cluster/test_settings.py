"""The settings of a cluster: typed, and documented as they are."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import secateur
from secateur.cluster import DEFAULTS, ClusterSettings
from secateur.engine_limits import EngineLimits
from secateur.errors import ProgrammingError
from secateur.planner import CostModel
from secateur.tunable import description_of, tunables_of
from secateur.wire import Limits

DOCUMENT = Path(secateur.__file__).parent.parent / "docs" / "settings.md"
MADE_INSIDE = {"secret"}
"""Nobody sets it."""


def parameters() -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(secateur.start).parameters)


def test_every_setting_is_a_typed_argument_with_the_same_default() -> None:
    given = parameters()
    assert given.keys() - {"runtime"} == {field.name for field in fields(ClusterSettings)} - MADE_INSIDE
    assert all(
        argument.kind is not inspect.Parameter.VAR_KEYWORD and argument.annotation is not inspect.Parameter.empty
        for argument in given.values()
    )
    differing = {
        name for name, argument in given.items() if name != "runtime" and argument.default != getattr(DEFAULTS, name)
    }
    assert differing <= {"cluster_id"}, "what is made at random has None for its default"


def test_the_documents_have_every_setting_and_its_default() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOCUMENT.read_text().splitlines()
        if line.startswith("| `")
    ]
    documented = {row[0].strip("`"): row[1].strip("`") for row in rows}
    given = parameters()
    assert list(documented) == list(given)
    values = (Limits, CostModel, EngineLimits)
    assert documented == {
        name: f"{type(argument.default).__name__}()" if isinstance(argument.default, values) else repr(argument.default)
        for name, argument in given.items()
    }
    assert all(len(row) == 3 and row[2] for row in rows)
    meanings = {row[0].strip("`"): re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", row[2]) for row in rows}
    del meanings["runtime"]
    assert meanings == {one.name: description_of(one) for one in fields(ClusterSettings) if one.name not in MADE_INSIDE}


@pytest.mark.parametrize("cls", [CostModel, EngineLimits])
def test_the_documents_have_every_number_with_default_unit_effect_and_basis(cls: type[object]) -> None:
    text = DOCUMENT.read_text()
    for one in tunables_of(cls):
        assert f"| {one.name} | {one.default} | {one.unit} | {one.effect} | {one.basis} |" in text


@pytest.mark.parametrize("name", ["memebrs", "secret", "detach"])
def test_an_unknown_setting_is_named_with_those_there_are(name: str) -> None:
    with pytest.raises(
        ProgrammingError, match=f"there is no setting '{name}'; known settings: members, runtime, ray_address"
    ):
        secateur.start(runtime="embedded", **{name: 1})  # type: ignore[arg-type]


def test_options_that_are_secateurs_are_refused() -> None:
    with pytest.raises(ProgrammingError, match=r"max_restarts is not for users; there is label_selector, memory"):
        ClusterSettings(ray_actor_options={"num_cpus": 1, "max_restarts": 3})
