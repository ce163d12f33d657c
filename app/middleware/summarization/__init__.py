"""The summarization tier and its workers: the offload file and the summarizer."""
