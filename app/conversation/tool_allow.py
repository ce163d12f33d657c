"""Where tool servers may be: the hosts that the operator named, and the addresses that a name may stand for."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self
from urllib.parse import SplitResult, urlsplit

Address = IPv4Address | IPv6Address
MAX_URL = 2_000
ENTRY = "an entry must be a host, host:port, an address or a network"
DEFAULT_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9])?")
# Of translators: their last four bytes are an IPv4 address.
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/96"), IPv6Network("::/96"))


@dataclass(frozen=True, slots=True)
class Allowed:
    """`hosts`: (host, port), port None for all; a host is a name or an address. `networks`: where names may lead to
    besides public addresses, and whose addresses may be named themselves."""

    hosts: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> Self:
        """`host`, `host:port`, an address, or a network such as `10.0.0.0/8`. Raises ValueError."""
        kept = [entry.strip() for entry in entries if entry.strip()]
        networks = tuple(_network(entry) for entry in kept if "/" in entry)
        return cls(frozenset(_host(entry) for entry in kept if "/" not in entry), networks)

    def refusal(self, url: str) -> str | None:
        """Why no request may go to this URL, without repeating it."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            return "must be a URL"
        if not url.isascii() or not url.isprintable() or " " in url or len(url) > MAX_URL:
            return f"must be ASCII without spaces, at most {MAX_URL} characters"
        if parts.scheme not in DEFAULT_PORTS or not host:
            return "must begin with http:// or https:// and a host"
        if "@" in parts.netloc or parts.fragment:
            return "must have no user, password or fragment; a secret goes into headers"
        name = normal(host)
        port = port or DEFAULT_PORTS[parts.scheme]
        named = {(name, None), (name, port)} & self.hosts
        return None if named or self._listed(literal(name)) else "must be on a host that HANGO_MCP_ALLOW names"

    def permits(self, host: str, address: str) -> bool:
        """Whether a connection for an allowed `host` may go to this address, which it stands for now.

        Public unicast addresses are; others only as the host's own literal, as loopback of `localhost`, or in a network
        that is listed.
        """
        found = unwrapped(ip_address(address))
        if found.is_multicast or found.is_unspecified:
            return False
        name = normal(host)
        if self._listed(found) or found == literal(name) or (name == "localhost" and found.is_loopback):
            return True
        local = isinstance(found, IPv6Address) and found.is_site_local
        return found.is_global and not (local or found.is_reserved or found.is_private or found.is_link_local)

    def _listed(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self.networks)


def _network(entry: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(entry)
    except ValueError:
        raise ValueError(ENTRY) from None


def _host(entry: str) -> tuple[str, int | None]:
    if (found := literal(entry)) is not None:
        return str(found), None
    try:
        parts: SplitResult = urlsplit(f"//{entry}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(ENTRY) from None
    if entry != parts.netloc or "@" in entry or not _NAME.fullmatch(host):
        raise ValueError(ENTRY)
    return normal(host), port


def normal(host: str) -> str:
    name = host.lower().rstrip(".")
    found = literal(name)
    return name if found is None else str(found)


def literal(host: str) -> Address | None:
    try:
        return unwrapped(ip_address(host.strip("[]")))
    except ValueError:
        return None


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where it does: a mapped one passes for public otherwise."""
    if isinstance(address, IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    if inner is not None:
        return inner
    translated = any(address in network for network in _TRANSLATED) and int(address) > 1
    return IPv4Address(int(address) & 0xFFFFFFFF) if translated else address
