"""Keys in a configuration: hashed or clear, of named tenants, each of one tenant only; no error repeats one."""

import pytest

from app.conversation.api_key import ApiKey, digest_of, hashed_entry, parse_keys

KEY = "a-long-enough-key"


def test_a_clear_key_is_kept_as_its_digest_only():
    assert parse_keys(f"red:{KEY}") == (ApiKey("red", digest_of(KEY)),)
    assert KEY not in repr(parse_keys(f"red:{KEY}"))


def test_a_hashed_entry_is_the_same_key():
    entry = hashed_entry("red", KEY)
    assert parse_keys(entry) == parse_keys(f"red:{KEY}")
    assert parse_keys(entry.replace(digest_of(KEY), digest_of(KEY).upper())) == parse_keys(entry)
    assert KEY not in entry


def test_entries_are_separated_by_commas_and_a_tenant_may_have_several():
    keys = parse_keys(f" red:{KEY}1 , red:{KEY}2,, blue:with:colons:in-it ,")
    assert [key.tenant for key in keys] == ["red", "red", "blue"]
    assert keys[2].has(digest_of("with:colons:in-it"))
    assert not keys[0].has(digest_of(f"{KEY}2"))


def test_the_same_entry_twice_is_one_key():
    assert len(parse_keys(f"red:{KEY},{hashed_entry('red', KEY)}")) == 1


@pytest.mark.parametrize(
    ("entry", "rule"),
    [("no-colon-in-this-one", "write tenant:key"), ("red:", "write tenant:key"), (f":{KEY}", "name"),
     ("red:shortie", "at least 8"), ("red: 3456789", "no space"), ("red:12345678 9", "no space"),
     ("red:1234567\u00e9", "ASCII"), ("red:1234567\x07", "printable"), ("red:sha256:", "64 hexadecimal"),
     (f"red:sha256:{'0' * 63}", "64 hexadecimal"), (f"red:sha256:{'g' * 64}", "64 hexadecimal"),
     (f"red tenant:{KEY}", "name"), (f"..:{KEY}", "name"), (f"{'t' * 65}:{KEY}", "name"), (f"röt:{KEY}", "name"),
     (f"blue:{KEY}", "another tenant")],
)  # fmt: skip
def test_a_bad_entry_is_named_by_its_place_and_never_repeated(entry: str, rule: str):
    with pytest.raises(ValueError, match=rule) as refused:
        parse_keys(f"ok:{KEY},{entry}")
    assert str(refused.value).startswith("entry 2: ")
    assert KEY not in str(refused.value)
    assert entry not in str(refused.value)


@pytest.mark.parametrize("tenant", ["", "a:b", "a,b", "a b", "../x", "-x"])
def test_no_entry_is_made_for_a_tenant_that_is_no_name(tenant: str):
    with pytest.raises(ValueError, match="name"):
        hashed_entry(tenant, KEY)
