"""What a running postmaster says of itself in its cluster."""

import socket
from dataclasses import dataclass
from pathlib import Path

from app.embedded_postgres.layout import SOCKET_FILE


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    socket_folder: Path
    status: str

    @property
    def ready(self) -> bool:
        """The file may be a dead one's, so the socket has to answer too."""
        if self.status != "ready":
            return False
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self.socket_folder / SOCKET_FILE)) == 0


def read_postmaster(cluster: Path) -> Postmaster | None:
    """From the eight lines of postmaster.pid: 1 process id, 5 socket folder, 8 status. None until all are written."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    return Postmaster(int(lines[0]), Path(lines[4]), lines[7].strip()) if len(lines) == 8 else None
