"""The container files, as text: an unprivileged user, health checks, keys before the port opens to others."""

import re
import shutil
import subprocess

import pytest

from tests.walls.sources import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")


def run(command, **options):
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def compose_client():
    """The client as a plug-in or as a program of its own; None where neither is installed."""
    candidates = (["docker", "compose"], ["docker-compose"])
    found = (client for client in candidates if shutil.which(client[0]))
    return next((client for client in found if run([*client, "version"]).returncode == 0), None)


def test_the_image_runs_the_wheel_as_an_unprivileged_user():
    build, _, final = DOCKERFILE.partition("\n\n")
    assert "pip wheel" in build
    assert "--constraint requirements.lock" in build
    assert "USER hango" in final
    assert not re.search(r"^COPY (?!--from=build)", final, re.MULTILINE)
    assert final.index("USER hango") < final.index("CMD")


def test_the_image_asks_livez_through_the_standard_library():
    health = DOCKERFILE[DOCKERFILE.index("HEALTHCHECK") :]
    assert "urllib.request" in health
    assert "/livez" in health


def test_the_server_waits_for_the_database_and_needs_keys():
    assert "condition: service_healthy" in COMPOSE
    assert "pg_isready" in COMPOSE
    assert "HANGO_API_KEYS: ${HANGO_API_KEYS:?" in COMPOSE
    assert "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?" in COMPOSE
    assert "HANGO_DATABASE_URL: postgresql://" in COMPOSE


def test_docker_compose_accepts_the_file():
    client = compose_client()
    if client is None:
        pytest.skip("docker compose is not installed")
    values = {"POSTGRES_PASSWORD": "secret", "HANGO_API_KEYS": "acme:key", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    command = [*client, "-f", str(ROOT / "docker-compose.yml"), "config", "--quiet"]
    result = run(command, env=values)
    assert result.returncode == 0, result.stderr
