"""Looks at what a compaction would do, which hold a view each."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.agent.turn import Workbench
from app.conversation.model_profile import ModelProfile
from app.conversation.session import Session
from app.turns.service import MOST_FORESEEN
from tests.twins import Works


async def test_a_tenant_has_few_at_once_and_keeps_no_other_tenant_waiting(monkeypatch: pytest.MonkeyPatch):
    begun, go_on = [], asyncio.Event()

    async def foresee(bench: Workbench, session: Session, profile: ModelProfile) -> Mapping[str, Any]:
        begun.append(session.tenant)
        await go_on.wait()
        return {}

    monkeypatch.setattr("app.turns.service.foresee_compaction", foresee)
    works = Works()
    turns, session = works.process(), await works.open()
    asked = [session] * (MOST_FORESEEN + 2) + [replace(session, tenant="other")]
    looking = [asyncio.create_task(turns.foresee(one)) for one in asked]
    await asyncio.sleep(0)
    assert begun == [session.tenant] * MOST_FORESEEN + ["other"]
    go_on.set()
    assert await asyncio.gather(*looking) == [{}] * len(asked)
