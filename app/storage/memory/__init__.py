"""Twins of the adapters, for tests of other rooms: the same behaviour without a database, on a clock that is given."""
