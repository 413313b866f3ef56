"""What the types in docstrings say of parameters."""

from __future__ import annotations

import ast

import pytest

from devlint.facts.text.documented import Says, meaning, of_function, read


@pytest.mark.parametrize(
    ("type", "says"),
    [
        ("Tensor", "tensor"),
        ("torch.Tensor, shape (n, 3)", "tensor"),
        (":class:`~torch.Tensor`, optional", "tensor"),
        ("`FloatTensor`", "tensor"),
        ("pytorch tensor", "tensor"),
        ("PyTorch tensor, optional", "tensor"),
        ("Tensor[N, 4]", "tensor"),
        ("torch.Tensor or None", "tensor"),
        ("torch.LongTensor of shape `(batch_size, sequence_length)`", "tensor"),
        ("a torch.Tensor", "tensor"),
        ("a torch.Tensor of shape (n, 3)", "tensor"),
        ("list[Tensor]", "several"),
        ("tuple of torch.Tensor", "several"),
        ("dict[str, Tensor]", "several"),
        ("Tensor or float", "maybe"),
        ("torch.Tensor | np.ndarray", "maybe"),
        ("Tensor, list", "maybe"),
        ("tf.Tensor", None),
        ("float", None),
        ("a tensor, for example", None),
        ("TensorDict", None),
    ],
)
def test_a_type_says_tensor(type: str, says: Says | None) -> None:
    assert meaning(type) == says


def test_three_styles_are_read() -> None:
    found = read(
        """Do it.

        Args:
            x (Tensor): one
            y (torch.Tensor, optional): another (Tensor) one
        a, b : torch.Tensor
            two of them
        :param torch.Tensor p: one more
        :type q: torch.Tensor
        """
    )
    assert found.tensors == {"x", "y", "a", "b", "p", "q"}


def test_a_sentence_that_begins_with_the_word_is_no_type() -> None:
    assert not read("Args:\n    dim: Tensor dimension to sum over\n    x: tensor to sum").tensors


def test_a_type_may_stand_behind_a_colon_alone() -> None:
    assert read("Args:\n    x: Tensor of shape (n, 3)\n    y: torch.Tensor").tensors == {"x", "y"}


def test_a_parameter_with_two_types_has_none() -> None:
    assert not read("x (Tensor): one\nx (float): another").tensors


def test_a_class_documents_the_parameters_of_its_constructor() -> None:
    (class_,) = ast.parse(
        'class A:\n    """Args:\n        x (Tensor): one\n    """\n    def __init__(self, x): ...'
    ).body
    assert isinstance(class_, ast.ClassDef)
    assert of_function(class_.body[1], class_).tensors == {"x"}
