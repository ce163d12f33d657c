"""API keys as a configuration holds them: `tenant:key`, or `tenant:sha256:<64 hex>` so that no key stands in it."""

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256

MIN_KEY_CHARS = 8
HASHED = "sha256:"

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a tenant; only its digest is kept. The key itself is random and long, so one hash is enough."""

    tenant: str
    digest: str

    def has(self, digest: str) -> bool:
        """In constant time."""
        return hmac.compare_digest(self.digest, digest)


def digest_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def hashed_entry(tenant: str, key: str) -> str:
    """Raises ValueError for a tenant that is no name."""
    _check_tenant(tenant)
    return f"{tenant}:{HASHED}{digest_of(key)}"


def parse_keys(text: str) -> tuple[ApiKey, ...]:
    """Entries separated by commas. Raises ValueError, which names an entry by its place and never repeats it."""
    keys: dict[str, ApiKey] = {}
    for place, entry in enumerate((item.strip() for item in text.split(",") if item.strip()), 1):
        try:
            key = _parse(entry)
            if keys.setdefault(key.digest, key).tenant != key.tenant:
                raise ValueError("another tenant has the same key")
        except ValueError as error:
            raise ValueError(f"entry {place}: {error}") from None
    return tuple(keys.values())


def _parse(entry: str) -> ApiKey:
    tenant, _, key = entry.partition(":")
    if not key:
        raise ValueError("write tenant:key or tenant:sha256:<64 hex>, separated by commas")
    _check_tenant(tenant)
    if key.startswith(HASHED):
        digest = key.removeprefix(HASHED).lower()
        if not _DIGEST.fullmatch(digest):
            raise ValueError("after sha256: stand 64 hexadecimal digits")
        return ApiKey(tenant, digest)
    if len(key) < MIN_KEY_CHARS or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"a key has at least {MIN_KEY_CHARS} printable ASCII characters and no space")
    return ApiKey(tenant, digest_of(key))


def _check_tenant(tenant: str) -> None:
    if not _TENANT.fullmatch(tenant):
        raise ValueError("a tenant's name has 1 to 64 of A-Z a-z 0-9 . _ - and begins with a letter or digit")
