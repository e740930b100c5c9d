"""Which errors say that a retry can help and cannot harm: all classes, and all places that say otherwise than their
class.
"""

from __future__ import annotations

import ast
import pickle
from functools import cache
from pathlib import Path

import pytest

import secateur
from secateur import errors
from secateur.errors import Error, LimitExceededError, MemberLostError, UnreachableError
from secateur.protocol import Failure

ROOT = Path(secateur.__file__).parent
DOCUMENTED = (ROOT.parent / "docs" / "errors.md").read_text()

SAFE_CLASSES = {
    "UnreachableError",
    "TopologyChangedError",
    "UnknownOwnersError",
    "UnknownRangesError",
    "DataChangedError",
    "KeysChangedError",
    "LoadFailedError",
}
"""What these say was never done, and may work once the cluster has settled."""

EXCEPTIONS = {
    ("UnreachableError", "client/controller_calls.py", "belongs to another cluster now", "False"),
    ("TopologyChangedError", "connectors/table_sources.py", "has changed while the job started", "True"),
    ("LimitExceededError", "wire/connection.py", "message", "True"),
    ("LimitExceededError", "wire/peer.py", "requests to", "True"),
    ("LimitExceededError", "cluster/controller/planning.py", "statements wait to be planned", "True"),
    ("LimitExceededError", "cluster/member/changes/change_turns.py", "changes", "True"),
    ("LimitExceededError", "cluster/member/admission/statement_admission.py", "statements wait at member", "True"),
    ("UnreachableError", "http/http_transport.py", "the connection to", "may_repeat"),
    ("LimitExceededError", "cluster/member/admission/tenants.py", "statements a second", "True"),
    ("LimitExceededError", "cluster/member/admission/tenant_gate.py", "the statement took longer", "True"),
    ("LimitExceededError", "cluster/member/admission/tenant_gate.py", "short statements of tenant", "True"),
    ("LimitExceededError", "server/callers.py", "tokens that the HTTP server does not know", "True"),
    ("LimitExceededError", "server/statements.py", "statements of the HTTP server run or wait", "True"),
}
"""Errors that differ from their class: class, file, part of the message, and what is said."""

READS = {
    "client/dbapi/rows.py",
    "client/execution/execute.py",
    "client/execution/snapshot.py",
}
"""Where reads end, which have changed nothing."""


def classes(of: type[Error] = Error) -> list[type[Error]]:
    return [of, *(found for child in of.__subclasses__() for found in classes(child))]


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_every_class(kind: type[Error]) -> None:
    assert kind("x").retry_safe is (kind.__name__ in SAFE_CLASSES)


@cache
def sources() -> list[tuple[str, ast.Module]]:
    """The files that speak of retries."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    return [(file, ast.parse(text)) for file, text in texts.items() if "retry_safe" in text or "safe_to_retry" in text]


def test_every_place_that_differs_from_its_class() -> None:
    found, names = set(), {kind.__name__ for kind in classes()}
    for file, tree in sources():
        for call in ast.walk(tree):
            said = [keyword for keyword in getattr(call, "keywords", ()) if keyword.arg == "retry_safe"]
            if (
                isinstance(call, ast.Call)
                and said
                and (name := ast.unparse(call.func).removeprefix("errors.")) in names
            ):
                text = ast.unparse(call.args[0])
                known = [part for _, of, part, _ in EXCEPTIONS if of == file and part in text]
                found.add((name, file, known[0] if known else text, ast.unparse(said[0].value)))
    assert found == EXCEPTIONS


def test_only_reads_become_safe_to_retry() -> None:
    using = {
        file
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "safe_to_retry"
    }
    assert using == READS


@pytest.mark.parametrize("name", sorted({kind.__name__ for kind in classes(errors.OperationalError)}))
def test_the_documents_have_it(name: str) -> None:
    rows = [line for line in DOCUMENTED.splitlines() if line.startswith("|") and f"`{name}`" in line]
    assert rows
    said = {line.rsplit("|", 2)[1].strip() for line in rows}
    differing = {bool(value == "True") for kind, _, _, value in EXCEPTIONS if kind == name} | (
        {True} if name == "MemberLostError" else set()
    )
    assert said == {"yes" if safe else "no" for safe in {name in SAFE_CLASSES, *differing}}


@pytest.mark.parametrize("safe", [True, False])
def test_what_an_error_says_of_itself_travels(safe: bool) -> None:
    for error in (UnreachableError("x", retry_safe=safe), LimitExceededError("x", retry_safe=safe)):
        assert error.retry_safe is safe
        assert Failure.of(error).to_error().retry_safe is safe
        assert pickle.loads(pickle.dumps(error)).retry_safe is safe


def test_a_read_that_failed_is_safe_to_retry() -> None:
    error = MemberLostError("x", member="m1")
    error.safe_to_retry()
    assert error.retry_safe
    assert Failure.of(error).to_error().retry_safe
    assert not MemberLostError("x").retry_safe
