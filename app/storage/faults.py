"""Failures of the database as errors of the product."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from app.errors import Conflict, InvalidRequest, SchemaBehind, StoreUnavailable

# Sockets, timeouts, no connection free; then the SQLSTATE classes 08, 28, 3D, 53, 57, 58: refused, shut down, full.
_UNAVAILABLE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ClientConfigurationError,
    # What asyncpg says when the server ends an idle connection just as it is taken.
    asyncpg.InternalClientError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    # Undone by the database, a deadlock say: what was asked may be asked again.
    asyncpg.TransactionRollbackError,
)


UNREACHABLE = "The database cannot be reached or does not answer."
FULL = "The disk of the database is full."
READ_ONLY = "The database is read-only."


@contextmanager
def public_errors() -> Iterator[None]:
    """Raises StoreUnavailable, SchemaBehind, Conflict (a row exists), InvalidRequest (no column can hold a value)."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise Conflict("What was sent is stored already.") from error
    except asyncpg.DataError as error:
        raise InvalidRequest("A value is out of range, or holds a character that cannot be stored.") from error
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as error:
        raise SchemaBehind from error
    except asyncpg.DiskFullError as error:
        raise StoreUnavailable(FULL) from error
    except asyncpg.ReadOnlySQLTransactionError as error:  # a standby, after a failover say
        raise StoreUnavailable(READ_ONLY) from error
    except _UNAVAILABLE as error:
        raise StoreUnavailable(UNREACHABLE) from error
