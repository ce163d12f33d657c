"""PostgreSQL as a child process, so that no database server is needed. See docs/decisions/0002-embedded-postgres.md."""
