"""A method of cuewise in a training loop of your own: MoCo-v2 with patch negatives, in 40 lines of plain torch.

python examples/plain_torch.py [DATA]        DATA: a folder, an archive, …; the embedded shapes by default
"""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

import cuewise
from cuewise.cues.registry import cue
from cuewise.data import Batch
from cuewise.methods import Negatives, Setup
from cuewise.methods.moco import MoCo

SIZE = 32
view = v2.Compose(
    [v2.RandomResizedCrop(SIZE, (0.2, 1.0)), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4)]
)
to_float = v2.Compose(
    [v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
)


class Views(Dataset):
    """Two views of each image, and the first one with its patches shuffled: the same texture, no shape."""

    def __init__(self, data: str) -> None:
        self.images, self.patch = cuewise.open_data(data), cue("patch")

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        image = torch.from_numpy(self.images.image(i)).permute(2, 0, 1)
        query, key = view(image), view(image)
        negative = self.patch(query, np.random.default_rng())
        return {
            "query": to_float(query),
            "key": to_float(key),
            "patch:query": to_float(negative).unsqueeze(0),
        }


def main(data: str = "shapes?n=512&size=48", epochs: int = 2) -> float:
    loader = DataLoader(Views(data), batch_size=64, shuffle=True, drop_last=True)
    encoder = cuewise.load_encoder("cuewise/resnet-tiny", size=SIZE)
    setup = Setup(MoCo.Settings(queue=256, momentum=0.99), Negatives(("patch",), (2.0,)))
    method = MoCo(encoder, setup).train()
    optimizer = torch.optim.SGD(method.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    for epoch in range(epochs):
        for views in loader:
            method.begin_step(progress=epoch / epochs)  # the momentum network follows
            step = method(Batch(views, torch.arange(64)))
            optimizer.zero_grad()
            step.loss.backward()
            method.after_backward()  # the keys join the queue
            optimizer.step()
            loss = step.loss.item()
        print(f"epoch {epoch + 1}: loss {loss:.3f}")
    torch.save(encoder.backbone.state_dict(), "backbone.pth")
    return loss


if __name__ == "__main__":
    main(*sys.argv[1:])
