"""Opening, importing, reading and deleting sessions."""
