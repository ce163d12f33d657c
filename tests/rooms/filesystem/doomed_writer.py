"""A process that writes session files until something stops it; prints what it was told. Started by tests."""

import asyncio
import os
import resource
import signal
import sys
from pathlib import Path

from app.errors import HangoError
from app.filesystem.local import LocalFiles

OLD, NEW = b"old\n" * 1000, b"new\n" * 500_000
PATH = "/workspace/a"


def die_in(call):
    """The next use of this system call is half done, and then the process is gone."""
    real = getattr(os, call)

    def dying(*arguments, **named):
        if call == "write":
            real(arguments[0], arguments[1][: len(arguments[1]) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(os, call, dying)


async def told(work):
    try:
        await work
    except HangoError as error:
        return f"{error.code}: {error.detail}"
    return "done"


async def try_everything(files):
    for work in (files.write("ses_1", PATH, NEW), files.append("ses_1", PATH, NEW), files.check()):
        sys.stdout.write(await told(work) + "\n")
        sys.stdout.flush()


def leave_privileges(root):
    """As root no permission bit binds. The folder is entered first, since its parents are private, and in a thread, so
    that all modules are loaded that a thread needs: the library's files may be private too."""
    asyncio.run(asyncio.to_thread(os.chdir, root))
    os.chmod(".", 0o555)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def main(mode, root):
    files = LocalFiles(Path(root))
    if mode == "forbidden":
        leave_privileges(root)
        files = LocalFiles(Path())
    if mode in ("write", "fsync", "replace"):
        asyncio.run(files.write("ses_1", PATH, OLD))
        die_in(mode)
    if mode == "limit":
        asyncio.run(files.write("ses_1", PATH, OLD))
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    asyncio.run(try_everything(files))


if __name__ == "__main__":
    main(*sys.argv[1:])
