"""Scores that come back from a checkpoint on the card of the process that saved it, and meet those of another card.

    checkpoint = torch.load(path)             # on the card that saved it
    best = checkpoint["best"]
    score = validate(loader, model, gpu)      # a tensor on this process's card
    best = max(score, best)                   # two cards meet
    torch.save({"best": best}, path)

The file must show all of it: several processes with a card each, that the score is a tensor there, that it is what is saved
under the name that is read back, and that nothing moves it or makes a number of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import Load, Meet, Operand
from devlint.facts.surveys.on_card import card_of
from devlint.facts.surveys.outline import Outline, dotted, own_nodes
from devlint.facts.text.checkpoint_entries import entry_source
from devlint.facts.text.nodes import holds
from devlint.facts.text.references import last_name
from devlint.facts.values import Symbol, Value

_PROCESSES = ("DistributedDataParallel", "init_process_group")
#: Operations that need both of their operands on one device.
_COMPARED = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<="}
#: Names of the number of a process or its card, and of the first one.
_PROCESS = re.compile(r"(?i)rank|gpu|card|main_process|master")
_CHOICES = frozenset({"max", "min"})


def restored_scores(o: Outline) -> Iterator[Meet]:
    """The entries of checkpoints that are such scores."""
    text = o.flow.source.text
    if o.test or not o.flow.assume or "torch.save" not in text or not any(word in text for word in _PROCESSES):
        return
    loads = {
        e.node: e
        for e in o.flow.events.values()
        if isinstance(e, Load)
        and e.map_location is None
        and not e.star_arguments
        and e.tensors
        and e.qualname == "torch.load"
    }
    for statement in ast.walk(o.tree) if loads else ():
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        name, scope = statement.targets[0], o.scope(statement)
        source = entry_source(statement.value)
        if not isinstance(name, ast.Name) or not isinstance(source, ast.Name) or source.id == name.id:
            continue
        given = o.assignments(source.id, statement)
        load = next((loads[value] for value in given if value in loads), None)
        if load is None or any(value not in loads for value in given):
            continue
        key = key_of(statement.value)
        if key is None or not is_saved(scope, key, name.id) or is_moved(o, name.id, scope):
            continue
        met = meeting(o, name.id, scope)
        card = card_of(o, met[2], scope) if met is not None else None
        if met is None or card is None or is_of_one_process(load.node, met[0], scope):
            continue
        node, operation, score = met
        there = frozenset({Symbol(o.flow.text(card), o.flow.span(card).start)})
        because = (
            o.flow.origin(load.node, "every tensor of the checkpoint is put on the device that saved it here"),
            o.flow.origin(card, "the score is computed on this GPU"),
            o.flow.origin(node, f"meets `{o.flow.text(score)}` here"),
        )
        off = Operand(o.flow.span(statement.value), statement.value, o.flow.text(statement.value), Value("tensor"))
        other = Operand(o.flow.span(score), score, o.flow.text(score), Value("tensor", there, True))
        yield Meet(*o.head(statement.value, *because), "restored", operation, off, other, "assume")


def is_of_one_process(load: ast.AST, met: ast.expr, scope: ast.AST) -> bool:
    """Whether a file is that of one process by its name, or one process alone reads it or compares: `if rank == 0:`."""
    given = (n for a in getattr(load, "args", ()) for n in ast.walk(a))
    if any(_PROCESS.search(last_name(n)) for n in given if isinstance(n, (ast.Name, ast.Attribute))):
        return True
    for node in own_nodes(scope):
        if isinstance(node, ast.If) and is_one_process(node.test):
            if holds(node, load) or holds(node, met) or any(isinstance(n, (ast.Return, ast.Raise)) for n in node.body):
                return True
    return False


def is_one_process(test: ast.expr) -> bool:
    """Whether a condition is about the number of a process, beyond whether there is one: `gpu == 0`, `not rank`."""
    names = [n for n in ast.walk(test) if isinstance(n, (ast.Name, ast.Attribute)) and _PROCESS.search(last_name(n))]
    none = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
    return bool(names) and not none


def key_of(node: ast.expr) -> str | None:
    """The key under which an expression takes its entry: `best` of `checkpoint["best"]` and of `checkpoint.get("best")`."""
    key = node.slice if isinstance(node, ast.Subscript) else node.args[0] if isinstance(node, ast.Call) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def is_saved(scope: ast.AST, key: str, name: str) -> bool:
    """Whether a function puts a name, as it is, under a key of a dict."""
    return any(
        isinstance(node, ast.Dict)
        and any(
            isinstance(k, ast.Constant) and k.value == key and isinstance(v, ast.Name) and v.id == name
            for k, v in zip(node.keys, node.values, strict=True)
        )
        for node in own_nodes(scope)
    )


def is_moved(o: Outline, name: str, scope: ast.AST) -> bool:
    """Whether anything asks a name for more than its value, or hands it to what may move it or make a number of it."""
    shared = any(isinstance(node, ast.Global) and name in node.names for node in own_nodes(scope))
    for node in ast.walk(o.tree) if shared else own_nodes(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            return True
        if isinstance(node, ast.Assign) and any(dotted(target) == name for target in node.targets):
            for call in ast.walk(node.value):
                if isinstance(call, ast.Call) and dotted(call.func) not in _CHOICES and reads(call, name):
                    return True
    return False


def reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def meeting(o: Outline, name: str, scope: ast.AST) -> tuple[ast.expr, str, ast.expr] | None:
    """Where a function compares a name with something: the place, the operation, and what it is compared with."""
    for node in own_nodes(scope):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            sides, operation = [node.left, node.comparators[0]], _COMPARED[type(node.ops[0])]
        elif isinstance(node, ast.Call) and dotted(node.func) in _CHOICES and len(node.args) == 2:
            sides, operation = node.args, dotted(node.func) or ""
        else:
            continue
        for one, other in (sides, sides[::-1]):
            if isinstance(one, ast.Name) and one.id == name and not isinstance(other, ast.Constant):
                return node, operation, other
    return None
