"""The loop of one run: model call, tool batch, until the turn ends."""
