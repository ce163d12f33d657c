"""Settings -> adapters, piece by piece; `main` puts them together."""

import os
import socket
from dataclasses import dataclass

from app.agent.turn import ContextSettings, Limits, Workbench
from app.api.readiness import Check, Readiness
from app.config import Settings
from app.context.estimate import HeuristicEstimator
from app.context.skills import listing
from app.conversation.messages import Content
from app.conversation.model_profile import ModelProfile
from app.conversation.request import ToolDefinition
from app.conversation.run import Run
from app.conversation.session import Session
from app.conversation.tool_allow import Allowed
from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.usage import Usage
from app.errors import HangoError
from app.filesystem.limited import LimitedFiles
from app.filesystem.local import LocalFiles
from app.filesystem.memory import MemoryFiles
from app.filesystem.notes_file import NotesFile
from app.filesystem.results import ResultFiles
from app.filesystem.shared_workspace import SharedWorkspace
from app.filesystem.skills import SkillFolder
from app.mcp.config_file import read_commands
from app.mcp.opener import make_opener
from app.mcp.servers import McpServers
from app.memory.notebook import Notebook
from app.middleware.chain import Skills, no_skills
from app.ports import Estimator, EventLog, FileBackend, Provider, RunStore, SessionStore, Tool, TranscriptStore
from app.ports.skills import SkillLibrary
from app.sessions.closing import Closer
from app.sessions.exporting import Exports
from app.sessions.forking import Forks
from app.sessions.importing import Imports
from app.sessions.opening import Offer
from app.sessions.planting import Planter
from app.sessions.profiles import Profiles, effective_profile
from app.sessions.service import Sessions
from app.sessions.transfers import Transfers
from app.storage.engine import Pool, readable_address
from app.storage.faults import UNREACHABLE
from app.storage.notes import PostgresNotes
from app.system import RandomIds, SystemClock
from app.tools.compact_conversation import CompactConversation
from app.tools.file_tools import file_tools
from app.tools.load_skill import LoadSkill
from app.tools.remember import Remember
from app.tools.task import Task
from app.turns.admission import Admission
from app.turns.service import Turns
from app.turns.subagents import Subagents

# A limit in tokens holds for every release as one in bytes; models take about this many a token.
BYTES_PER_TOKEN = 2.5


def make_notebook(
    settings: Settings, pool: Pool, sessions: SessionStore, provider: Provider, estimator: Estimator
) -> Notebook:
    summarizer = make_context_settings(settings).summarizer

    def model_for(session: Session) -> ModelProfile:
        return summarizer(effective_profile(settings.profile, session))

    return Notebook(
        notes=PostgresNotes(pool),
        sessions=sessions,
        provider=provider,
        estimator=estimator,
        clock=SystemClock(),
        most=settings.memory_max_lines,
        merges=settings.memory_compression,
        model_for=model_for,
    )


def make_tool_servers(settings: Settings) -> McpServers | None:
    """None where no session may have any. Raises StartupError, without the client's library too."""
    commands = read_commands(settings.mcp_config) if settings.mcp_config else ()
    if not commands and settings.mcp_allow == Allowed():
        return None
    opener = make_opener(settings.mcp_allow, commands, settings.tool_timeout_s)
    return McpServers([command.server for command in commands], opener, SystemClock())


def make_closer(store: SessionStore, sessions: Sessions, notebook: Notebook | None) -> Closer:
    if notebook is None:
        return Closer(store, None)

    async def conclude(session: Session) -> Usage:
        return await notebook.conclude(session, *await sessions.remains(session.id))

    return Closer(store, conclude)


def make_turns(settings: Settings, bench: Workbench, runs: RunStore, events: EventLog, profiles: Profiles) -> Turns:
    def profile_of(session: Session, model: str) -> ModelProfile:
        return effective_profile(profiles, session, model)

    admission = Admission(bench.clock, settings.max_live_runs_per_tenant, settings.max_turns_per_minute)
    return Turns(bench, runs, events, bench.estimator, profile_of, _owner(), settings.lease_s, admission)


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{RandomIds().new('own')}"


def make_sessions(
    settings: Settings, store: SessionStore, bench: Workbench, profiles: Profiles, servers: McpServers | None
) -> Sessions:
    async def tools_of(session: Session) -> tuple[ToolDefinition, ...]:
        return bench.known_tools(session).definitions

    return Sessions(
        store=store,
        transcript=bench.transcript,
        files=bench.files,
        ids=bench.ids,
        estimator=bench.estimator,
        profiles=profiles,
        base_system=bench.base_system,
        offer=Offer(
            frozenset(tool.name for tool in bench.tools.definitions),
            servers.names if servers else frozenset(),
            settings.mcp_allow,
        ),
        tools_of=tools_of,
        ledgers=bench.ledgers,
        caches=bench.provider.capabilities.prompt_caching,
        max_sessions=settings.max_sessions_per_tenant,
    )


def make_transfers(sessions: Sessions) -> Transfers:
    stores = (sessions.store, sessions.transcript, sessions.ledgers, sessions.files)
    planter = Planter(sessions.store, sessions.files, sessions.ids, sessions.max_sessions)
    return Transfers(
        Forks(*stores, sessions.ids, planter),
        Exports(*stores),
        Imports(sessions.ids, sessions.profiles, sessions.offer, planter),
    )


def make_readiness(turns: Turns, pool: Pool, files: FileBackend) -> Readiness:
    return Readiness(
        [
            Check("open", turns.check_open, "The server does not answer."),
            Check("database", pool.reach, UNREACHABLE),
            Check("schema", pool.check, UNREACHABLE),
            Check("files", files.check, "The disk of the session files does not answer."),
        ]
    )


def rendered(
    stored: FileBackend, transcript: TranscriptStore, notebook: Notebook | None, sessions: SessionStore
) -> FileBackend:
    """With the areas that are made of rows, and the workspace that subagents share."""

    async def root_of(session_id: str) -> str:
        session = await sessions.find(session_id)
        return session.id if session.parent_session_id is None else await root_of(session.parent_session_id)

    shared = SharedWorkspace(stored, root_of)
    return ResultFiles(NotesFile(shared, notebook.read) if notebook else shared, transcript)


def own_tools(files: FileBackend, notebook: Notebook | None, library: SkillLibrary | None) -> tuple[Tool, ...]:
    own = (*file_tools(files, SystemClock()), CompactConversation())
    more = (Remember(notebook.remember),) if notebook else ()
    return (*own, *more, *((LoadSkill(library),) if library else ()))


def make_library(settings: Settings) -> SkillLibrary | None:
    return SkillFolder(settings.skills_dir) if settings.skills_dir else None


def skills_of(library: SkillLibrary | None) -> Skills:
    if library is None:
        return no_skills

    async def listed() -> Content:
        return listing(await library.list())

    return listed


@dataclass
class Delegation:
    """Subagents need the turns, which need the tools, which need the subagents: `subagents` comes last."""

    on: bool
    subagents: Subagents | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (Task(self._delegate),) if self.on else ()

    async def _delegate(self, request: ToolRequest, prompt: str) -> ToolResult:
        assert self.subagents is not None
        return await self.subagents.delegate(request, prompt)

    async def after_run(self, run: Run) -> None:
        if self.on and self.subagents is not None:
            await self.subagents.end_children(run)


def make_context_settings(settings: Settings) -> ContextSettings:
    def summarizer(profile: ModelProfile) -> ModelProfile:
        """A model that names no other one summarizes for itself, within the window that its session has."""
        other = profile.summarizer_model
        return settings.profile(other) if other and other != profile.model else profile

    return ContextSettings(
        compaction=settings.compaction,
        count_timeout_s=settings.count_tokens_timeout_s,
        argument_limit=int(settings.tool_arg_max_tokens * BYTES_PER_TOKEN),
        cache_ttl=settings.cache_ttl,
        summarizer=summarizer,
    )


def make_limits(settings: Settings) -> Limits:
    return Limits(
        tool_timeout_s=settings.tool_timeout_s,
        model_calls=settings.max_model_calls_per_turn,
        parallel_tools=settings.max_parallel_tools,
        client_tool_s=settings.client_tool_timeout_s,
        approval_s=settings.approval_timeout_s,
    )


def make_stored_files(settings: Settings) -> LocalFiles | MemoryFiles:
    return LocalFiles(settings.data_dir / "files") if settings.files_backend == "local" else MemoryFiles()


def make_files(settings: Settings) -> FileBackend:
    return LimitedFiles(make_stored_files(settings), settings.max_file_bytes, settings.max_workspace_bytes)


async def faults(settings: Settings, database_url: str) -> list[str]:
    """What keeps the server from working, one line each; a schema that is behind does not."""
    pool = Pool(database_url, 1)
    found: list[str] = []

    async def reach() -> None:
        with readable_address():
            async with pool.connection():
                pass

    try:
        make_tool_servers(settings)
    except HangoError as error:
        found.append(error.detail)
    for check in (reach, make_files(settings).check):
        try:
            await check()
        except HangoError as error:
            found.append(error.detail)
    await pool.close()
    return found


async def make_estimator(settings: Settings) -> Estimator:
    if settings.estimator == "tiktoken":
        from app.providers.tiktoken_estimator import load_estimator

        return await load_estimator()
    return HeuristicEstimator()


def make_provider(settings: Settings) -> Provider:
    if settings.provider_name == "anthropic" and settings.anthropic_api_key is not None:
        from app.providers.anthropic.provider import AnthropicProvider

        key = settings.anthropic_api_key.get_secret_value()
        return AnthropicProvider(key, settings.anthropic_base_url, SystemClock())
    if settings.provider_name == "openai":
        from app.providers.openai.provider import OpenAIProvider

        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else ""
        return OpenAIProvider(key, settings.openai_base_url, SystemClock())
    from app.providers.offline.provider import OfflineProvider

    return OfflineProvider()
