"""Models behind `ports.Provider`. Importing this room imports no SDK."""
