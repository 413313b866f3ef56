"""Begins and ends of names of torch before the versions that `torch_api.json` covers.

Sources: the release notes of PyTorch 0.4.0, 1.0.0, 1.6.0, 1.8.0, 1.9.0, 1.10.0, 1.13.0 and 2.0.0.
"""

from __future__ import annotations

from typing import Final

from devlint.knowledge.records import Version

#: First torch with a name that fixes write or files use.
BEGUN: Final[dict[str, Version]] = {
    "torch.as_tensor": (0, 4),
    "torch.device": (0, 4),
    "torch.no_grad": (0, 4),
    "torch.set_grad_enabled": (0, 4),
    "torch.tensor": (0, 4),
    "torch.cuda.amp": (1, 6),
    "torch.inference_mode": (1, 9),
    "torch.autocast": (1, 10),
    "torch.amp": (1, 10),
    "torch.amp.autocast": (1, 10),
    "torch.compile": (2, 0),
    "torch.mps": (2, 0),
    "torch.set_default_device": (2, 0),
    "torch.backends.mps": (1, 12),
}
#: Last torch with a name.
ENDED: Final[dict[str, Version]] = {
    "torch.rfft": (1, 7),
    "torch.irfft": (1, 7),
    "torch.ifft": (1, 7),
    "torch.autograd.gradcheck.zero_gradients": (1, 8),
    "torch._six": (1, 13),
}
#: First torch with a method, or with an attribute, of tensors.
TENSOR_BEGUN: Final[dict[str, Version]] = {"to": (0, 4), "item": (0, 4), "device": (0, 4), "new_tensor": (0, 4)}
#: First torch with an argument, by the last part of the function's name and its own; "" stands for any function of torch.
ARGUMENT_BEGUN: Final[dict[tuple[str, str], Version]] = {
    ("", "device"): (0, 4),
    ("", "non_blocking"): (0, 4),
    ("register_buffer", "persistent"): (1, 6),
    ("load", "weights_only"): (1, 13),
}
#: A place as a text for `torch.load`; before it takes a function or a dictionary.
TEXT_FOR_MAP: Final[Version] = (0, 4)
#: The last torch whose `DataLoader` iterators have `next()` beside `__next__()`.
ITERATOR_NEXT: Final[Version] = (1, 12)
#: The last torch in which a tensor without dimensions may be indexed.
SCALAR_INDEX: Final[Version] = (0, 4)
#: The last torch in which `volatile` does something. Later ones warn.
VOLATILE: Final[Version] = (0, 3)
