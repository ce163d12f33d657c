"""File backends: a local folder, its in-memory twin, and the layers over them; and the folder of skills."""
