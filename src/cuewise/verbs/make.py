"""`cuewise make`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from cuewise.options import SEEDS, OfKind, One, flag_of
from cuewise.verbs.arguments import MACHINE, Address, Engine, Result, Settings, optional

TOPIC = "images"
MAKERS = OfKind("makers", "cuewise.makers", "cuewise.makers.registry:maker", also="cuewise.cues")
OWN = {  # options that are a setting of one maker, which says what they are
    "with_": ("boxes", "proposer"),
    "fit": ("boxes", "fit"),
    "generator": ("learned", "generator"),
}


def help_of(option: str) -> str:
    """The help of the setting that an option is."""
    kind, key = OWN[option]
    setting = MAKERS.options([kind])[key]
    return f"of `make {kind}`: {setting.help}{setting.shown_default}"


def make(
    kind: Annotated[str, "what to make (see `cuewise list makers`)"],
    src: Annotated[One, "the images to start from; left out for `cuewise make shapes DST`"],
    dst: Annotated[One | None, "the folder to write; a second call continues where the first stopped"] = None,
    *,
    set: Annotated[
        Settings,
        "settings of the maker as key=value, e.g. steps=20 (repeatable; `cuewise make KIND --help` lists them)",
        MAKERS,
    ] = None,
    with_: Annotated[str | None, help_of("with_")] = None,
    fit: Annotated[One | None, help_of("fit")] = None,
    generator: Annotated[One | None, help_of("generator")] = None,
    format: Annotated[str, "png, jpeg or webp, with a quality as jpeg:90"] = "png",
    shards: Annotated[int | None, "write tar shards of this many images instead of a tree of files"] = None,
    manifest: Annotated[str, "the table of what was made: jsonl or parquet"] = "jsonl",
    seed: Annotated[
        int,
        "seed of everything random; each image has its own, which follows from it and its name [0]",
        SEEDS,
    ] = 0,
    workers: Annotated[
        str | int, "processes: auto (all cores) or a number; 0 works in this process", MACHINE
    ] = "auto",
    limit: Annotated[int | None, "only the first images"] = None,
    dry_run: Annotated[bool, "only estimate time and size from a sample"] = False,
    both: Annotated[bool, "also write the originals, next to the results"] = False,
    subset: Annotated[
        One | None,
        "the classes to take: imagenet100, or a file that lists them, one per line (as SRC?classes=…)",
    ] = None,
    grid: Annotated[One | None, "a YAML list of settings, one set in a subfolder for each"] = None,
    engine: Engine = "local",
    address: Address = None,
    overwrite: Annotated[bool, "replace the set in DST"] = False,
) -> Result:
    """Make an image set from another one (textures, diffused, cartoons, corrupted, …), or a table of boxes of its objects.

    cuewise make texture photos textures
    cuewise make anisotropic photos smooth --set steps=20 --format jpeg:90 --limit 100
    cuewise make boxes photos boxes
    """
    from cuewise.makers.run import NamedSetting, make_set

    own = {"with_": with_, "fit": optional(fit), "generator": optional(generator)}
    source, target = (None, src) if dst is None else (src, dst)
    found = make_set(
        kind,
        optional(source),
        str(target),
        set=set if set is None or isinstance(set, Mapping) else [*set],  # type: ignore[arg-type]
        named=[NamedSetting(flag_of(name), *OWN[name], v) for name, v in own.items() if v is not None],
        format=format,
        shards=shards,
        manifest=manifest,
        seed=seed,
        workers=str(workers),
        limit=limit,
        dry_run=dry_run,
        both=both,
        subset=optional(subset),
        grid=optional(grid),
        engine=engine,
        address=address,
        overwrite=overwrite,
    )
    return Result(found, rows=_rows(found) if "made" in found else None)


def _rows(found: Mapping[str, Any]) -> dict[str, str | int | float]:
    """What a person sees: `skipped` are images that an earlier run made, `broken` those that cannot be used."""
    shown = {
        "already there" if k == "skipped" else k: len(v) if k == "broken" else v for k, v in found.items()
    }
    return {k: v for k, v in shown.items() if isinstance(v, str | int | float)}
