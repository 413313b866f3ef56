"""Stand-in for the speech data of waveglow: noise, and a spectrogram of noise; and its configuration, made small."""

import json
import sys
import types
from pathlib import Path

import torch


class Mel2Samp(torch.utils.data.Dataset):
    def __init__(self, segment_length: int) -> None:
        made = torch.Generator().manual_seed(1)
        self.audio = torch.rand(4, segment_length, generator=made) - 0.5
        self.mel = torch.rand(4, 80, segment_length // 256 + 1, generator=made)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int):
        return self.mel[index], self.audio[index]


module = types.ModuleType("mel2samp")
module.Mel2Samp = Mel2Samp
sys.modules["mel2samp"] = module
train = {
    "fp16_run": False, "output_directory": "checkpoints", "epochs": 2, "learning_rate": 1e-4, "sigma": 1.0,
    "iters_per_checkpoint": 2, "batch_size": 2, "seed": 1, "checkpoint_path": "", "with_tensorboard": False,
}  # fmt: skip
layers = {"n_layers": 2, "n_channels": 16, "kernel_size": 3}
model = {"n_mel_channels": 80, "n_flows": 4, "n_group": 8, "n_early_every": 2, "n_early_size": 2, "WN_config": layers}
Path("config.json").write_text(
    json.dumps(
        {
            "train_config": train,
            "data_config": {"segment_length": 1024},
            "dist_config": {"dist_backend": "nccl", "dist_url": ""},
            "waveglow_config": model,
        }
    )
)
