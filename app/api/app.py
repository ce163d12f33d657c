"""The HTTP application over the services that the wiring gives it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

from app.api import context, events, files, operations, problems, reference, sessions, transfers, turns
from app.api.answers import Problem
from app.api.block_schemas import COMPONENTS
from app.api.door import Door
from app.api.event_types import AnyFrame
from app.conversation.api_key import ApiKey

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
# Asked every few seconds by machines: no spans, no metrics of their own.
UNTOLD = "/livez$,/readyz$,/metrics$"
_COMPONENTS = "#/components/schemas/{model}"


class Api(FastAPI):
    def __init__(self, locked: bool, **options: Any) -> None:
        """`locked`: the server has keys, so its page says that one is needed."""
        super().__init__(**options)
        self._locked = locked

    def openapi(self) -> dict[str, Any]:
        """With the shapes that no route names by itself: blocks, problem documents and the frames of a stream."""
        document = super().openapi()
        document["components"]["schemas"] |= COMPONENTS
        for model in (Problem, AnyFrame):
            schema = model.model_json_schema(ref_template=_COMPONENTS)
            document["components"]["schemas"] |= {**schema.pop("$defs", {}), model.__name__: schema}
        for operation in (operation for path in document["paths"].values() for operation in path.values()):
            if not self._locked:
                operation.pop("security", None)
            for parameter in operation.get("parameters", ()):
                _forget_null(parameter["schema"])
        return document


def _forget_null(schema: dict[str, Any]) -> None:
    """Nothing in a query or a header is null: what is optional is left out."""
    kinds = [kind for kind in schema.pop("anyOf", ()) if kind != {"type": "null"}]
    for kind in kinds:
        schema |= kind


def create_api(lifespan: Lifespan, keys: Sequence[ApiKey], max_body_bytes: int) -> FastAPI:
    """`lifespan` sets `app.state.services` before the first request."""
    app = Api(
        bool(keys),
        title="hango",
        version="1",
        summary="An agent-run server",
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url=None,  # and with it the framework's own pages
    )
    app.include_router(transfers.imports)
    for room in (sessions, transfers, context, turns, events, files, operations, reference):
        app.include_router(room.router)
    problems.install(app)
    app.add_middleware(Door, keys=keys, max_body_bytes=max_body_bytes)
    FastAPIInstrumentor.instrument_app(app, excluded_urls=UNTOLD, exclude_spans=["receive", "send"])
    return app
