"""Checks of readiness: all are made, none waits for another, and one that hangs is not asked twice at once."""

import asyncio
from dataclasses import dataclass, field

import pytest

from app.api.readiness import Check, Readiness
from app.errors import PathRefused, SchemaBehind, StoreUnavailable

AT_ONCE_S = 0.001
NEVER_S = 3600.0


@dataclass
class Looked:
    """A check of the test's own: raises `error`, after `free`."""

    error: Exception | None = None
    looks: int = 0
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> None:
        self.looks += 1
        await self.free.wait()
        if self.error:
            raise self.error


def free(error: Exception | None = None) -> Looked:
    looked = Looked(error)
    looked.free.set()
    return looked


def readiness(patience_s: float = NEVER_S, **looks: Looked) -> Readiness:
    return Readiness([Check(name, look, f"{name} is silent") for name, look in looks.items()], patience_s)


async def told(asked: Readiness) -> dict[str, tuple[str, str] | None]:
    return {f.name: f.error and (f.error.code, f.error.detail) for f in await asked.findings()}


async def test_each_check_says_for_itself_what_is_wrong():
    asked = readiness(database=free(), schema=free(SchemaBehind()), files=free(StoreUnavailable("The disk is full.")))
    found = await told(asked)
    assert found["database"] is None
    assert found["schema"] == ("schema_behind", "The database schema is behind this release: run `hango migrate`.")
    assert found["files"] == ("store_unavailable", "The disk is full.")


async def test_one_that_hangs_is_told_as_silent_and_is_not_asked_again_meanwhile():
    hanging = Looked()
    asked = readiness(AT_ONCE_S, database=hanging)
    for _ in range(3):
        assert await told(asked) == {"database": ("store_unavailable", "database is silent")}
    assert hanging.looks == 1
    await asked.stop()


async def test_after_it_hung_a_check_is_asked_anew():
    look = Looked()
    asked = readiness(AT_ONCE_S, files=look)
    await asked.findings()
    look.free.set()
    await told(asked)
    assert await told(asked) == {"files": None}
    assert look.looks == 2


async def test_a_refusal_of_any_status_is_a_store_that_cannot_be_used():
    [finding] = await readiness(files=free(PathRefused("Symbolic links are not followed."))).findings()
    assert (finding.error.status, finding.error.detail) == (503, "Symbolic links are not followed.")


async def test_a_fault_of_ours_is_not_told_as_one_of_the_store():
    with pytest.raises(ZeroDivisionError):
        await readiness(files=free(ZeroDivisionError())).findings()
