"""What negatives of every kind share: their number and the roles they go by."""

from __future__ import annotations

from cuewise.errors import UserError


class Negative:
    """Base of the negatives; they are frozen dataclasses with these two among their fields."""

    role: str
    count: int  # more than one: roles are numbered, negative1, negative2, …

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"negative {self.role!r}: its count is {self.count} and must be at least 1")

    @property
    def roles(self) -> tuple[str, ...]:
        if self.count == 1:
            return (self.role,)
        return tuple(f"{self.role}{i + 1}" for i in range(self.count))
