"""The PostgreSQL fixtures of conftest.py."""

import asyncpg
import pytest


async def answer(url, question):
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_has_a_database_of_its_own(database_url, turn):
    assert await answer(database_url, "select count(*) from sessions") == 0
    await answer(database_url, "create table mine()")


async def test_the_database_has_the_newest_schema(database_url):
    assert await answer(database_url, "select count(*) from alembic_version") == 1


async def test_the_cluster_answers(cluster):
    assert await answer(cluster.admin_url, "show fsync") == "off"
