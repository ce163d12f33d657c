"""A script, run with nothing of the app imported: becomes another program that dies with its parent.

Arguments: parent's pid, uid, gid, signal at the parent's death, data folder, program, its arguments.

It runs between fork and exec in a process of its own, because Python code in a forked child of a process with threads
can deadlock. The folder is opened before the privileges are dropped: the account may not be able to reach it by path,
but it may enter a folder of its own that is open already.
"""

import ctypes
import os
import sys

FOLDER = 9
PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    parent, uid, gid, death_signal = map(int, argv[:4])
    folder, *program = argv[4:]
    libc = ctypes.CDLL(None)
    os.dup2(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), FOLDER, inheritable=True)
    os.chdir("/")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        # After setuid, which clears it.
        libc.prctl(PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != parent:
            sys.exit("the parent died before its death could be watched")
    # Neither the user's PG* variables nor his locale reach PostgreSQL.
    os.execve(program[0], program, {"LC_ALL": "C", "TZ": "UTC"})


if __name__ == "__main__":
    main(sys.argv[1:])
