"""`python -m bench`: what the server costs, side by side with the least that could do the same."""
