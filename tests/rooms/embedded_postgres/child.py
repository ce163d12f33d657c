"""A process that starts the embedded PostgreSQL on the folder it is given and reports on its output, line by line.

Its first line is `launched` or `attached` and the URL, or the error. Then it waits for the end of its input and stops
the server. With `write` it inserts instead the numbers from the one given on, and says each once it is committed.
"""

import asyncio
import sys
from pathlib import Path

from app.embedded_postgres.server import EmbeddedServer, start_embedded
from app.errors import StartupError


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def write(server: EmbeddedServer, first: int) -> None:
    import asyncpg

    connection = await asyncpg.connect(host=str(server.socket_folder), user="postgres", database="hango")
    await connection.execute("CREATE TABLE IF NOT EXISTS numbers (n int PRIMARY KEY)")
    for number in range(first, 1_000_000):
        await connection.execute("INSERT INTO numbers VALUES ($1)", number)
        say(number)


def main() -> None:
    try:
        server = start_embedded(Path(sys.argv[1]))
    except StartupError as error:
        say(error.detail)
        return
    say("attached" if server.attached else "launched", server.database_url)
    if sys.argv[2:3] == ["write"]:
        asyncio.run(write(server, int(sys.argv[3])))
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
