"""The offline provider over whole turns, with the real file tools on files in memory."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.messages import Message, is_blank, result_block, text_block, text_of, tool_uses
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.request import ModelRequest
from app.conversation.tools import ToolRequest
from app.conversation.usage import Purpose
from app.filesystem.memory import MemoryFiles
from app.ports import Capabilities
from app.providers.offline.provider import OfflineProvider
from app.tools.edit_file import EditFile
from app.tools.list_files import ListFiles
from app.tools.path_locks import PathLocks
from app.tools.read_file import ReadFile
from app.tools.registry import Registry
from app.tools.search_files import SearchFiles
from app.tools.write_file import WriteFile

MOST_CALLS = 60


class StillClock:
    def monotonic(self):
        return 0.0


class Chat:
    """A session in small: the provider, the tools and the messages so far."""

    def __init__(self, **files):
        self.files, locks = MemoryFiles(), PathLocks()
        tools = [
            ReadFile(self.files), WriteFile(self.files, locks), EditFile(self.files, locks), ListFiles(self.files),
            SearchFiles(self.files, StillClock()),
        ]  # fmt: skip
        self.registry = Registry(tools)
        self.start = files
        self.messages: list[Message] = []
        self.batches: list[list[str]] = []
        self.replies: list[Reply] = []

    async def say(self, text):
        """The final answer of a turn."""
        for name, content in self.start.items():
            await self.files.write("ses_1", f"/workspace/{name.replace('_', '.')}", content.encode())
        self.start, self.batches = {}, []
        self.messages.append(Message("user", (text_block(text),)))
        for _ in range(MOST_CALLS):
            reply = await last_of(self.request())
            self.replies.append(reply)
            if reply.content:
                self.messages.append(Message("assistant", reply.content))
            if reply.stop_reason != "tool_use":
                return text_of(reply.content)
            await self._run(reply)
        raise AssertionError("the turn does not end")

    def request(self, **changes):
        whole = ModelRequest("offline", 4096, "ses_1", tools=self.registry.definitions, messages=tuple(self.messages))
        return replace(whole, **changes)

    async def _run(self, reply):
        uses = tool_uses(reply.content)
        self.batches.append([f"{use['name']} {use['input'].get('path')}" for use in uses])
        results = []
        for use in uses:
            result = await self.registry.run(ToolRequest("ses_1", "run_1", use["id"], use["name"], use["input"]))
            results.append(result_block(use["id"], result.content, result.is_error))
        self.messages.append(Message("user", tuple(results)))

    async def text(self, path):
        return (await self.files.read("ses_1", path)).decode()


async def items_of(request):
    return [item async for item in OfflineProvider().stream(request)]


async def last_of(request):
    return (await items_of(request))[-1]


def asked(text, **changes):
    return Chat().request(messages=(Message("user", (text_block(text),)),), **changes)


async def test_the_example_of_the_readme_works():
    chat = Chat(a_txt="hello\n")
    answer = await chat.say("list the files in /workspace, write notes.md with three lines, read it back")
    assert chat.batches == [
        ["list_files /workspace"],
        ["write_file /workspace/notes.md"],
        ["read_file /workspace/notes.md"],
    ]
    written = await chat.text("/workspace/notes.md")
    assert written.count("\n") == 3
    assert written in answer
    assert "- /workspace/a.txt (6 bytes)" in answer
    assert "I made up the 3 line(s) myself" in answer


async def test_the_answer_is_in_the_language_of_the_request():
    chat = Chat(a_txt="một hai\nba\n")
    answer = await chat.say("liet ke cac tep, roi dem dong va tu trong a.txt")
    assert "/workspace có 1 tệp:" in answer
    assert "/workspace/a.txt: 2 dòng, 3 từ." in answer


async def test_neighbours_that_only_look_go_in_one_batch():
    chat = Chat(a_txt="x", b_txt="y")
    await chat.say("read a.txt and b.txt, search for 'x', then write c.txt: z, then read c.txt")
    assert chat.batches == [
        ["read_file /workspace/a.txt", "read_file /workspace/b.txt", "search_files /workspace"],
        ["write_file /workspace/c.txt"],
        ["read_file /workspace/c.txt"],
    ]


async def test_text_that_was_given_is_written_exactly():
    chat = Chat()
    await chat.say('write "a  b: c, then d" to a.txt\nThen write b.md with\n```\n# T\n\n  x\n```')
    assert await chat.text("/workspace/a.txt") == "a  b: c, then d"
    assert await chat.text("/workspace/b.md") == "# T\n\n  x\n"


@pytest.mark.parametrize(("before", "after"), [("one", "one\ntwo"), ("one\n", "one\ntwo"), ("", "two")])
async def test_appended_text_begins_on_a_line_of_its_own(before, after):
    chat = Chat(a_txt=before)
    answer = await chat.say("append 'two' to a.txt")
    assert await chat.text("/workspace/a.txt") == after
    assert answer.startswith("I added ")


async def test_appending_makes_a_missing_file():
    chat = Chat()
    answer = await chat.say("add 'two' to a.txt")
    assert await chat.text("/workspace/a.txt") == "two"
    assert answer == "I added 3 bytes to the end of /workspace/a.txt."


async def test_a_long_text_is_written_in_pieces():
    text = "".join(f"line {n}, tiếng Việt\n" for n in range(1000))
    chat = Chat()
    await chat.say(f"write a.txt with\n```\n{text}```")
    assert await chat.text("/workspace/a.txt") == text
    assert len(chat.batches) > 1


async def test_replacing_changes_every_occurrence_and_it_is_the_same_file():
    chat = Chat(a_txt="foo foo\nbar\n")
    answer = await chat.say("replace foo with baz in a.txt and read it back")
    assert await chat.text("/workspace/a.txt") == "baz baz\nbar\n"
    assert "baz baz\nbar" in answer


async def test_a_summary_is_extracted_and_can_be_written():
    chat = Chat(a_md="# Plan\nFirst sentence. Second one. Third one.\n## Part\n- TODO: ship\n")
    answer = await chat.say("write a summary of a.md to b.md")
    assert "Headings: Plan; Part\nIt begins: First sentence. Second one.\nKey lines: - TODO: ship" in answer
    assert await chat.text("/workspace/b.md") in answer + "\n"


async def test_a_folder_is_summarized_file_by_file():
    chat = Chat(**{f"f{n}_txt": f"text {n}\n" for n in range(9)})
    answer = await chat.say("tóm tắt thư mục /workspace")
    assert "/workspace có 9 tệp:" in answer
    assert "Mở đầu: text 5" in answer
    assert "Còn 3 tệp nữa chưa được đọc." in answer


async def test_counts_are_right_or_said_to_be_partial():
    chat = Chat(a_txt="a b\n" * 3000)
    answer = await chat.say("how many lines and words are in a.txt? how many lines are in a.txt?")
    assert "3000 line(s), 4800 word(s) in its first 2400 of 3000 lines" in answer
    assert answer.endswith("/workspace/a.txt: 3000 line(s).")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("read missing.txt", "There is no such file."),
        ("read /etc/passwd", "The areas are"),
        ("write 'x' to /memory/a.md", "read-only"),
        ("write 'x' to ../a.md", "'..'"),
        ("replace zzz with y in a.txt", "does not occur"),
        ("append 'x' to /tool_results/a.txt", "read-only"),
    ],
)
async def test_errors_of_tools_are_told_as_they_are(text, error):
    chat = Chat(a_txt="x")
    answer = await chat.say(text)
    assert answer.startswith("I could not ")
    assert error in answer


async def test_nothing_is_written_when_the_step_before_found_nothing():
    chat = Chat()
    answer = await chat.say("summarize missing.txt and write it to b.txt")
    assert chat.batches == [["read_file /workspace/missing.txt"]]
    assert "I did not write /workspace/b.txt" in answer


async def test_a_tool_that_is_not_offered_is_named():
    request = asked("read a.txt", tools=(Chat().registry.definitions[0],))
    reply = await last_of(request)
    assert (
        text_of(reply.content)
        == "I could not read /workspace/a.txt: the tool read_file is not offered in this session."
    )


@pytest.mark.parametrize("text", ["Hello!", "What is the capital of France?", "xin chào", "help", "write me a poem"])
async def test_it_says_plainly_what_it_is(text):
    reply = await last_of(asked(text))
    assert reply.stop_reason == "end_turn"
    assert "ANTHROPIC_API_KEY" in text_of(reply.content)
    assert "not a language model" in text_of(reply.content) or "không phải mô hình" in text_of(reply.content)


async def test_earlier_requests_are_quoted():
    chat = Chat()
    await chat.say("list the files")
    await chat.say("hello")
    assert '"list the files"' in await chat.say("what did I ask first?")
    assert '"what did I ask first?"' in await chat.say("tôi vừa hỏi gì?")


async def test_it_means_the_file_of_the_turn_before():
    chat = Chat(a_txt="one\n")
    await chat.say("read a.txt")
    assert "/workspace/a.txt: 1 line(s)." in await chat.say("count its lines")


async def test_a_turn_goes_on_when_its_beginning_is_no_longer_in_view():
    chat = Chat(a_txt="x\n")
    await chat.say("write b.txt: y, then read b.txt, then write c.txt: z")
    head = Message("user", (text_block("Earlier context was condensed: read everything."),))
    # The request, then only the batch of the second step.
    view = (head, chat.messages[0], *chat.messages[3:5])
    reply = await last_of(chat.request(messages=view))
    assert [use["input"]["path"] for use in tool_uses(reply.content)] == ["/workspace/c.txt"]


async def test_an_elided_result_is_not_guessed():
    chat = Chat(a_txt="x\n")
    await chat.say("read a.txt")
    use = tool_uses(chat.messages[1].content)[0]
    elided = Message("user", (result_block(use["id"], "[elided; see /tool_results/000002-00.txt]", False),))
    reply = await last_of(chat.request(messages=(*chat.messages[:2], elided)))
    assert "no longer in view" in text_of(reply.content)


async def test_continue_takes_up_the_request_before():
    chat = Chat(a_txt="x\n")
    await chat.say("read a.txt, then write b.txt: y")
    interrupted = chat.messages[:3]
    chat.messages = [*interrupted[:2], Message("user", (*interrupted[2].content, text_block("continue")))]
    reply = await last_of(chat.request())
    assert [use["input"] for use in tool_uses(reply.content)] == [{"path": "/workspace/b.txt", "content": "y"}]


async def test_calls_of_another_model_are_not_repeated_for_ever():
    use = {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {}}
    messages = (
        Message("user", (text_block("list the files"),)),
        Message("assistant", (use,)),
        Message("user", (result_block("toolu_1", "/workspace/a.txt (1 bytes)", False),)),
    )
    reply = await last_of(Chat().request(messages=messages))
    assert reply.stop_reason == "end_turn"


async def test_ids_are_unique_and_the_same_for_the_same_request():
    chat = Chat(a_txt="x\n")
    for _ in range(3):
        await chat.say("read a.txt and list the files")
    ids = [use["id"] for message in chat.messages for use in tool_uses(message.content) if message.role == "assistant"]
    assert len(set(ids)) == len(ids) == 6
    first = chat.request(messages=tuple(chat.messages[:1]))
    assert await items_of(first) == await items_of(first)


async def test_the_stream_is_in_words_and_adds_up_to_the_reply():
    usage, *middle, reply = await items_of(asked("list the files, then write notes.md: một hai ba"))
    assert isinstance(usage, UsageSeen)
    assert usage.usage.input == reply.usage.input > 0
    assert reply.usage.output > 0
    assert reply.usage.calls == usage.usage.calls == 1
    opened = [item for item in middle if isinstance(item, BlockOpened)]
    assert [item.index for item in opened] == list(range(len(reply.content)))
    joined = ["".join(d.text for d in middle if isinstance(d, Delta) and d.index == at) for at in range(len(opened))]
    assert joined[0] == reply.content[0]["text"]
    assert json.loads(joined[1]) == reply.content[1]["input"]
    assert max(len(item.text) for item in middle if isinstance(item, Delta)) <= 80


async def test_a_call_that_max_tokens_cuts_is_broken_and_not_whole():
    reply = await last_of(asked("write a.txt: " + "word " * 200, max_tokens=60))
    assert reply.stop_reason == "max_tokens"
    assert reply.content[-1]["input"] == {}
    assert reply.broken == {len(reply.content) - 1: "cut by max_tokens"}


async def test_a_text_that_max_tokens_cuts_says_so():
    reply = await last_of(asked("hello", max_tokens=5))
    assert reply.stop_reason == "max_tokens"
    assert len(text_of(reply.content).encode()) <= 15


async def test_a_request_of_the_summarizer_is_summarized():
    request = asked("## 1 · user\nbuild it\n", tools=(), purpose=Purpose.SUMMARIZE)
    reply = await last_of(request)
    assert text_of(reply.content).startswith("# Conversation summary\n\n## Goal\n- build it")
    prompt = asked("Write # Conversation summary\n<c>\n## 1 · user\nbuild it\n</c>", tools=())
    assert text_of((await last_of(prompt)).content).startswith("# Conversation summary\n\n## Goal\n- build it")


def test_its_capabilities_are_none():
    assert (OfflineProvider().name, OfflineProvider().capabilities) == ("offline", Capabilities())


WORDS = st.sampled_from(
    "list read write append replace count summarize search find the files it back then and a.txt b/c.md /workspace "
    "'x' \"y z\" ``` : , . \n đọc ghi thêm tìm vào rồi nó ba dòng three lines with to in don't đừng folder all".split(
        " "
    )
)


@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=25).map(" ".join)), st.sampled_from([1, 40, 4096]))
async def test_any_text_gets_a_legal_answer_in_bounded_steps(text, max_tokens):
    chat = Chat(a_txt="x y\nz\n")
    await chat.say(text)
    ids = [use["id"] for reply in chat.replies for use in tool_uses(reply.content)]
    assert len(ids) == len(set(ids))
    for reply in [*chat.replies, await last_of(asked(text, max_tokens=max_tokens))]:
        assert not any(is_blank(block) for block in reply.content)
        assert reply.stop_reason in ("end_turn", "tool_use", "max_tokens")
        assert (reply.stop_reason == "tool_use") <= bool(tool_uses(reply.content))
        assert reply.content or reply.stop_reason == "max_tokens"
