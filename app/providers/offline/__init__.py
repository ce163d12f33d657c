"""A small agent without a language model: plain requests in, tool calls and answers from their results out."""
