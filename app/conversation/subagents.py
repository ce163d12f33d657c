"""Sessions of subagents: their ids say what they are."""

from hashlib import blake2b

PREFIX = "sub_"


def is_subagent(session_id: str) -> bool:
    return session_id.startswith(PREFIX)


def subagent_id(session_id: str, run_id: str, tool_use_id: str) -> str:
    """The same for the same call, so that a call that is made again finds its subagent."""
    call = f"{session_id} {run_id} {tool_use_id}".encode()
    return PREFIX + blake2b(call, digest_size=16, person=b"hango subagent").hexdigest()
