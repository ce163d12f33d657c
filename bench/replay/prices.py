"""Tokens by class of price, and what they cost in units of one uncached input token."""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.double.exchange import Exchange

UNCACHED, WRITE, READ, OUTPUT = 1.0, 1.25, 0.1, 5.0


@dataclass(frozen=True, slots=True)
class Price:
    uncached: int = 0
    written: int = 0
    read: int = 0
    output: int = 0

    def __add__(self, other: "Price") -> "Price":
        return Price(
            self.uncached + other.uncached,
            self.written + other.written,
            self.read + other.read,
            self.output + other.output,
        )

    @property
    def cost(self) -> float:
        return UNCACHED * self.uncached + WRITE * self.written + READ * self.read + OUTPUT * self.output

    @property
    def read_ratio(self) -> float:
        """Of all input; 0 without input."""
        return self.read / max(1, self.uncached + self.written + self.read)


def price(exchanges: Iterable[Exchange]) -> Price:
    """Of the answered ones. Counting is free."""
    paid = (exchange.usage for exchange in exchanges if exchange.usage)
    return sum(
        (
            Price(
                usage["input_tokens"],
                usage["cache_creation_input_tokens"],
                usage["cache_read_input_tokens"],
                usage["output_tokens"],
            )
            for usage in paid
        ),
        Price(),
    )
