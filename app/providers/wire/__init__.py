"""What the adapters of HTTP APIs share: transport, event streams, JSON, failures, and when a call is made again."""
