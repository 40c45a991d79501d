"""A method of your own: two views agree, and every feature keeps its variance. Trained, checked and audited like a built-in one.

python examples/own_method.py [DATA]         DATA: a folder, an archive, …; the embedded shapes by default
cuewise pretrain photos --out runs/align --method own_method:Align        # from this folder
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import cuewise
from cuewise.data import Batch
from cuewise.encoders.heads import mlp, unit
from cuewise.methods import Method, MethodSettings, Step


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set align.*"""

    dim: Annotated[int, "of the embedding"] = 32
    spread: Annotated[float, "weight of the variance"] = 1.0


class Align(Method):
    """L = mean (a − b)² + spread · mean max(0, 1 − std)."""

    name = "align"
    summary = "two views agree, features keep their variance"
    citation = "after Bardes et al. 2022"
    equation = "L = mean (a − b)² + spread · Σ_views mean max(0, 1 − std)"
    views = {"first": "simclr", "second": "simclr"}
    optim = {"name": "adam", "lr": 1e-3, "reference_batch": 256, "weight_decay": 1e-6}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.projector = mlp([self.encoder.dim, self.encoder.dim, self.settings.dim], norm=True)

    def forward(self, batch: Batch) -> Step:
        a, b = (self.projector(self.encoder(batch.views[role])) for role in self.views)  # B×D each
        variance = sum((1 - z.std(0)).relu().mean() for z in (a, b))
        loss = (a - b).square().mean() + self.settings.spread * variance
        return Step(loss, unit(a.detach()), unit(b.detach()))


def main(data: str = "shapes?n=800&size=48", out: str = "runs/align", **settings: Any) -> dict[str, Any]:
    small: dict[str, Any] = {"model": "cuewise/resnet-tiny", "size": 32, "batch_size": 64, "epochs": 3}
    cuewise.pretrain(data, out=out, method="own_method:Align", **(small | settings))
    return cuewise.audit(out, out=Path(out) / "audit", only="accuracy,shape_bias")


if __name__ == "__main__":
    for score in main(*sys.argv[1:])["scores"]:
        print(score["name"], round(score["value"], 3))
