"""The shape of a file: scopes, loops, conditions, and what a path is bound to."""

from __future__ import annotations

import ast

from devlint.facts.interpreter.flow import Flow
from devlint.facts.result import Facts
from devlint.facts.surveys.outline import Outline, argument, dotted, root_of, stored, touches
from devlint.facts.text.names import collect_imports
from devlint.facts.text.scan import scan
from devlint.source import decode, parse


def outline(code: str) -> Outline:
    source = decode(code.encode(), "case.py")
    tree = parse(source)
    flow = Flow(source, collect_imports(tree), Facts("case.py", code), True)
    flow.scan = scan(tree)
    return Outline(tree, flow)


def call(o: Outline, name: str) -> ast.Call:
    return next(c for c in o.calls if getattr(c.func, "attr", getattr(c.func, "id", "")) == name)


def test_a_default_belongs_to_the_scope_around_its_function() -> None:
    o = outline("def f(x=here()):\n    there()\n")
    assert o.function(call(o, "here")) is None
    assert o.name(call(o, "there")) == "f"


def test_a_method_is_named_with_its_class() -> None:
    o = outline("class A:\n    def f(self):\n        here()\n")
    assert o.name(call(o, "here")) == "A.f"


def test_a_loop_repeats_its_body_and_not_what_it_runs_over() -> None:
    o = outline("for x in over():\n    body()\nelse:\n    after()\n")
    assert o.loop(call(o, "body")) is o.tree.body[0]
    assert o.loop(call(o, "over")) is None
    assert o.loop(call(o, "after")) is None


def test_a_nested_function_is_not_run_by_the_loop_that_makes_it() -> None:
    o = outline("while True:\n    def f():\n        here()\n")
    assert o.loop(call(o, "here")) is None


def test_the_test_of_an_if_is_unconditional_and_its_branches_are_not() -> None:
    o = outline("for x in y:\n    if asked():\n        body()\n    first() and second()\n")
    loop = o.tree.body[0]
    assert not o.conditional(call(o, "asked"), loop)
    assert o.conditional(call(o, "body"), loop)
    assert not o.conditional(call(o, "first"), loop)
    assert o.conditional(call(o, "second"), loop)


def test_a_qualified_name_follows_the_imports_unless_a_parameter_hides_them() -> None:
    o = outline("import torch.cuda as tc\ntc.one()\ndef f(tc):\n    tc.two()\n")
    assert o.qualname(call(o, "one").func) == "torch.cuda.one"
    assert o.qualname(call(o, "two").func) is None


def test_assignments_are_those_of_the_nearest_scope() -> None:
    o = outline("a = 1\ndef f(b):\n    a, c = 2, 3\n    here(a)\ndef g():\n    there(a)\n")
    near = [ast.unparse(v) for v in o.assignments("a", call(o, "here")) if v is not None]
    far = [ast.unparse(v) for v in o.assignments("a", call(o, "there")) if v is not None]
    assert (near, far) == (["2"], ["1"])
    assert o.assignments("b", call(o, "here")) == [None]


def test_stored_paths_hold_subscripts_by_their_base() -> None:
    tree = ast.parse("a.b[0] = 1\nc += 1\nfor d in e: pass\ndel f\n")
    assert stored(tree.body) >= {"a.b", "c", "d", "f"}
    assert "e" not in stored(tree.body)


def test_a_path_is_touched_by_binding_what_holds_it() -> None:
    assert touches("self.net.weight", {"self.net"})
    assert not touches("self.net", {"self.net.weight"})
    assert not touches("net", {"network"})


def test_arguments_behind_a_star_have_no_known_position() -> None:
    node = ast.parse("f(*a, 1, k=2)", mode="eval").body
    assert isinstance(node, ast.Call)
    assert argument(node, "x", 1) is None
    keyword = argument(node, "k")
    assert keyword is not None and ast.unparse(keyword) == "2"


def test_a_chain_starts_from_its_root() -> None:
    node = ast.parse("x.a().b[0].c()", mode="eval").body
    assert dotted(root_of(node)) == "x"
