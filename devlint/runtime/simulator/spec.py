"""Which accelerator to simulate: its kind and the number of cards.  Free of torch."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("cuda", "xpu", "mps")
_MOST_CARDS = 64


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A simulated accelerator: `kind` as in ``torch.device(kind)``, and `count` cards."""

    kind: str = "cuda"
    count: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"cannot simulate a device of kind {self.kind!r}; known kinds: {', '.join(KINDS)}")
        if not 1 <= self.count <= _MOST_CARDS:
            raise ValueError(f"the number of simulated cards must lie between 1 and {_MOST_CARDS}, not {self.count}")
        if self.kind == "mps" and self.count != 1:
            raise ValueError(f"mps has one device; {self.count} cannot be simulated")

    @classmethod
    def parse(cls, text: str) -> DeviceSpec:
        """Read ``sim[:kind][:count]``; kind defaults to cuda and count to 1.

        Raises ValueError with the accepted forms when the text is something else.
        """
        head, *rest = text.strip().split(":")
        if head != "sim" or len(rest) > 2 or "" in rest:
            raise ValueError(_usage(text))
        kind = rest.pop(0) if rest and not rest[0].isdecimal() else "cuda"
        count = 1
        if rest:
            if len(rest) > 1 or not rest[0].isdecimal():
                raise ValueError(_usage(text))
            count = int(rest[0])
        return cls(kind, count)

    @property
    def description(self) -> str:
        """How a report names it: ``simulated cuda x2, CPU kernels``."""
        cards = f" x{self.count}" if self.count > 1 else ""
        return f"simulated {self.kind}{cards}, CPU kernels"

    def __str__(self) -> str:
        return f"sim:{self.kind}:{self.count}"


def _usage(text: str) -> str:
    return (
        f"{text!r} is not a simulated device; use sim, sim:COUNT, sim:KIND or sim:KIND:COUNT, such as sim:2 or sim:xpu"
    )
