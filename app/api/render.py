"""Values of the vocabulary as the JSON of the contract."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.api.json_text import timestamp
from app.conversation.messages import Block, StoredMessage
from app.conversation.model_profile import ModelProfile
from app.conversation.records import Cut, Record
from app.conversation.run import KINDS, Run, ToolCall
from app.conversation.session import Session
from app.conversation.tool_servers import ToolServer
from app.conversation.usage import Usage, UsageByPurpose, usage_to_json
from app.ports import FileInfo

Json = dict[str, Any]


def session_json(session: Session) -> Json:
    settings = session.settings
    return {
        "id": session.id,
        "title": session.title,
        "model": session.model,
        "system": list(session.system),
        "status": session.status,
        "metadata": settings.metadata,
        "settings": {
            "max_tokens": settings.max_tokens,
            "thinking": settings.thinking,
            "context": settings.context,
            "mcp_servers": [_server_json(server) for server in settings.mcp_servers],
            "tools": list(settings.tools),
            "approvals": settings.approvals,
        },
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
    }


def _server_json(server: ToolServer) -> Json:
    """Headers are write-only: their names are all that is shown."""
    allowed = server.allowed_tools
    return {
        "name": server.name,
        "url": server.url.partition("?")[0],
        "header_names": sorted(server.headers),
        "allowed_tools": None if allowed is None else list(allowed),
    }


def message_json(row: StoredMessage) -> Json:
    return {
        "id": row.id,
        "seq": row.seq,
        "run_id": row.run_id,
        "role": row.role,
        "content": list(row.content),
        "stop_reason": row.stop_reason,
        "usage": row.usage.to_json() if row.usage else None,
        "user_visible": row.user_visible,
        "agent_visible": row.agent_visible,
        "created_at": timestamp(row.created_at),
    }


def run_json(run: Run, text: str | None, awaited: Sequence[tuple[ToolCall, Block]]) -> Json:
    return {
        "id": run.id,
        "session_id": run.session_id,
        "turn": run.turn,
        "kind": run.kind,
        "status": str(run.status),
        "waiting_for": [_awaited_json(call, block) for call, block in awaited],
        "model": run.model,
        "stop_reason": run.stop_reason,
        "text": text,
        "usage": usage_to_json(run.usage),
        "error": run.error,
        "trace_id": run.state.get("trace_id"),
        "created_at": timestamp(run.created_at),
        "ended_at": timestamp(run.ended_at) if run.ended_at else None,
    }


def _awaited_json(call: ToolCall, block: Block) -> Json:
    return {
        "tool_use_id": call.tool_use_id,
        "name": call.name,
        "kind": KINDS[call.state],
        "input": block["input"],
        "deadline": timestamp(call.deadline) if call.deadline else None,
    }


def record_json(record: Record) -> Json:
    if isinstance(record, Cut):
        usage = record.usage.to_json() if record.usage else None
        return {**asdict(record), "tier": str(record.tier), "reason": str(record.reason), "usage": usage}
    return {**asdict(record), "tier": str(record.tier)}


def usage_json(totals: UsageByPurpose) -> Json:
    whole = sum(totals.values(), Usage())
    ratio = whole.read_ratio
    return {"by_purpose": usage_to_json(totals), "cache_read_ratio": None if ratio is None else round(ratio, 4)}


def file_json(info: FileInfo, put_away: Iterable[Record]) -> Json:
    modified = timestamp(info.modified_at) if info.modified_at else None
    return {
        "path": info.path,
        "size": info.size,
        "modified_at": modified,
        "put_away": [
            {
                "record_id": record.id,
                "tier": str(record.tier),
                "reason": str(record.reason) if isinstance(record, Cut) else None,
            }
            for record in put_away
        ],
    }


def model_json(profile: ModelProfile) -> Json:
    return {
        "model": profile.model,
        "max_input_tokens": profile.max_input_tokens,
        "max_output_tokens": profile.max_output_tokens,
        "context_window_tokens": profile.working_window,
        "trigger_frac": profile.trigger_frac,
        "keep_frac": profile.keep_frac,
        "micro_frac": profile.micro_frac,
        "summarizer_model": profile.summarizer_model,
        "prompt_caching": profile.prompt_caching,
        "cache_min_tokens": profile.cache_min_tokens,
        "thinking_binding": profile.thinking_binding,
    }


def page_json(data: list[Json], following: object | None) -> Mapping[str, Any]:
    return {"data": data, "next": None if following is None else str(following)}
