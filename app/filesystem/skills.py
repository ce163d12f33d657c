"""Skills in a folder: `<root>/<name>/SKILL.md` and what lies beside it. Read only, and no link below it is followed."""

import asyncio
import errno
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.context.skills import parse_skill
from app.conversation.clean import clean_text
from app.conversation.skills import Skill
from app.conversation.virtual_path import Area, canonical, parse_path
from app.errors import BodyTooLarge, FileMissing, HangoError, PathRefused
from app.filesystem import descent
from app.filesystem.os_errors import IS_A_FOLDER, LINK, NO_FILE

log = logging.getLogger(__name__)

SKILL_FILE = "SKILL.md"
MAX_FILE_BYTES = 262_144
MAX_SKILLS = 100
MAX_FILES = 500  # of one skill that are listed

Stamp = tuple[int, ...]


class SkillFolder:
    """Implements `ports.SkillLibrary`. A SKILL.md is read again when its size, time or identity has changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[Stamp, Skill | None]] = {}
        self._told: set[tuple[str, str]] = set()

    async def list(self) -> Sequence[Skill]:
        return await asyncio.to_thread(self._list)

    async def files(self, name: str) -> Sequence[str]:
        return await asyncio.to_thread(self._files, name)

    async def read(self, name: str, path: str) -> bytes:
        return await asyncio.to_thread(self._read, name, path)

    def _list(self) -> Sequence[Skill]:
        try:
            names = sorted(name for name in os.listdir(self._root) if not name.startswith("."))
        except OSError as error:
            self._tell(str(self._root), f"cannot be read: {error.strerror}")
            return ()
        known = {name: self._look(name) for name in names if (self._root / name).is_dir()}
        self._known = {name: found for name, found in known.items() if found is not None}
        skills = [skill for _, skill in self._known.values() if skill is not None]
        for skill in skills[MAX_SKILLS:]:
            self._tell(f"{skill.name}/{SKILL_FILE}", f"left out: at most {MAX_SKILLS} skills are listed")
        return skills[:MAX_SKILLS]

    def _look(self, name: str) -> tuple[Stamp, Skill | None] | None:
        """None for a folder that cannot be read: it is looked at again the next time."""
        try:
            with self._opened(name, ()) as folder:
                info = os.stat(SKILL_FILE, dir_fd=folder, follow_symlinks=False)
            stamp = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
            known = self._known.get(name)
            return known if known and known[0] == stamp else (stamp, self._parse(name))
        except HangoError as error:
            self._tell(f"{name}/{SKILL_FILE}", error.detail)
            return None

    def _parse(self, name: str) -> Skill | None:
        try:
            return parse_skill(clean_text(self._read(name, SKILL_FILE).decode()), name)
        except UnicodeDecodeError:
            self._tell(f"{name}/{SKILL_FILE}", "must be UTF-8")
        except ValueError as error:
            self._tell(f"{name}/{SKILL_FILE}", str(error))
        return None

    def _tell(self, file: str, rule: str) -> None:
        """Each fault once."""
        if (file, rule) not in self._told:
            self._told.add((file, rule))
            log.error("skill ignored: %s: %s", file, rule)

    def _files(self, name: str) -> Sequence[str]:
        with self._opened(name, ()) as folder:
            found = sorted(info.path[1:] for info in descent.walk(folder, f"/{Area.WORKSPACE}"))
        return [path.removeprefix(f"{Area.WORKSPACE}/") for path in found][:MAX_FILES]

    def _read(self, name: str, path: str) -> bytes:
        *folders, file = _names(path)
        with (
            self._opened(name, folders) as folder,
            descent.opened(folder, file, os.O_RDONLY) as descriptor,
            open(descriptor, "rb", closefd=False) as opened,
        ):
            data = opened.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise BodyTooLarge(f"A file of a skill has at most {MAX_FILE_BYTES} bytes.", limit_bytes=MAX_FILE_BYTES)
        return data

    @contextmanager
    def _opened(self, name: str, folders: Sequence[str]) -> Iterator[int]:
        try:
            root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                with descent.entered(root, [*_names(name), *folders], create=False) as folder:
                    yield folder
            finally:
                os.close(root)
        except FileNotFoundError:
            raise FileMissing(NO_FILE) from None
        except OSError as error:
            refused = LINK if error.errno == errno.ELOOP else f"The file cannot be read: {error.strerror}."
            raise PathRefused(refused) from None


def _names(path: str) -> tuple[str, ...]:
    """The names of a relative path, under the rules of virtual ones. Raises PathRefused."""
    if path.startswith("/"):
        raise PathRefused("The path of a skill's file is relative to its folder.")
    _, names = parse_path(canonical(Area.WORKSPACE, (path,)))
    if not names:
        raise PathRefused(IS_A_FOLDER)
    return names
