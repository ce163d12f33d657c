"""Tools on MCP servers, by the official client: naming, listing, calling, and what may be reached."""
