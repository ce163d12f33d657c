import pytest

from app.conversation.tools import ToolRequest
from app.filesystem.memory import MemoryFiles
from app.system import SystemClock
from app.tools.file_tools import file_tools
from app.tools.registry import Registry


@pytest.fixture
def files():
    return MemoryFiles()


@pytest.fixture
def run(files):
    """Calls a tool as the loop does: run("read_file", path=...) -> ToolResult."""
    registry = Registry(file_tools(files, SystemClock()))

    async def run(name, **arguments):
        return await registry.run(ToolRequest("ses_1", "run_1", "toolu_1", name, arguments))

    return run
