"""Where tool servers may be."""

import pytest

from app.conversation.tool_allow import Allowed

INNER = (
    "127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "fe80::1", "fd00:ec2::254", "100.64.0.1", "224.0.0.1", "ff02::1", "255.255.255.255", "192.0.2.1", "198.18.0.1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "2001:db8::1",
    "2001:0:7f00:1::1", "64:ff9b:1::a00:1", "240.0.0.1", "fec0::1",
)  # fmt: skip


@pytest.mark.parametrize("address", INNER)
def test_a_name_never_leads_to_an_inner_address(address: str):
    assert not Allowed.parse(["tools.example.com"]).permits("tools.example.com", address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34"])
def test_a_name_leads_to_public_addresses(address: str):
    assert Allowed.parse(["tools.example.com"]).permits("tools.example.com", address)


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/8", "inner.example.com", "10.1.2.3"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("::1", "::1", "::1"),
        ("localhost", "localhost", "127.0.0.1"),
        ("localhost", "LOCALHOST.", "::1"),
        ("169.254.0.0/16", "inner.example.com", "169.254.169.254"),
    ],
)
def test_what_is_listed_may_be_reached(entry: str, host: str, address: str):
    assert Allowed.parse([entry]).permits(host, address)


@pytest.mark.parametrize("address", ["224.0.0.1", "0.0.0.0", "ff02::1", "::"])
def test_no_list_opens_what_is_no_machine(address: str):
    assert not Allowed.parse(["0.0.0.0/0", "::/0"]).permits("any.example.com", address)


def test_a_listed_address_opens_no_name():
    allowed = Allowed.parse(["127.0.0.1", "tools.example.com"])
    assert not allowed.permits("tools.example.com", "127.0.0.1")


@pytest.mark.parametrize(
    ("entries", "url"),
    [
        (["tools.example.com"], "https://Tools.Example.com./mcp?x=1"),
        (["tools.example.com:8443"], "https://tools.example.com:8443/mcp"),
        (["tools.example.com:443"], "https://tools.example.com/mcp"),
        (["10.0.0.0/8"], "http://10.2.3.4:99/mcp"),
        (["::1"], "http://[::1]:8000/mcp"),
        (["127.0.0.1"], "http://[::ffff:127.0.0.1]/mcp"),
    ],
)
def test_a_listed_host_may_be_named(entries: list[str], url: str):
    assert Allowed.parse(entries).refusal(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example.com/mcp", "https://tools.example.com.evil.org/", "https://eviltools.example.com/",
        "http://tools.example.com@evil.org/", "http://evil.org#@tools.example.com/", "http://evil.org\\@tools.example.com/",
        "http://127.1/", "http://0x7f000001/", "http://017700000001/", "http://[::1]/", "http://[::ffff:7f00:1]/",
        "file:///etc/passwd", "http://", "http://tools.example.com:99999/", "http://tools.example.com /", "http://tóols.example.com/",
        "http://[::1/", "tools.example.com", "https://tools.example.com/" + "a" * 3000,
    ],
)  # fmt: skip
def test_any_other_url_is_refused(url: str):
    rule = Allowed.parse(["tools.example.com"]).refusal(url)
    assert rule
    assert "example.com" not in rule


@pytest.mark.parametrize("entry", ["http://x", "x/y", "user@x", "10.0.0.1/8", "a b", "x:port", "*.example.com"])
def test_an_entry_that_cannot_be_meant_is_refused(entry: str):
    with pytest.raises(ValueError, match="an entry must be"):
        Allowed.parse([entry])
