"""Names of classes in a line, and those that differ in case and spaces alone."""

from __future__ import annotations

from collections.abc import Sequence

FEW = 8  # names that a line lists


def listed(names: Sequence[str]) -> str:
    """Names in a line, the first few of many; one with spaces at its ends or in a row in quotes."""
    shown = [repr(name) if name != " ".join(name.split()) else name for name in names[:FEW]]
    return ", ".join(shown) + (f", … ({len(names)} in all)" if len(names) > FEW else "")


def alike(names: Sequence[str], others: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of names that are not the same but are without case and spaces; each pair once."""
    place: dict[str, list[str]] = {}
    for other in others:
        place.setdefault(_folded(other), []).append(other)
    found: dict[frozenset[str], tuple[str, str]] = {}
    for name in names:
        for other in place.get(_folded(name), []):
            if other != name:
                found.setdefault(frozenset((name, other)), (name, other))
    return list(found.values())


def _folded(name: str) -> str:
    return "".join(name.casefold().split())


def same_but_for(pairs: Sequence[tuple[str, str]]) -> str:
    """What to do about names that differ in case and spaces alone; empty where there are none."""
    if not pairs:
        return ""
    words = " and ".join(f"{listed([a])} is {listed([b])}" for a, b in pairs[:FEW])
    more = " and so on" if len(pairs) > FEW else ""
    return f"{words}{more} but for case or spaces: rename the folder{'s' if len(pairs) > 1 else ''}"
