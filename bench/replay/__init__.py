"""Recorded sessions played again through the HTTP API, with the double of the Messages API as the model."""
