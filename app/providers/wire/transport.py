"""An SDK's client, imported and built in a thread the first time it is needed."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeVar

from app.errors import ProviderFailure
from app.providers.wire.failures import Account, ConnectionLost

CONNECT_S = 10.0
# Between two pieces of an answer. A live stream sends pings while the model works, so five silent minutes mean a dead
# peer; the SDKs' own 600 s would hold the run twice as long.
STALL_S = 300.0
WRITE_S = 60.0


class Client(Protocol):
    async def close(self) -> None: ...


AnyClient = TypeVar("AnyClient", bound=Client)


class Transport(ABC, Generic[AnyClient]):
    """`stall_s`: seconds of silence after which a request is given up."""

    def __init__(self, account: Account, stall_s: float) -> None:
        self.account = account
        self._stall_s = stall_s
        self._client: AnyClient | None = None
        self._building = asyncio.Lock()

    async def client(self) -> AnyClient:
        async with self._building:
            if self._client is None:
                self._client = await asyncio.to_thread(self._build)
            return self._client

    async def pieces(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The bytes of one streamed answer; closing it closes the connection.

        Raises the SDK's exceptions for a refusal, ProviderFailure for an answer that is no event stream,
        ConnectionLost for whatever ends the answer while it is read.
        """
        response = await self._post(await self.client(), body)
        try:
            async with aclosing(self._chunks(response)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ProviderFailure:
            raise
        except Exception as error:
            raise ConnectionLost(type(error).__name__) from None
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    @abstractmethod
    def _build(self) -> AnyClient:
        """Blocks for a second or two."""

    @abstractmethod
    async def _post(self, client: AnyClient, body: bytes) -> Any:
        """The response of the SDK's HTTP library, not read yet."""

    async def _chunks(self, response: Any) -> AsyncGenerator[bytes, None]:
        self.account.check_stream(response.headers.get("content-type"))
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                yield chunk
