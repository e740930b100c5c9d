"""The page ``/docs``: the operations of openapi.json as HTML, without a script and without anything from outside."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from html import escape
from typing import Any, Final

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .25rem; font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-top: 1px solid #8884; }
code, pre { font-family: ui-monospace, monospace; }
pre { overflow-x: auto; padding: .5rem .75rem; background: #8881; border-radius: 4px; font-size: .85rem; }
"""
_EXAMPLES: Final = (
    "The examples are for a shell with the address of this server in `SECATEUR_URL`, a token in `SECATEUR_TOKEN`, and"
    " the id of a statement or job in `ID`."
)
_CODE: Final = re.compile(r"`([^`]+)`")
_PATH_FIELD: Final = re.compile(r"\{\w+\}")


def operations_page(document: Mapping[str, Any]) -> str:
    """An OpenAPI document as one HTML page.

    Args:
        document: As ``/openapi.json`` has it.
    """
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(document['info']['title'])}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{escape(document['info']['title'])} {escape(document['info']['version'])}</h1>",
        f"<p>{_prose(document['info'].get('description', ''))}</p>",
        '<p>The same for programs: <a href="/openapi.json">openapi.json</a></p>',
        f"<p>{_prose(_EXAMPLES)}</p>",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(f'<section><h2 id="{escape(operation["operationId"])}">{method.upper()} {escape(path)}</h2>')
            parts.append(f"<p><strong>{escape(operation.get('summary', ''))}.</strong>")
            parts.append(f" {_prose(operation.get('description', ''))}</p>")
            rows = [*map(_parameter_row, operation.get("parameters", ())), *_body_rows(operation, document)]
            if rows:
                parts.append("<table><thead><tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr></thead>")
                parts.append(f"<tbody>{''.join(rows)}</tbody></table>")
            parts.append(f"<pre><code>{escape(_example(path, method, operation, document))}</code></pre></section>")
    parts.append("</main></body></html>")
    return "\n".join(parts)


def _prose(text: str) -> str:
    """A text as HTML, with what stands in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


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


def _parameter_row(parameter: Mapping[str, Any]) -> str:
    name = parameter["name"] + ("" if parameter.get("required") else " (optional)")
    return _row(name, parameter["in"], parameter["schema"], parameter.get("description", ""))


def _body_rows(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    form = _form(operation, document)
    required = form.get("required", ())
    return [
        _row(field + ("" if field in required else " (optional)"), "body", entry, entry.get("description", ""))
        for field, entry in form.get("properties", {}).items()
    ]


def _row(name: str, place: str, schema: Mapping[str, Any], meaning: str) -> str:
    return (
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(place)}</td><td>{escape(_type(schema))}</td>"
        f"<td>{_prose(meaning)}</td></tr>"
    )


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    return str(schema.get("type", "anything"))
