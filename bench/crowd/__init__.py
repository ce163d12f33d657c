"""`python -m bench load`: many clients at once, and whether everything comes back to where it was."""
