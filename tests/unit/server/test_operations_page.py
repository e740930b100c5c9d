"""The page ``/docs``: texts without marks, and one request for each operation that a shell can send."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from html import unescape
from typing import Any

import httpx
import pytest

from secateur.server import app


async def page_of(application: Any) -> str:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://localhost") as client:
        return (await client.get("/docs")).text


APPLICATION = app("secateur://127.0.0.1:1", "")
DOCUMENT = APPLICATION.openapi()
PAGE = asyncio.run(page_of(APPLICATION))
EXAMPLES = [unescape(text) for text in re.findall(r"<pre><code>(.*?)</code></pre>", PAGE, re.DOTALL)]
OPERATIONS = [(method, path) for path, operations in DOCUMENT["paths"].items() for method in operations]


def test_what_stands_in_backticks_is_code() -> None:
    assert "`" not in PAGE
    assert "with <code>Accept: text/csv</code>," in PAGE
    assert "<code>{&quot;type&quot;: &quot;DATE&quot;, &quot;value&quot;: &quot;2024-01-31&quot;}</code>" in PAGE


def test_each_operation_has_a_request_of_its_method_and_path() -> None:
    assert len(EXAMPLES) == len(OPERATIONS)
    for (method, path), example in zip(OPERATIONS, EXAMPLES, strict=True):
        words = shlex.split(example)
        sent = "DELETE" if "DELETE" in words else "POST" if "-d" in words else "GET"
        assert sent == method.upper()
        assert words[2].partition("?")[0] == "$SECATEUR_URL" + re.sub(r"\{\w+\}", "$ID", path)
    assert any("/partitions?table=orders" in example for example in EXAMPLES)


@pytest.mark.parametrize("path", ["statements", "explain", "jobs"])
def test_a_body_has_the_form_of_its_operation(path: str) -> None:
    words = shlex.split(EXAMPLES[OPERATIONS.index(("post", f"/api/v1/{path}"))])
    body = json.loads(words[words.index("-d") + 1])
    schema = DOCUMENT["paths"][f"/api/v1/{path}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    form = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert set(form.get("required", ())) <= body.keys() <= form["properties"].keys()
