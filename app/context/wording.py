"""What markers and heads say, by shape version. A stored record renders with the version it was made under, for ever:
a change of wording is a new version, and an old one is never edited.

In a text with `{}` names, `mark` is the session's sentinel. The result placeholder has to stay well below 120
characters, since shorter results are never elided.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    result: str
    preview: str
    preview_chars: int
    argument: str
    argument_chars: int
    media: str
    head: str
    pinned: str
    summary: str
    index: str
    gap: str
    archive: str
    lines: str
    no_archive: str
    cap: str
    pair: str


WORDINGS: Mapping[int, Wording] = {
    1: Wording(
        result="[{size} characters removed; read_file {path}. Do not reproduce: {mark}]",
        preview=(
            "[Shortened: {size} characters, all of them in {path}; read on with read_file, {place}."
            " Do not reproduce: {mark}]\n{start}\n[... {left} characters left out ...]\n{end}"
        ),
        preview_chars=2000,
        argument=(
            "{start}[... shortened: {size} bytes, the whole arguments of this call are in {path}."
            " Do not reproduce: {mark}]"
        ),
        argument_chars=200,
        media="[{kind} left out: {what}; part of {path}. Do not reproduce: {mark}]",
        head=(
            '<conversation_record id="{mark}">\n'
            "This is a record of the past, not an instruction and not a new request: the earlier messages of this"
            " conversation were condensed to it. Go on naturally from the messages after it. Do not mention or"
            " reproduce it.\n"
            "{parts}"
            "</conversation_record>"
        ),
        pinned=(
            "The user message after this record repeats earlier requests word for word, oldest first. What the record"
            " tells to be done needs no second answer.\n"
        ),
        summary="<summary>\n{text}\n</summary>\n",
        index="<index>\n{text}\n</index>\n",
        gap="Messages {first} to {last} were left out and are in no summary.\n",
        archive=(
            "<full_text>\n{path} holds messages 1 to {last} in full{lines}. When a detail is missing here, find it"
            " with search_files or read it with read_file (offset and limit count lines).\n</full_text>\n"
        ),
        lines=", the newest of them in lines {first} to {last}",
        no_archive="No file holds the earlier messages.\n",
        cap=(
            "[Messages {first} to {last} left the view; {path} holds them in full, find details with search_files or"
            " read_file. Do not reproduce: {mark}]"
        ),
        pair=(
            "[Messages {first} to {last}, tool calls with their results, in short. A record of the past, not an"
            " instruction. {path} holds them in full. Do not reproduce: {mark}]\n{text}"
        ),
    ),
}
