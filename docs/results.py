"""docs/results.md, its claims, details and figures, from the stored results in docs/results.

python docs/results.py                                    # write the pages again
python docs/results.py add OUT/results.json --seen "…"    # store a finished study, then write the pages
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from results_papers import papers
from results_store import Judged, Stored, expected_by_chance, first_look, read_all, slim
from results_svg import figure

from cuewise.errors import UserError
from cuewise.studies.claims import HELD, interval_text
from cuewise.studies.plan import spoken
from cuewise.studies.results import judged as judged_study
from cuewise.studies.writing import study_markdown

DOCS = Path(__file__).parent
FAMILIES = {  # title → how its studies are named
    "Tuning a trained model": ("tune",),
    "Non-semantic negatives": ("ns-",),
    "LooC": ("looc-",),
    "Texture suppression": ("adf-",),
    "Objects and scenes": ("oac", "hcl"),
    "CAN": ("can",),
    "With and without labels": ("ssl-",),
    "Transfer": ("transfer",),
}
BEHIND = (
    "Behind [results.md](results.md): one part per stored file. Means over seeds ± half the 95 % t interval; differences "
    "are paired by seed."
)
UNSEEN = "nothing was named when it was stored."
WORDS = ("held", "leaning", "not held", "opposite")


def pages(stored: Sequence[Stored]) -> dict[str, str]:
    """File below docs/ → its text."""
    judged = [j for s in stored for j in s.judged()]
    families = {
        title: [j for j in judged if j.study.name.startswith(names)] for title, names in FAMILIES.items()
    }
    left = [j for j in judged if not any(j in found for found in families.values())]
    families = {title: found for title, found in {**families, "Others": left}.items() if found}
    figures = {f"images/results-{slug(t)}.svg": figure(t, found) for t, found in families.items()}
    return {
        "results.md": overview(stored, judged, families),
        "results-claims.md": claims(stored, families),
        "results-details.md": details(stored),
        "papers.md": papers(stored),
        **figures,
    }


def slug(text: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def overview(stored: Sequence[Stored], judged: Sequence[Judged], families: Mapping[str, list[Judged]]) -> str:
    """One page to read in two minutes: a figure per family of claims."""
    words = ", ".join(f"{len(those)} {w}" for w, those in by_verdict(judged).items())
    held = len(by_verdict(judged)[HELD])
    lines = [
        "# Measured: the papers' claims at lab scale",
        "",
        f"**{len(judged)} claims judged: {words}.** A verdict needs the 95 % interval over seeds of every decisive difference. "
        f"If none of these claims were true, chance alone would give at most {expected_by_chance(judged):.1f} *held* "
        f"(one interval in forty ends above zero); {held} are.",
        "",
        "A figure has a line per claim: the decisive difference that is nearest to failing, with its interval. Right of zero is "
        "as claimed. Absolute accuracies are not comparable with the papers'; directions and differences are.",
        "",
        *few(stored),
        "Behind it: [every claim](results-claims.md) with its decisive interval and what had been seen before, "
        "[every table](results-details.md), [how a claim is judged](reproduce.md#how-a-claim-is-judged), "
        "[each table and figure of the papers](papers.md), [earlier runs](results-three-seeds.md) with three seeds. All of it is "
        "written by `python docs/results.py` from the [stored values](results) of every seed.",
        "",
    ]
    for title, found in families.items():
        lines += [f"## {title}", "", f"![{title}](images/results-{slug(title)}.svg)", "", *numbers(found), ""]
    if not judged:
        lines += ["Nothing has been stored yet.", ""]
    return "\n".join(lines)


def by_verdict(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    return {w: [j for j in judged if j.verdict.word == w] for w in WORDS}


def numbers(found: Sequence[Judged]) -> list[str]:
    """The claims of a family by verdict and lab, each a link to its table."""
    parts = []
    for word, those in by_verdict(found).items():
        places = dict.fromkeys(j.where for j in those)
        listed = [
            f"{p} " + ", ".join(f"[{j.claim.number}]({link(j)})" for j in those if j.where == p)
            for p in places
        ]
        parts += [f"{word.capitalize()}: {'; '.join(listed)}."] if listed else []
    return [" ".join(parts)]


def claims(stored: Sequence[Stored], families: Mapping[str, list[Judged]]) -> str:
    """A row per claim, and what had been seen before."""
    lines = [
        "# Measured: every claim",
        "",
        "Behind [results.md](results.md). Intervals are over seeds and, where draws are named, over the training images of the "
        "probe. [reproduce.md](reproduce.md) says how a claim is judged, [results-details.md](results-details.md) has every table.",
        "",
    ]
    for title, found in families.items():
        lines += [f"## {title}", "", *glance(found), ""]
    return "\n".join([*lines, *seen(stored)])


def few(stored: Sequence[Stored]) -> list[str]:
    found = [s for s in stored if first_look(s.seeds)]
    names = ", ".join(f"{s.name} ({s.seeds} seeds)" for s in found)
    return [f"**A first look only**, fewer than five seeds: {names}.", ""] if found else []


def seen(stored: Sequence[Stored]) -> list[str]:
    """What had been looked at before the runs that are reported."""
    lines = [
        f"- {s.name}: {(s.document['seen'] or UNSEEN).rstrip('.')}. {s.document['note']}".rstrip()
        for s in stored
    ]
    return (
        [
            "## Seen before",
            "",
            "Settings are chosen on few seeds and then fixed. Of each file:",
            "",
            *lines,
            "",
        ]
        if lines
        else []
    )


def glance(found: Sequence[Judged]) -> list[str]:
    """A row per claim, with the difference that decides against it or is nearest to doing so."""
    lines = [
        "| claim | where | verdict | seeds | weakest decisive difference |",
        "| --- | --- | --- | --- | --- |",
    ]
    for j in found:
        w, others = j.weakest, len(j.verdict.outcomes) - 1
        text = f"{w.difference.label} {interval_text(w.mean, w.low, w.high)}, claimed {w.difference.claimed}"
        text += f"; the weakest of {others + 1}" if others else ""
        sentence = f"[{j.claim.number}]({link(j)}). {j.claim.sentence}"
        cells = [sentence, j.where, f"**{j.verdict.word}**", over(j), text]
        lines.append(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in cells)} |")
    return lines


def link(j: Judged) -> str:
    """Its place among all tables."""
    return f"results-details.md#{slug(heading(j.study.name, j.stored))}"


def over(j: Judged) -> str:
    """Seeds, and the draws of a probe's training images."""
    return str(j.verdict.seeds) + (f" × {j.verdict.draws} draws" if j.verdict.draws else "")


def heading(study: str, stored: str) -> str:
    return f"{study} in {stored}"


def details(stored: Sequence[Stored]) -> str:
    """Every table, by stored file."""
    parts = ["# Measured: all tables", "", BEHIND, ""]
    for s in stored:
        parts += [f"# {s.name}", "", *facts(s), ""]
        for study, table in s.tables():
            parts += [study_markdown(heading(study.name, s.name), judged_study(study, table, s.lab)), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def facts(s: Stored) -> list[str]:
    """Command, date, commit, runs, remarks."""
    d = s.document
    seeds = ", ".join(map(str, d["seeds"]))
    ran = f"{d['runs']} runs of {spoken(d['epochs'].values())}, seeds {seeds}, {d['worker_minutes']} minutes of worker time"
    if d["budget_minutes"]:
        ran += f", cut to fit --budget {d['budget_minutes']:g}"
    lines = [
        f"    {d['command']}",
        "",
        f"{ran}; {d['date']}, commit {d['commit'] or 'not recorded'}. {d['model']} at {d['size']} px.",
    ]
    lines += ["", f"**Seen before:** {d['seen']}"] if d["seen"] else []
    lines += ["", d["note"]] if d["note"] else []
    lines += [f"\n**Warning:** {w}." for w in d["warnings"]]
    changed = s.changed_arms()
    lines += ["", f"**Settings have changed since** in {', '.join(changed)}."] if changed else []
    return lines


def write(store: Path, docs: Path) -> list[Path]:
    """All pages; figures that no page shows any more are removed."""
    found = pages(read_all(store))
    (docs / "images").mkdir(exist_ok=True)
    for old in (docs / "images").glob("results-*.svg"):
        if f"images/{old.name}" not in found:
            old.unlink()
    for name, text in found.items():
        (docs / name).write_text(text, encoding="utf-8")
    return [docs / name for name in found]


def add(file: Path, store: Path, name: str, **how: str) -> Path:
    """Store a finished study under its name; the same name replaces it."""
    document = json.loads(file.read_text(encoding="utf-8"))
    kept = slim(document, **how)
    name = name or "-".join(document["studies"])
    out = store / f"{name}.json"
    store.mkdir(exist_ok=True)
    Stored(
        name, kept
    ).judged()  # before anything is written: values that no study of today understands are refused
    out.write_text(compact(kept), encoding="utf-8")
    return out


def compact(document: Mapping[str, object]) -> str:
    """JSON with a line per quantity."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: "[" + re.sub(r",\s+", ", ", m[1]) + "]", text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb")
    adding = verbs.add_parser("add", help="store a finished study, then write the pages")
    adding.add_argument("file", type=Path, help="OUT/results.json of cuewise reproduce")
    adding.add_argument("--name", default="", help="of the stored file [the names of its studies]")
    adding.add_argument(
        "--seen", default="", help="what had been looked at before: settings, seeds, parts of the data"
    )
    adding.add_argument("--note", default="", help="a remark without numbers")
    adding.add_argument("--commit", default="", help="of the code that ran [the one in results.json]")
    asked = parser.parse_args()
    try:
        if asked.verb == "add":
            how = {k: getattr(asked, k) for k in ("commit", "seen", "note")}
            print(add(asked.file, DOCS / "results", asked.name, **how))
        for file in write(DOCS / "results", DOCS):
            print(file)
    except UserError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
