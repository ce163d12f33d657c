"""Runs every benchmark. Figures are ratios within one run: absolute times depend on the machine."""

from bench import server

if __name__ == "__main__":
    server.main()
