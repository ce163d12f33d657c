"""Where the embedded PostgreSQL keeps its things."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

SOCKET_FILE = ".s.PGSQL.5432"


@dataclass(frozen=True, slots=True)
class Layout:
    """`data_dir` is absolute and free of symlinks, so that every process derives the same names."""

    data_dir: Path

    @property
    def cluster(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def draft(self) -> Path:
        """A cluster in the making; renamed to `cluster` once it is whole."""
        return self.data_dir / "postgres.draft"

    @property
    def log(self) -> Path:
        return self.data_dir / "postgres.log"

    @property
    def older_log(self) -> Path:
        """What `log` was when it had grown large."""
        return self.data_dir / "postgres.log.1"

    @property
    def lock(self) -> Path:
        return self.data_dir / "postgres.lock"

    @property
    def socket_folder(self) -> Path:
        """36 bytes with the socket's name, however deep the data folder is: the kernel allows 103 to 107."""
        return Path("/tmp") / f"hango-{sha256(bytes(self.data_dir)).hexdigest()[:16]}"
