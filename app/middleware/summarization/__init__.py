"""The summarization tier and the summarizer that it asks."""
