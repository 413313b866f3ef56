"""Whether a transfer copies the same as before: by the memory's version counter and its first bytes.

torch is imported inside functions.
"""

from __future__ import annotations

import ctypes
import zlib
from typing import Any, Final

from devlint.runtime.recorder import Source

_ATTRIBUTE: Final = "_devlint_copies"
_LOOKED_AT: Final = 1 << 12  # bytes: what numpy writes into shared memory changes no version counter


def source_of(tensor: Any, *, on_host: bool) -> Source | None:
    """What a copy of this tensor reads; None if it cannot be told. on_host: whether its bytes can be read now."""
    import torch

    base: Any = torch._C.TensorBase
    if torch.nn.parameter.is_lazy(tensor):  # no elements yet, and a class that refuses to say so
        return None
    try:
        storage = base.untyped_storage(tensor)
        version = tensor._version
        address = base.data_ptr(tensor)
    except (RuntimeError, NotImplementedError):  # sparse; made in inference mode
        return None
    size = min(tensor.numel() * tensor.element_size(), _LOOKED_AT)
    content = 0
    if on_host and size and base.is_contiguous(tensor):
        content = zlib.adler32((ctypes.c_char * size).from_address(address))
    copies = vars(storage).setdefault(_ATTRIBUTE, {})
    return Source(copies, (version, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), content))
