"""Names of the functions of torch that make tensors [torch/_torch_docs.py]; a place that means more adds that itself."""

from __future__ import annotations

#: Of what they are given, a tensor too, which stays where it is if they are told no device.
COPIES = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
#: Of arrays, lists and numbers.
CONVERSIONS = COPIES | {"torch.from_numpy"}
#: Whose arguments without a name are sizes, all of them.
OF_SIZES = frozenset({"torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"})
