"""All tools of a session, put together in one place: the server's own, and those of the tool servers it may use."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.conversation.request import ToolDefinition
from app.conversation.session import Session
from app.ports import Tool, ToolServers
from app.tools.registry import Registry


@dataclass(frozen=True, slots=True)
class SessionTools:
    """Implements `agent.turn.MoreTools`. `own`: tools of every session."""

    own: Sequence[Tool]
    servers: ToolServers

    def known(self, session: Session, sent: Sequence[ToolDefinition]) -> Registry:
        return Registry(self.own, listed=self.servers.tools(session.settings.mcp_servers, sent))

    async def asked(self, session: Session, sent: Sequence[ToolDefinition], afresh: bool) -> Registry:
        await self.servers.ask(session.settings.mcp_servers, sent, afresh)
        return self.known(session, sent)
