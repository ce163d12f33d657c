"""Chat Completions of any compatible server through the official SDK, always streaming.

As for the first provider the SDK carries requests, keys, timeouts and errors, and the event stream is parsed here: it
would drop the fields of servers that it does not know, and merge calls that share an index.
"""
