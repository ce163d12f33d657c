"""The chain that shapes each outgoing request: one file per place, their order in `stack`."""
