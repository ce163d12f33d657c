"""GET /v1/models and /v1/models/{id}."""

from typing import Any

from tests.double.errors import Refused
from tests.double.settings import Settings


def answer_models(path: str, settings: Settings) -> dict[str, Any]:
    name = path.removeprefix("/v1/models").strip("/")
    if name:
        return model_info(name, settings)
    data = [model_info(known, settings) for known in settings.models]
    return {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}


def model_info(name: str, settings: Settings) -> dict[str, Any]:
    if "/" in name:
        raise Refused("Not found", 404)
    model = settings.model(name)
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": settings.window_of(model),
        "max_tokens": model.max_output,
    }
