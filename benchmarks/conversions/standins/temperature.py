"""Calls the function that `fire` would call, with a small network and two images for validation."""

import sys
import types

module = types.ModuleType("fire")
module.Fire = lambda train: train(
    "data", "out", valid_size=2, seed=0, depth=10, growth_rate=4, n_epochs=1, batch_size=3
)
sys.modules["fire"] = module
