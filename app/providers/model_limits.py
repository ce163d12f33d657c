"""Limits of models that no table names, as the provider's model endpoint tells them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from app.conversation.model_profile import ModelProfile
from app.errors import ProviderFailure

log = logging.getLogger(__name__)

Profiles = Callable[[str], ModelProfile]


@runtime_checkable
class Directory(Protocol):
    def retrieve_model(self, model: str) -> Awaitable[tuple[int, int] | None]:
        """Max input and output tokens."""
        ...


class ModelLimits:
    """Profiles by model: the table's, and for a model it does not name what the provider told."""

    def __init__(self, profiles: Profiles, provider: object, timeout_s: float) -> None:
        """A provider without a model endpoint has nothing to tell."""
        self._profiles = profiles
        self._directory = provider if isinstance(provider, Directory) else None
        self._timeout_s = timeout_s
        self._told: dict[str, tuple[int, int] | None] = {}

    def profile(self, model: str) -> ModelProfile:
        profile = self._profiles(model)
        limits = None if profile.known else self._told.get(model)
        if limits is None:
            return profile
        return replace(profile, max_input_tokens=limits[0], max_output_tokens=limits[1], known=True)

    async def learn(self, model: str) -> None:
        """Asks once per model; an endpoint that fails is asked again at the next turn, which goes on without it."""
        if self._directory is None or model in self._told or self._profiles(model).known:
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                self._told[model] = await self._directory.retrieve_model(model)
        except (ProviderFailure, TimeoutError) as error:
            log.warning("limits of %s not learned: %s", model, type(error).__name__)
