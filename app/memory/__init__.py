"""Notes that outlive a session: rendered to the model, added by a tool and at a session's end, kept under a cap."""
