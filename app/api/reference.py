"""The API page at /docs: made here from the OpenAPI document, with no script and nothing from another site.

The framework's own page loads its program from a public network: that tells a third party who looks, runs its code
beside the API, and shows nothing offline.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.api.json_text import JsonResponse

router = APIRouter(include_in_schema=False)

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark }
code, pre { font-family: ui-monospace, monospace; font-size: .9em } pre { overflow-x: auto }
h2 { margin-top: 2.5rem } h3 { margin-bottom: .2rem } td, th { text-align: left; padding: .1rem 1rem .1rem 0 }
"""


@router.get("/openapi.json")
async def document(request: Request) -> Response:
    return JsonResponse(request.app.openapi())


@router.get("/docs")
async def page(request: Request) -> Response:
    return HTMLResponse("\n".join(_page(request.app.openapi())), headers=PAGE_HEADERS)


def _page(api: Mapping[str, Any]) -> Iterator[str]:
    title = escape(f"{api['info']['title']} API, version {api['info']['version']}")
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
    yield '<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p><h2>Endpoints</h2>'
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            yield from _operation(f"{method.upper()} {path}", operation)
    yield "<h2>Shapes</h2>"
    for name, schema in sorted(api["components"]["schemas"].items()):
        yield f'<h3 id="{escape(name)}">{escape(name)}</h3>{_shape(schema)}'
    yield "</body></html>"


def _operation(name: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h3><code>{escape(name)}</code></h3><p>{escape(operation.get('description', operation['summary']))}</p>"
    rows = [
        f"<tr><td><code>{escape(item['name'])}</code></td><td>{escape(item['in'])}</td>"
        f"<td>{escape(item.get('description', ''))}</td></tr>"
        for item in operation.get("parameters", ())
    ]
    if rows:
        yield f"<table><tr><th>parameter</th><th>in</th><th></th></tr>{''.join(rows)}</table>"
    if body := operation.get("requestBody"):
        yield f"<details><summary>Body</summary>{_shape(body['content'])}</details>"
    yield f"<details><summary>Answers</summary>{_shape(operation['responses'])}</details>"


def _shape(schema: Any) -> str:
    return f"<pre>{escape(json.dumps(schema, indent=1, ensure_ascii=False))}</pre>"
