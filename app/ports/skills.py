"""The skills of a server."""

from collections.abc import Sequence
from typing import Protocol

from app.conversation.skills import Skill


class SkillLibrary(Protocol):
    async def list(self) -> Sequence[Skill]:
        """By name, as they are now. What is wrong with one is logged, and it is left out."""
        ...

    async def files(self, name: str) -> Sequence[str]:
        """Paths of a skill's files, relative to its folder, sorted. Raises FileMissing."""
        ...

    async def read(self, name: str, path: str) -> bytes:
        """Raises FileMissing, PathRefused, BodyTooLarge."""
        ...
