"""The page ``/docs``: the operations of openapi.json as HTML, without a script and without anything from outside."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from html import escape
from typing import Any, Final

from markupsafe import Markup

from secateur.server.dashboard.templating import rendered

_CODE: Final = re.compile(r"`([^`]+)`")
_PATH_FIELD: Final = re.compile(r"\{\w+\}")


def operations_page(document: Mapping[str, Any]) -> str:
    """An OpenAPI document as one HTML page.

    Args:
        document: As ``/openapi.json`` has it.
    """
    operations = [
        {
            "id": operation["operationId"],
            "method": method,
            "path": path,
            "summary": operation["summary"],
            "description": operation["description"],
            "fields": _fields(operation, document),
            "example": _example(path, method, operation, document),
        }
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    values = {"info": document["info"], "operations": operations, "prose": _prose, "type": _type}
    return rendered("operations.html", values)


def _prose(text: str) -> Markup:
    """A text as HTML, with what stands in backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", escape(text)))


def _example(path: str, method: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """A request as curl sends it."""
    named = ((one["name"], one["schema"].get("examples")) for one in operation.get("parameters", ()))
    query = "&".join(f"{name}={examples[0]}" for name, examples in named if examples)
    target = f"$SECATEUR_URL{_PATH_FIELD.sub('$ID', path)}{'?' if query else ''}{query}"
    parts = [f'curl -s "{target}" -H "Authorization: Bearer $SECATEUR_TOKEN"']
    if method == "delete":
        parts.append("-X DELETE")
    form = _form(operation, document)
    for example in form.get("examples", ())[:1]:
        body = {field: example[field] for field in form["properties"] if field in example}
        parts.append(f"-H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}")
    return " \\\n  ".join(parts)


def _form(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The form of the body; nothing for an operation without one."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    form: Mapping[str, Any] = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
    return form


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parameters of an operation, and the fields of its body in the same form."""
    form = _form(operation, document)
    found: list[Mapping[str, Any]] = [
        {"required": False, "description": "", **parameter} for parameter in operation.get("parameters", ())
    ]
    for name, schema in form.get("properties", {}).items():
        is_required, meaning = name in form.get("required", ()), schema.get("description", "")
        found.append({"name": name, "in": "body", "required": is_required, "schema": schema, "description": meaning})
    return found


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    return str(schema.get("type", "anything"))
