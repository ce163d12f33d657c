"""The operating system's account that PostgreSQL runs as: it refuses to be root."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from app.errors import StartupError


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int

    def own(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid, follow_symlinks=False)


def choose_account(cluster: Path) -> Account:
    """The caller's own; for root the owner of the cluster, and `nobody` when there is none yet.

    Raises StartupError when the cluster is another user's.
    """
    owner = cluster.stat() if cluster.exists() else None
    if os.geteuid() != 0:
        if owner and owner.st_uid != os.geteuid():
            raise StartupError(f"{cluster} belongs to user {owner.st_uid}; start hango as that user or as root.")
        return Account(os.geteuid(), os.getegid())
    if owner is None or not (cluster / "PG_VERSION").exists():
        return _nobody()
    if owner.st_uid == 0:
        raise StartupError(f"{cluster} belongs to root, as whom PostgreSQL never runs: chown -R nobody '{cluster}'")
    return Account(owner.st_uid, owner.st_gid)


def _nobody() -> Account:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise StartupError("PostgreSQL refuses to run as root, and this machine has no user `nobody`.") from None
    return Account(entry.pw_uid, entry.pw_gid)
