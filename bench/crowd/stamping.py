"""A model that streams the time: each delta says when it left, so that every reader can tell how late it is.

It keeps no rules and no state, and costs a fraction of the strict double: at 10,000 deltas a second that counts.
"""

import argparse
import asyncio
import json
import time

import uvloop

DIGITS = 20
HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\nrequest-id: req_1\r\n\r\n"
USAGE = {"input_tokens": 20, "output_tokens": 1}
MESSAGE = {
    "id": "msg_stamping",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [],
    "stop_reason": None,
    "usage": USAGE,
}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": USAGE}


def event(data: dict[str, object]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


BEGINNING = event({"type": "message_start", "message": MESSAGE}) + event(
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
)
ENDING = event({"type": "content_block_stop", "index": 0}) + event(END) + event({"type": "message_stop"})


def delta() -> str:
    text = f"{time.monotonic_ns():0{DIGITS}d}"
    return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})


class Model:
    def __init__(self, deltas: int, delay_s: float) -> None:
        self._deltas, self._delay_s = deltas, delay_s

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await self._reply(head, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _reply(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not head.startswith(b"POST /v1/messages "):
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write((HEAD + BEGINNING).encode())
        for _ in range(self._deltas):
            writer.write(delta().encode())
            await asyncio.sleep(self._delay_s)
        writer.write(ENDING.encode())


async def main(options: argparse.Namespace) -> None:
    model = Model(options.deltas, options.delay_ms / 1000)
    server = await asyncio.start_server(model.answer, "127.0.0.1", options.port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--deltas", type=int, default=100)
    parser.add_argument("--delay-ms", type=float, default=20)
    uvloop.run(main(parser.parse_args()))
