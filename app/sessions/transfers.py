"""How sessions go on elsewhere."""

from dataclasses import dataclass

from app.sessions.exporting import Exports
from app.sessions.forking import Forks
from app.sessions.importing import Imports


@dataclass(frozen=True, slots=True)
class Transfers:
    forks: Forks
    exports: Exports
    imports: Imports
