"""Signatures of thinking blocks. A signature seals the block's text, the conversation before it (tools, system, all
other content, cache_control aside) and the thinking block before it, so that a request shows whether any of them
changed. Thinking may be left out from the start, from the end, or all of it; not in the middle, and not put back."""

import hmac
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Any

from tests.double.errors import Refused
from tests.double.request import THINKING, Part, Request, digest

KEY = b"hango test double"
MAGIC = b"dbl1"
NOTHING = bytes(16)
INVALID = {
    "thinking": "Invalid `signature` in `thinking` block",
    "redacted_thinking": "Invalid `data` in `redacted_thinking` block",
}
REMEDY = (
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires '
    "the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
)


def _mac(*parts: bytes) -> bytes:
    return hmac.new(KEY, b"".join(parts), sha256).digest()[:16]


def text_mac(words: str) -> bytes:
    return _mac(words.encode("utf-8", "surrogatepass"))


def _hash(parts: Iterable[Part]) -> bytes:
    return blake2b(b"".join(part.digest for part in parts), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Seal:
    """Five 16-byte values."""

    text: bytes
    tools: bytes
    system: bytes
    before: bytes
    previous: bytes

    def mac(self) -> bytes:
        return _mac(self.text, self.tools, self.system, self.before, self.previous)

    def encode(self) -> str:
        sealed = (MAGIC, self.text, self.tools, self.system, self.before, self.previous, self.mac())
        return b64encode(b"".join(sealed)).decode()


def decode(signature: str) -> Seal | None:
    """None for anything this module did not make."""
    try:
        raw = b64decode(signature, validate=True)
    except (ValueError, Error):
        return None
    if len(raw) != 100 or not raw.startswith(MAGIC):
        return None
    seal = Seal(*(raw[at : at + 16] for at in range(4, 84, 16)))
    return seal if hmac.compare_digest(seal.mac(), raw[84:]) else None


class Trail:
    """The running hash of a conversation, thinking apart."""

    def __init__(self, request: Request) -> None:
        self._tools = _hash(request.tools)
        self._system = _hash(request.system)
        self._before = NOTHING
        self.previous = NOTHING

    def add(self, role: str, block_digest: bytes) -> None:
        self._before = blake2b(self._before + role.encode() + block_digest, digest_size=16).digest()

    def seal(self, words: str) -> Seal:
        return Seal(text_mac(words), self._tools, self._system, self._before, self.previous)

    def mismatch(self, seal: Seal) -> str | None:
        """What differs from the conversation the block was made in."""
        if seal.tools != self._tools:
            return "The `tools` differ from the ones this block was created with."
        if seal.system != self._system:
            return "The `system` prompt differs from the one this block was created with."
        if seal.before != self._before:
            return "The messages before it differ from the ones this block was created with."
        if self.previous not in (NOTHING, seal.previous):
            return "The thinking blocks before it differ from the ones this block was created with."
        return None


def secret(block: Mapping[str, Any]) -> tuple[str, str]:
    """(what is sealed, the seal) of a thinking block."""
    if block["type"] == "thinking":
        return block["thinking"], block["signature"]
    return "", block["data"]


class Signer:
    """Issues and verifies. Scripted signatures are remembered and pass as they are."""

    def __init__(self) -> None:
        self._scripted: set[tuple[str, str]] = set()

    def verify(self, request: Request, bound: bool) -> tuple[Trail, frozenset[tuple[int, int]]]:
        """The trail up to the end of the request, and the places of the blocks to drop. Raises Refused."""
        trail = Trail(request)
        latest = max((n for n, message in enumerate(request.messages) if message.role == "assistant"), default=-1)
        drops = behavior(request) == "drop_block"
        dropped: set[tuple[int, int]] = set()
        for index, message in enumerate(request.messages):
            dropping = False
            for position, part in enumerate(message.parts):
                if part.kind not in THINKING:
                    trail.add(message.role, part.digest)
                    dropping = False
                    continue
                where = f"messages.{index}.content.{position}"
                seal = self._open(part, where, index == latest)
                fault = trail.mismatch(seal) if bound and seal else None
                if fault and not drops:
                    bound_elsewhere = "The block is bound to a different conversation."
                    raise Refused(f"{where}: {INVALID[part.kind]}. {bound_elsewhere} {REMEDY} {fault}")
                dropping = dropping or bool(fault)
                if dropping:
                    dropped.add((index, position))
                elif seal:
                    trail.previous = seal.mac()
        return trail, frozenset(dropped)

    def _open(self, part: Part, where: str, in_latest: bool) -> Seal | None:
        words, signature = secret(part.data)
        if (words, signature) in self._scripted:
            return None
        seal = decode(signature)
        if seal and seal.text == text_mac(words):
            return seal
        if seal and in_latest:
            raise Refused(
                f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                "modified. These blocks must remain as they were in the original response."
            )
        raise Refused(f"{where}: {INVALID[part.kind]}")

    def sign(self, blocks: Sequence[Mapping[str, Any]], trail: Trail) -> Sequence[Mapping[str, Any]]:
        """The blocks of a reply, every thinking block with a signature; the same object when there is none."""
        if not any(block["type"] in THINKING for block in blocks):
            return blocks
        signed: list[Mapping[str, Any]] = []
        for block in blocks:
            value = dict(block)
            if value["type"] not in THINKING:
                trail.add("assistant", digest(value))
            elif (field := "signature" if value["type"] == "thinking" else "data") in value:
                self._scripted.add(secret(value))
            else:
                seal = trail.seal(value.get("thinking", ""))
                value[field] = seal.encode()
                trail.previous = seal.mac()
            signed.append(value)
        return signed


def behavior(request: Request) -> str:
    binding = (request.body.get("thinking") or {}).get("block_binding") or {}
    return str(binding.get("prefix_mismatch_behavior") or "error")
