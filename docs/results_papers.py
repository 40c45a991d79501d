"""docs/papers.md: each table and figure of the papers, its command, what was measured, its recipe at the paper's scale."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from results_store import Stored

TITLE = """# The papers, table by table

Written by `python docs/results.py`. *Lab scale*: a command that trains in minutes to hours on two cores, and the verdicts stored over five seeds ([results.md](results.md));
*not run* means that no run over five seeds is stored. *Paper scale*: recipes of `cuewise pretrain --config NAME` (see `cuewise list recipes`); none of them was run here.
"""
NS = "Ge et al. 2021 (non-semantic negatives)"
LOOC = "Xiao et al. 2021 (LooC)"
ADF = "Mishra et al. (texture suppression)"


class Row(NamedTuple):
    """One table or figure; `command` is a study or an audit of an encoder that you have."""

    where: str
    what: str
    command: str
    recipes: tuple[str, ...] = ()

    @property
    def studies(self) -> list[str]:
        found = re.match(r"cuewise reproduce ([\w -]+?)(?: --|$)", self.command)
        return found[1].split() if found else []


PAPERS = {
    NS: (
        Row("Table 1", "ImageNet-100 and its out-of-domain variants", "cuewise reproduce ns-baselines --out runs/t1",
            ("moco-imagenet100", "moco-patch-imagenet100", "ns-moco-patch3-imagenet100", "ns-moco-texture-imagenet100", "ns-moco-ifm1-imagenet100",
             "ns-insdis-imagenet100", "ns-cmc-imagenet100", "ns-infomin-imagenet100")),
        Row("Table 2, Table 8", "ImageNet-1k and its variants", "cuewise reproduce ns-baselines --method moco --out runs/t2",
            ("moco-imagenet", "moco-patch-imagenet", "ns-moco-patch3-imagenet", "ns-moco-mochi128-imagenet")),
        Row("Table 3", "without colour jitter", "cuewise reproduce ns-color --out runs/t3",
            ("ns-moco-nojitter-imagenet100", "ns-moco-patch-nojitter-imagenet100")),
        Row("Table 4", "STL-10", "cuewise reproduce ns-baselines --method simclr --out runs/t4",
            ("ns-moco-stl10", "ns-moco-patch-stl10", "simclr-stl10", "ns-simclr-patch-stl10", "ns-simclr-hard-stl10", "ns-simclr-debiased-stl10")),
        Row("Figures 2, 3, 12", "similarity of pairs", "cuewise audit runs/plain runs/shape --only similarity --out audits/pairs",
            ("moco-imagenet100", "moco-patch-imagenet100")),
        Row("Figures 4, 5", "length of the queue", "cuewise reproduce ns-bank --values 128,256,512,1024,2048 --out runs/f4",
            ("ns-moco-imagenet100-k8192", "ns-moco-patch-imagenet100-k8192")),
        Row("Figure 6, Figure 13", "the weight α", "cuewise reproduce ns-alpha ns-alpha-color --values 0,0.5,1,2,3,5 --out runs/f6",
            ("moco-imagenet100", "moco-patch-imagenet100", "ns-moco-patch3-imagenet100")),
        Row("Table 5", "ImageNet-C by severity", "cuewise audit runs/plain runs/shape --only corruption --out audits/corrupted",
            ("ns-moco-patch-imagenet-k16384",)),
        Row("Table 6", "augmentations of single patches: flips and rotations", "cuewise reproduce ns-patch-augment --out runs/t6",
            ("moco-patch-imagenet100",)),
        Row("Table 7", "BYOL with negatives", "cuewise reproduce ns-byol --out runs/t7",
            ("ns-byol-imagenet100", "byol-patch-imagenet100", "ns-byol-regular-imagenet100", "ns-byol-patch-regular-imagenet100", "ns-byol-texture-imagenet100")),
        Row("Figures 9, 10", "accuracy on pure texture", "cuewise audit runs/plain --only texture,texture_classes --out audits/texture"),
        Row("Figure 11", "sides of the patches, as a heat map", "cuewise reproduce ns-patch-grid --values 1:4,1:10,1:16,2:7,2:16,5:10,5:16,7:14,9:16 --out runs/f11", ("moco-patch-imagenet100",)),
    ),
    LOOC: (
        Row("Table 1", "rotation and ImageNet-100", "cuewise reproduce looc-rotation --out runs/l1",
            ("moco-500-imagenet100", "moco-rotation-imagenet100", "moco-rotation-same-imagenet100", "looc-rotation-imagenet100")),
        Row("Table 2", "several downstream tasks", "cuewise reproduce looc-color --out runs/l2",
            ("looc-color-imagenet100", "looc-rotation-imagenet100", "looc-color-rotation-imagenet100", "looc-plus-imagenet100")),
        Row("Table 3", "real-world corruptions", "cuewise audit runs/moco runs/looc --only corruption,rotation --out audits/l3",
            ("looc-rotation-texture-imagenet100", "looc-texture-imagenet100")),
        Row("Table 4", "MoCo with all augmentations", "cuewise reproduce looc-rotation looc-color --out runs/l4",
            ("moco-plus-imagenet100", "looc-plus-color-rotation-imagenet100")),
        Row("Table 5, Figure 4", "features of several spaces; shares of heads", "cuewise reproduce looc-heads --out runs/l5", ("looc-plus-imagenet100",)),
        Row("Table E.1", "leave-one-out and add-one", "cuewise reproduce looc-addone --out runs/le1",
            ("addone-color-imagenet100", "addone-rotation-imagenet100")),
    ),
    ADF: (
        Row("Tables 2.1, 2.2", "MoCo and DenseCL, transfer", "cuewise reproduce adf-ssl transfer --out runs/a1",
            ("adf-moco-imagenet", "adf-densecl-imagenet", "densecl-imagenet")),
        Row("Table 2.3", "sketches", "cuewise reproduce adf-supervised --out runs/a3", ("adf-supervised-imagenet", "adf-supervised-stylised-imagenet")),
        Row("Tables 2.4, 2.5", "filters; other textures", "cuewise reproduce adf-filters --out runs/a4",
            ("adf-anisotropic20-imagenet", "adf-anisotropic50-imagenet", "adf-robust20-imagenet", "adf-gaussian-imagenet", "adf-bilateral-imagenet", "adf-cartoon-imagenet")),
        Row("Table 2.6, Figure 2.8", "corruptions, removed frequencies", "cuewise reproduce adf-supervised --out runs/a6", ("adf-supervised-imagenet",)),
        Row("Tables 2.7 to 2.9", "Jigsaw", "cuewise reproduce adf-jigsaw --out runs/a7",
            ("jigsaw-resnet18-imagenet", "adf-jigsaw-resnet18-imagenet", "adf-jigsaw-patchwise-resnet18-imagenet", "adf-jigsaw-alexnet-imagenet")),
        Row("Table 2.10, Figure 2.7", "corrupted labels", "cuewise reproduce adf-labels --out runs/a10", ("adf-labels-cifar100", "adf-labels-anisotropic-cifar100")),
        Row("Table 2.11, Figure 2.6", "stylised images", "cuewise reproduce adf-stylised --out runs/a11",
            ("adf-stylised-moco-imagenet", "adf-jigsaw-stylised-resnet18-imagenet")),
        Row("the abstract", "with and without labels", "cuewise reproduce ssl-supervised --out runs/a13"),
        Row("Table 2.12, Figure 2.4", "confidence, saliency", "cuewise reproduce adf-supervised --out runs/a12", ("adf-supervised-imagenet",)),
    ),
}  # fmt: skip


def papers(stored: Sequence[Stored]) -> str:
    """The page."""
    lines = [TITLE]
    for title, rows in PAPERS.items():
        lines += [
            f"## {title}",
            "",
            "| where | what | lab scale | measured | paper scale |",
            "| --- | --- | --- | --- | --- |",
        ]
        for r in rows:
            recipes = ", ".join(f"`{n}`" for n in r.recipes) or "–"
            lines.append(f"| {r.where} | {r.what} | `{r.command}` | {measured(r, stored)} | {recipes} |")
        lines.append("")
    return "\n".join(lines)


def measured(row: Row, stored: Sequence[Stored]) -> str:
    """Verdicts by study, with a link to its tables; audits measure an encoder of your own."""
    if not row.studies:
        return "an audit"
    out = []
    for s in stored:
        for study in row.studies:
            words = Counter(j.verdict.word for j in s.judged() if j.study.name == study)
            if words:
                text = ", ".join(f"{n} {w}" for w, n in words.items())
                out.append(f"[{study}](results-details.md#{study}-in-{s.name}): {text}")
    return "; ".join(out) or "not run"
