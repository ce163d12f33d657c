"""What is kept: adapters of the storage ports over PostgreSQL, and their twins in memory (`memory/`)."""
