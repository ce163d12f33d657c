"""File backends: a local folder, its in-memory twin, and the rendered view of stored tool results."""
