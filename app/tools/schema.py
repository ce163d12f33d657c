"""Pieces of the tools' input schemas."""

from collections.abc import Mapping
from typing import Any

from app.conversation.request import ToolDefinition


def text(description: str, **rules: int) -> Mapping[str, Any]:
    return {"type": "string", "description": description, **rules}


def integer(description: str, **rules: int) -> Mapping[str, Any]:
    return {"type": "integer", "description": description, **rules}


def flag(description: str) -> Mapping[str, Any]:
    return {"type": "boolean", "description": description}


def define(name: str, description: str, required: list[str], **properties: Mapping[str, Any]) -> ToolDefinition:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolDefinition(name, description, schema)
