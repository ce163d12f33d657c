"""Skills: instructions for certain tasks that the agent reads when it needs them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skill:
    """`name` is that of its folder; `description` is one line that says what it is for."""

    name: str
    description: str
