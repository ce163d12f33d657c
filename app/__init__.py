"""hango: an agent-run server whose sessions never outgrow the model's window."""
