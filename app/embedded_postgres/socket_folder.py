"""The private folder of the unix socket: who can enter it is the database's superuser."""

import os
import shutil
from pathlib import Path

from app.embedded_postgres.account import Account
from app.errors import StartupError


def make_socket_folder(folder: Path, account: Account) -> None:
    """Anew, for the holder of the lock. Raises StartupError when somebody else has taken the name before."""
    if os.path.lexists(folder):
        owner = folder.lstat().st_uid
        if owner not in (account.uid, os.geteuid()):
            raise StartupError(f"{folder}, the place of the database's socket, belongs to user {owner}; remove it.")
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    account.own(folder)
