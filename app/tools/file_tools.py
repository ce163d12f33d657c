"""The file tools of a server, wired: the writing ones share their locks."""

from app.ports import Clock, FileBackend, Tool
from app.tools.edit_file import EditFile
from app.tools.list_files import ListFiles
from app.tools.path_locks import PathLocks
from app.tools.read_file import ReadFile
from app.tools.search_files import SearchFiles
from app.tools.write_file import WriteFile


def file_tools(files: FileBackend, clock: Clock) -> tuple[Tool, ...]:
    """`files` holds every area, /tool_results too."""
    locks = PathLocks()
    return ReadFile(files), WriteFile(files, locks), EditFile(files, locks), ListFiles(files), SearchFiles(files, clock)
