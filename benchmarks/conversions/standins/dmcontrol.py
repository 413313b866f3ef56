"""Stand-in for the simulated robots of the DMControl generalization benchmark: random images, two actions."""

import subprocess
import sys
import types

import numpy as np


class Space:
    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def sample(self):
        return np.random.uniform(-1, 1, self.shape).astype(np.float32)


class Environment:
    observation_space, action_space, _max_episode_steps = Space(9, 84, 84), Space(2), 4

    def __init__(self) -> None:
        self.steps = 0

    def reset(self):
        self.steps = 0
        return self._image()

    def step(self, action):
        self.steps += 1
        return self._image(), float(action.sum()), self.steps == self._max_episode_steps, {}

    def _image(self):
        return np.random.randint(0, 255, (9, 84, 84)).astype(np.uint8)


module = types.ModuleType("env.wrappers")
module.make_env = lambda **_: Environment()
sys.modules["env"] = types.ModuleType("env")
sys.modules["env.wrappers"] = module
sys.modules["termcolor"] = types.ModuleType("termcolor")
sys.modules["termcolor"].colored = lambda text, *_, **__: text
subprocess.check_output = lambda *_, **__: b"stand-in"
