"""The tools the server runs itself, and the registry that checks their arguments."""
