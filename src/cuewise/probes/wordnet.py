"""Classes of ImageNet-1k by WordNet id and by name: `n02123045` is `tabby`."""

from __future__ import annotations

from collections import Counter
from functools import cache


def other_names(name: str) -> tuple[str, ...]:
    """What a class is called as well: the names of a WordNet id, or the id of a name; empty where neither is known."""
    ids = imagenet_classes()
    if name in ids:
        return ids[name]
    found = _ids_by_name().get(plain(name))
    return () if found is None else (found, *(n for n in ids[found] if plain(n) != plain(name)))


def plain(name: str) -> str:
    """Names are compared without case; folders often have _ or - for a space."""
    return name.lower().replace("_", " ").replace("-", " ").strip()


@cache
def imagenet_classes() -> dict[str, tuple[str, ...]]:
    """WordNet id → names, in ImageNet's usual order."""
    from timm.data import ImageNetInfo  # type: ignore[attr-defined]

    info = ImageNetInfo()
    described = ((label, info.label_name_to_description(label)) for label in info.label_names())
    return {label: tuple(n.strip() for n in text.split(",") if n.strip()) for label, text in described}


@cache
def _ids_by_name() -> dict[str, str]:
    """name → id for the names that only one class has (a crane is a bird and a machine)."""
    ids = imagenet_classes()
    counts = Counter(plain(n) for names in ids.values() for n in set(names))
    return {plain(n): k for k, several in ids.items() for n in several if counts[plain(n)] == 1}
