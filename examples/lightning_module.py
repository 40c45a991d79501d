"""A method of cuewise as a LightningModule: SimCLR with patch negatives under Lightning's Trainer.

pip install pytorch-lightning
python examples/lightning_module.py [DATA]   DATA: a folder, an archive, …; the embedded shapes by default
"""

import sys

import pytorch_lightning as pl
import torch
from plain_torch import SIZE, Views
from torch.utils.data import DataLoader

import cuewise
from cuewise.data import Batch
from cuewise.methods import Negatives, Setup
from cuewise.methods.simclr import SimCLR


class Views2(Views):
    """SimCLR calls its views first and second, and both have negatives."""

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        a, b = super().__getitem__(i), super().__getitem__(i)
        return {
            "first": a["query"],
            "second": b["query"],
            "patch:first": a["patch:query"],
            "patch:second": b["patch:query"],
        }


class Learner(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        encoder = cuewise.load_encoder("cuewise/resnet-tiny", size=SIZE)
        self.method = SimCLR(encoder, Setup(SimCLR.Settings(temperature=0.2), Negatives(("patch",), (2.0,))))
        self.method.train()

    def training_step(self, views: dict[str, torch.Tensor], number: int) -> torch.Tensor:
        self.method.begin_step(self.trainer.global_step / max(1, self.trainer.estimated_stepping_batches))
        step = self.method(Batch(views, torch.arange(len(views["first"]))))
        self.log("loss", step.loss, prog_bar=True)
        return step.loss

    def on_after_backward(self) -> None:
        self.method.after_backward()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.method.parameters(), lr=1e-3)


def main(data: str = "shapes?n=512&size=48", epochs: int = 2) -> float:
    loader = DataLoader(Views2(data), batch_size=64, shuffle=True, drop_last=True)
    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    trainer.fit(Learner(), loader)
    return float(trainer.callback_metrics["loss"])


if __name__ == "__main__":
    print(f"loss {main(*sys.argv[1:]):.3f}")
