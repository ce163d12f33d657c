"""The two handlers to compare with: one passes the SDK's stream through, one also stores the two messages."""

import argparse
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import uvicorn
from anthropic import AsyncAnthropic
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

TABLE = (
    "create table if not exists bench_messages (id bigserial primary key, role text not null, content text not null)"
)
INSERT = "insert into bench_messages (role, content) values ($1, $2)"


def make_app(store: bool) -> FastAPI:
    client = AsyncAnthropic(api_key="bench", max_retries=0)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.pool = None
        if store:
            app.state.pool = await asyncpg.create_pool(os.environ["BENCH_DATABASE"], min_size=2, max_size=10)
            await app.state.pool.execute(TABLE)
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/turn")
    async def turn(request: Request) -> StreamingResponse:
        body = await request.json()
        return StreamingResponse(answer(client, app.state.pool, body["content"]), media_type="text/event-stream")

    return app


async def answer(client: AsyncAnthropic, pool: Any, content: str) -> AsyncIterator[str]:
    if pool:
        await pool.execute(INSERT, "user", content)
    text = []
    message = {"role": "user", "content": content}
    async with client.messages.stream(model="claude-sonnet-4-6", max_tokens=4096, messages=[message]) as stream:
        async for piece in stream.text_stream:
            text.append(piece)
            yield f"event: text.delta\ndata: {json.dumps({'text': piece})}\n\n"
    if pool:
        await pool.execute(INSERT, "assistant", "".join(text))
    yield "event: turn.completed\ndata: {}\n\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args()
    uvicorn.run(make_app(options.store), host="127.0.0.1", port=options.port, log_config=None, access_log=False)
