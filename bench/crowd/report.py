"""All parts of `python -m bench load`, or those that are named."""

import os
import resource
from collections.abc import Sequence

from bench.crowd import bodies, latency, returns, takeover

DESCRIPTORS = 4096


def load(words: Sequence[str]) -> None:
    """`words`: names of parts; all without any. Ends with status 1 when something did not come back."""
    print(f"\n== many clients at once == load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    _allow_descriptors()
    fine = returns.measure_all([name for name in returns.CROWDS if not words or name in words])
    if not words or "latency" in words:
        latency.main()
    if not words or "bodies" in words:
        bodies.main()
    if not words or "takeover" in words:
        takeover.main()
    if not fine:
        raise SystemExit(1)


def _allow_descriptors() -> None:
    """For this process and those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if max(soft, wanted) < DESCRIPTORS:
        print(f"only {wanted} open files are allowed here (ulimit -n): 1,000 clients need {DESCRIPTORS}")
