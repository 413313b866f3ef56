"""What the rules about mixed devices say and do about a mismatch: one message, and a fix at its cause."""

from __future__ import annotations

import ast

from devlint.api import DeviceMismatch, Edit, Finding, Fix, InsertStatement, Safety, Site, Span, cst

from . import _shared as shared
from ._calls import with_keyword


def judge(event: DeviceMismatch, site: Site) -> Finding:
    """The finding of a mismatch."""
    when = f" when {event.when}" if event.when else ""
    message = f"{_fact(event, site)}{when}: {event.clause}"
    return Finding(event.span, message, _fix(event, site), shared.trail(event, event.span))


def _fact(event: DeviceMismatch, site: Site) -> str:
    """What is wrong, as one clause."""
    off, other = _quoted(event.off.text), _quoted(event.other.text)
    line = f"on {site.line(event.off.span)}" if event.off.span is not None else "in another file"
    if event.code == "DEV109":
        return f"{other} {event.other.where}, and `{event.operation}` reads only CPU memory"
    if event.leaves:
        return f"`{event.factory_name}` makes a CPU tensor that leaves the function; {other} {event.other.where}"
    if event.code == "DEV102" and event.factory is not None:
        needs = f"{_operation(event)} {line} needs it on the device of {other}, which {event.other.where}"
        return f"`{event.factory_name}` makes a CPU tensor; {needs}"
    return f"{off} {event.off.where}, {other} {event.other.where}; {_operation(event)} needs both on one device"


def _operation(event: DeviceMismatch) -> str:
    if event.how == "index":
        return "the index"
    if event.how == "module":
        return f"the call of `{shared.short(event.operation)}`"
    return f"`{shared.short(event.operation.removeprefix('torch.'))}`"


def _quoted(text: str) -> str:
    return f"`{shared.short(text)}`"


def _fix(event: DeviceMismatch, site: Site) -> Fix | None:
    if event.code == "DEV109":
        return _bring_to_host(event, site)
    if event.remedy is None:
        return Fix(f"Move {_quoted(event.off.text)} to the device of {_quoted(event.other.text)}", Safety.HINT)
    device = event.remedy.device
    if event.code == "DEV102" and event.factory is not None:
        return _create_there(event, site, device)
    return _move(event, site, device)


def _safety(event: DeviceMismatch) -> Safety:
    """Safe where torch refuses the operation wherever the devices differ, so that the move changes nothing elsewhere."""
    return Safety.UNSAFE if event.soft or event.leaves or event.certainty == "assume" else Safety.SAFE


def _create_there(event: DeviceMismatch, site: Site, device: str) -> Fix:
    hint = Fix(f"Create the tensor on `{device}`: pass `device={device}`", Safety.HINT)
    assert event.factory is not None
    call = site.at(event.factory)
    if not isinstance(call, cst.Call) or site.has_comment(call) or any(each.star == "**" for each in call.args):
        return hint
    if _names(device) & _bound_by(event.factory, site):
        return hint
    if event.takes_device:
        return Fix(
            f"Create the tensor on `{device}`",
            _safety(event),
            (Edit(call, with_keyword(call, "device", site.expression(device))),),
        )
    return Fix(
        f"Move the tensor to `{device}`", _safety(event), (Edit(call, shared.moved(call, site.expression(device))),)
    )


def _names(device: str) -> set[str]:
    return {device.removeprefix("next(").partition(".")[0].partition("[")[0]}


def _bound_by(span: Span, site: Site) -> set[str]:
    """The names that the statement around a place binds: the device is not known before it."""
    statement = site.statement_at(span)
    if not isinstance(statement, cst.Assign):
        return set()
    return {site.code(target.target).strip() for target in statement.targets}


def _move(event: DeviceMismatch, site: Site, device: str) -> Fix:
    hint = Fix(f"Move {_quoted(event.off.text)} to `{device}`", Safety.HINT)
    if event.loop is not None and not _is_called(event):
        statement = shared.assign_moved(event.off.node, device, site)  # type: ignore[arg-type]
        title = f"Move {_quoted(event.off.text)} to `{device}` at the top of the loop"
        return Fix(title, _safety(event), (InsertStatement(event.loop, statement),))
    if event.how in ("inplace", "out") or not isinstance(
        event.off.node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
    ):
        return hint
    node = site.at(event.off.span) if event.off.span is not None else None
    if not isinstance(node, cst.BaseExpression) or site.has_comment(node) or _is_called(event):
        return hint
    return Fix(hint.title, _safety(event), (Edit(node, shared.moved(node, site.expression(device))),))


def _is_called(event: DeviceMismatch) -> bool:
    """Whether the value to move is the module that is called: it is moved where it is made."""
    return isinstance(event.node, ast.Call) and event.node.func is event.off.node


def _bring_to_host(event: DeviceMismatch, site: Site) -> Fix | None:
    node = site.at(event.other.span) if event.other.span is not None else None
    if not isinstance(node, cst.BaseExpression) or site.has_comment(node):
        return None
    detached = isinstance(event.other.node, ast.Call) and getattr(event.other.node.func, "attr", "") == "detach"
    methods = ("cpu",) if detached else ("detach", "cpu")
    title = f"Copy the tensor to the CPU: `{'.'.join(f'{each}()' for each in methods)}`"
    return Fix(title, _safety(event), (Edit(node, shared.chain(node, *methods)),))
