"""Classes of ImageNet-1k by WordNet id and by name: `n02123045` is `tabby`."""

from __future__ import annotations

from collections import Counter
from functools import cache


def other_names(name: str) -> tuple[str, ...]:
    """What a class is called as well: the names of a WordNet id, or the id of a name; empty where neither is known."""
    ids, names = _tables()
    if name in ids:
        return ids[name]
    found = names.get(plain(name))
    return () if found is None else (found, *(n for n in ids[found] if plain(n) != plain(name)))


def plain(name: str) -> str:
    """Names are compared without case; folders often have _ or - for a space."""
    return name.lower().replace("_", " ").replace("-", " ").strip()


@cache
def _tables() -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """id → names, and name → id for the names that only one class has (a crane is a bird and a machine)."""
    from timm.data import ImageNetInfo  # type: ignore[attr-defined]

    info = ImageNetInfo()
    ids: dict[str, tuple[str, ...]] = {}
    for i, wordnet_id in enumerate(info.label_names()):
        ids[wordnet_id] = tuple(n.strip() for n in info.index_to_description(i).split(",") if n.strip())
    counts = Counter(plain(n) for names in ids.values() for n in set(names))
    names = {plain(n): k for k, several in ids.items() for n in several if counts[plain(n)] == 1}
    return ids, names
