"""Server-sent events from bytes, cut anywhere."""

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """`name` is empty when the stream gave none."""

    name: str
    data: bytes


class SseParser:
    """Lines end with LF, CR or CRLF. An event that the end of the stream cuts is never returned."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_cr = False
        self._at_start = True
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        events = []
        for line in self._lines(chunk):
            if line:
                self._field(line)
            elif event := self._dispatch():
                events.append(event)
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        # A CR ends its line at once; should an LF follow in the next chunk, it belongs to that CR.
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if lines and self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        return lines

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ")
        elif field == b"error":
            # Not in the standard: llama.cpp told its errors so for years.
            self._name = b"error"
            self._data.append(value.removeprefix(b" "))

    def _dispatch(self) -> SseEvent | None:
        name, data = self._name, self._data
        self._name, self._data = b"", []
        return SseEvent(name.decode("utf-8", "replace"), b"\n".join(data)) if data else None
