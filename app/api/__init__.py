"""HTTP in, JSON, SSE and problem documents out. No product rule lives here."""
