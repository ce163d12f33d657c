"""The Anthropic Messages API through the official SDK, always streaming.

The SDK carries requests, keys, timeouts and errors; the event stream is parsed here. With anthropic 2.14, CPU of one
call of 60 deltas: `messages.stream` 5.3 ms, `create(stream=True)` 3.0 ms, `with_streaming_response` 1.9 ms, a posted
body of bytes with a raw response 1.6 ms (this adapter 2.0); with 5,000 messages 48, 45, 42 and 2.6 ms (6), because
the SDK copies what it is given as objects and leaves bytes alone. Importing it costs 1 to 2 s and 80 MB: only
`transport` does so, late.
"""
