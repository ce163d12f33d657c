"""Settings: the only reader of the environment. A bad value is a start-up error that names the variable."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from app.conversation.api_key import ApiKey, parse_keys
from app.conversation.model_profile import MIN_WINDOW, TABLE, ModelProfile, family, merge, resolve
from app.conversation.presets import HANGO, PRESETS
from app.conversation.tool_allow import Allowed
from app.conversation.virtual_path import MAX_WORKSPACE_FILE_BYTES
from app.errors import StartupError

PREFIX = "HANGO_"
# Settings under their usual names. Of the many of OpenTelemetry only what decides whether its SDK is started at all: it
# reads the others by itself.
FOREIGN = {
    name: name.upper()
    for name in (
        "anthropic_api_key",
        "anthropic_base_url",
        "openai_api_key",
        "openai_base_url",
        "otel_sdk_disabled",
        "otel_traces_exporter",
        "otel_metrics_exporter",
        "otel_exporter_otlp_endpoint",
        "otel_exporter_otlp_traces_endpoint",
        "otel_exporter_otlp_metrics_endpoint",
        "otel_exporter_otlp_protocol",
    )
}
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Settings(BaseModel):
    """Each field is the variable HANGO_<FIELD>; those in FOREIGN keep their usual names. Units are in the names."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: str = ""
    data_dir: Path
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    api_keys: tuple[ApiKey, ...] = ()
    provider: Literal["", "anthropic", "openai", "offline"] = ""
    anthropic_api_key: SecretStr | None = None
    anthropic_base_url: str | None = None
    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    model: str = ""
    model_profiles: dict[str, dict[str, Any]] = Field(default_factory=dict)
    summarizer_model: str | None = None
    estimator: Literal["heuristic", "tiktoken"] = "heuristic"
    compaction: bool = True
    context_preset: str = HANGO.name
    context_window_tokens: int | None = Field(default=None, ge=MIN_WINDOW)
    context_trigger_frac: float | None = None
    context_keep_frac: float | None = None
    context_micro_frac: float | None = None
    max_view_messages: int | None = Field(default=None, ge=0)
    tool_pair_summaries: bool | None = None
    tool_arg_max_tokens: int = Field(default=500, ge=1)
    cache_ttl: Literal["auto", "5m", "1h"] = "auto"
    count_tokens_timeout_s: float = Field(default=5, gt=0)
    tool_timeout_s: float = Field(default=600, gt=0)
    client_tool_timeout_s: float = Field(default=3600, gt=0)
    approval_timeout_s: float = Field(default=86_400, gt=0)
    max_model_calls_per_turn: int = Field(default=1000, ge=1)
    mcp_allow: Allowed = Allowed()
    mcp_config: Path | None = None
    max_parallel_tools: int = Field(default=8, ge=1)
    max_body_bytes: int = Field(default=33_554_432, ge=1024)
    max_file_bytes: int = Field(default=MAX_WORKSPACE_FILE_BYTES, ge=1, le=MAX_WORKSPACE_FILE_BYTES)
    max_workspace_bytes: int | None = Field(default=None, ge=1)
    max_sessions_per_tenant: int | None = Field(default=None, ge=1)
    max_live_runs_per_tenant: int | None = Field(default=None, ge=1)
    max_turns_per_minute: int | None = Field(default=None, ge=1)
    db_pool_size: int = Field(default=10, ge=2)
    lease_s: float = Field(default=15, ge=1)
    drain_s: float = Field(default=20, ge=0)
    subagents: bool = False
    subagent_depth: int = Field(default=1, ge=1, le=5)
    max_subagents_per_turn: int = Field(default=20, ge=1)
    memory: bool = False
    memory_max_lines: int = Field(default=200, ge=1)
    memory_compression: bool = True
    skills_dir: Path | None = None
    files_backend: Literal["local", "memory"] = "local"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    metrics: bool = True
    otel_content: bool = False
    otel_sdk_disabled: bool = False
    otel_traces_exporter: Literal["", "otlp", "none"] = ""
    otel_metrics_exporter: Literal["", "otlp", "none"] = ""
    otel_exporter_otlp_endpoint: str = ""
    otel_exporter_otlp_traces_endpoint: str = ""
    otel_exporter_otlp_metrics_endpoint: str = ""
    otel_exporter_otlp_protocol: Literal["http/protobuf"] = "http/protobuf"

    @field_validator("api_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: Any) -> Any:
        return parse_keys(value) if isinstance(value, str) else value

    @field_validator("mcp_allow", mode="before")
    @classmethod
    def _parse_allowed(cls, value: Any) -> Any:
        return Allowed.parse(value.split(",")) if isinstance(value, str) else value

    @field_validator("model_profiles", mode="before")
    @classmethod
    def _parse_profiles(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("context_preset")
    @classmethod
    def _check_preset(cls, value: str) -> str:
        if value not in PRESETS:
            raise ValueError(f"must be one of {', '.join(PRESETS)}")
        return value

    @field_validator("database_url")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value and not value.startswith(("postgresql://", "postgres://", "postgresql+asyncpg://")):
            raise ValueError("must begin with postgresql://")
        if not _is_readable(value):
            raise ValueError("no host:port that can be read; in a password write @ : / ? # [ ] as %40 %3A %2F ...")
        return value

    @field_validator("model")
    @classmethod
    def _check_model(cls, value: str) -> str:
        if any(char.isspace() or not char.isprintable() for char in value):
            raise ValueError("a model's name has no white space")
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.host not in LOOPBACK and not self.api_keys:
            raise ValueError(f"{PREFIX}HOST: a public address needs {PREFIX}API_KEYS (tenant:key)")
        if self.provider == "anthropic" and self.anthropic_api_key is None:
            raise ValueError(f"{PREFIX}PROVIDER: anthropic needs ANTHROPIC_API_KEY")
        if self.provider == "openai":
            self._check_openai()
        self._check_profiles()
        return self

    def _check_openai(self) -> None:
        """Every server has its own models, and one on the same machine asks for no key."""
        if self.openai_api_key is None and self.openai_base_url is None:
            raise ValueError(
                f"{PREFIX}PROVIDER: openai needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server without keys"
            )
        if not self.model:
            raise ValueError(f"{PREFIX}MODEL: openai needs the name of one of its server's models")

    def _check_profiles(self) -> None:
        try:
            self.profiles()
        except ValueError as error:
            own = str(error).startswith(tuple(f"{name}{end}" for name in self.model_profiles for end in ":."))
            fields = ("context_preset", "context_trigger_frac", "context_keep_frac", "context_micro_frac")
            marks = [name.upper() for name in fields if name in self.model_fields_set]
            sources = ["MODEL_PROFILES"] if own else ["MAX_VIEW_MESSAGES"] if "max_view" in str(error) else marks
            raise ValueError(f"{', '.join(PREFIX + source for source in sources)}: {error}") from None

    @property
    def provider_name(self) -> Literal["anthropic", "openai", "offline"]:
        return self.provider or ("anthropic" if self.anthropic_api_key else "offline")

    @property
    def model_name(self) -> str:
        return self.model or ("offline" if self.provider_name == "offline" else "claude-sonnet-4-6")

    @property
    def sends_traces(self) -> bool:
        return self._sends(self.otel_traces_exporter, self.otel_exporter_otlp_traces_endpoint)

    @property
    def sends_metrics(self) -> bool:
        return self._sends(self.otel_metrics_exporter, self.otel_exporter_otlp_metrics_endpoint)

    def _sends(self, exporter: str, endpoint: str) -> bool:
        """An exporter that is named, or an address to send to; nothing is sent by default."""
        asked = exporter == "otlp" or (not exporter and bool(endpoint or self.otel_exporter_otlp_endpoint))
        return asked and not self.otel_sdk_disabled

    def profiles(self) -> dict[str, ModelProfile]:
        """The table in force, by model."""
        return {name: self.profile(name) for name in dict.fromkeys((*TABLE, *self.model_profiles, self.model_name))}

    def profile(self, model: str) -> ModelProfile:
        """The shipped table and the preset, under the HANGO_CONTEXT_* settings, under HANGO_MODEL_PROFILES."""
        base = resolve(model, TABLE)
        window = self.context_window_tokens
        general = {
            "context_window_tokens": min(window, base.max_input_tokens) if window else None,
            "trigger_frac": self.context_trigger_frac,
            "keep_frac": self.context_keep_frac,
            "micro_frac": self.context_micro_frac,
            "summarizer_model": self.summarizer_model,
            "max_view_messages": self.max_view_messages,
            "tool_pair_summaries": self.tool_pair_summaries,
        }
        own = self.model_profiles.get(model, self.model_profiles.get(family(model)))
        chosen = {**{name: value for name, value in general.items() if value is not None}, **(own or {})}
        merged = merge(base, chosen, PRESETS[self.context_preset])
        return replace(merged, known=base.known or own is not None)


def _is_readable(address: str) -> bool:
    """Whether its hosts and ports are ones, `host:port,host:port`; never told with the part that is wrong."""
    try:
        hosts = urlsplit(address).netloc.rpartition("@")[2].split(",")
    except ValueError:
        return False
    ports = [host.rpartition("]")[2].partition(":")[2] for host in hosts]
    return all(not port or (port.isdecimal() and 0 < int(port) < 65536) for port in ports)


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """The user's data folder, as root a system one; never inside a clone."""
    if os.geteuid() == 0:
        return Path("/var/lib/hango")
    return Path(environ.get("XDG_DATA_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".local/share") / "hango"


def environment_with(database_url: str) -> dict[str, str]:
    """The environment of a child process that works on this database."""
    return {**os.environ, f"{PREFIX}DATABASE_URL": database_url}


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Raises StartupError; `extra["problems"]` lists one line per bad variable."""
    names = {field: FOREIGN.get(field, PREFIX + field.upper()) for field in Settings.model_fields}
    unknown = sorted(name for name in environ if name.startswith(PREFIX) and name not in names.values())
    values: dict[str, Any] = {field: environ[name] for field, name in names.items() if environ.get(name)}
    values.setdefault("data_dir", default_data_dir(environ))
    problems = [f"{name}: no such setting" for name in unknown]
    try:
        settings = Settings(**values)
        if settings.skills_dir and not settings.skills_dir.is_dir():
            problems.append(f"{PREFIX}SKILLS_DIR: there is no such folder")
    except ValidationError as error:
        problems += [_line(names, item) for item in error.errors(include_input=False, include_url=False)]
    except ValueError as error:
        problems.append(str(error))
    if problems:
        raise StartupError("Bad settings: " + "; ".join(problems), problems=problems)
    return settings


def _line(names: Mapping[str, str], item: Mapping[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{names[str(item['loc'][0])]}: {message}" if item["loc"] else message
