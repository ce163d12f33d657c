"""Pure surgery on messages: values in, new values out. No await, clock, file, log or random."""
