"""The last guard: a request that the provider would refuse is never sent."""

from app.context.blocks import THINKING
from app.context.rules import Violation, violation
from app.conversation.messages import is_blank
from app.conversation.reply import Reply
from app.conversation.request import Breakpoint, ModelRequest
from app.errors import ViewInvalid
from app.middleware.chain import Call, Handler

MAX_BREAKPOINTS = 4  # the Messages API's limit for one request


async def validator(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    """Raises ViewInvalid."""
    broken = violation(request.messages, request.continues) or _misplaced(request)
    if broken is not None:
        raise ViewInvalid(broken.message, broken.rule)
    return await call_next(request, call)


def _misplaced(request: ModelRequest) -> Violation | None:
    if len(request.breakpoints) > MAX_BREAKPOINTS:
        return Violation(0, f"{len(request.breakpoints)} cache breakpoints, at most {MAX_BREAKPOINTS}")
    for point in request.breakpoints:
        if _refused(request, point):
            return Violation(point.message or 0, f"content.{point.block}: no cache breakpoint may stand here")
    return None


def _refused(request: ModelRequest, point: Breakpoint) -> bool:
    content = request.system if point.message is None else request.messages[point.message].content
    block = content[point.block]
    return block["type"] in THINKING or is_blank(block)
