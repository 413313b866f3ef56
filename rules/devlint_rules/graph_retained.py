"""A training loop collects losses together with their computation graphs.

## What it flags
The rule reports `total += loss`, `total = total + loss` and `losses.append(loss)` in a training loop. The rule reports
it if the loop also calls `.backward()` on this loss, and the total or the list is kept after the step.

## Why it matters
The total or the list keeps the graph of each step alive, together with the device memory that the graph uses. Memory
use grows with each step until the device is out of memory.

## Example
    import torch.nn.functional as F

    def train(model, batches, optimizer):
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return losses

Use instead:

    import torch.nn.functional as F

    def train(model, batches, optimizer):
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

## Fix safety
The fix is unsafe. Later code may call `backward()` on the total. After the fix, it gets no gradient.

## Known limits
These losses are not reported:

- a loss that the loop replaces by a number or a detached copy;
- a loss whose backward pass uses `retain_graph` or `create_graph`;
- a loss that is added to a meter or another object;
- a loss in a loop without `.backward()`.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, Retained, Rule, RuleMeta, Safety, Severity, Site, cst


class GraphRetained(Rule[Retained]):
    meta = RuleMeta(
        code="DEV508",
        name="graph-retained",
        summary="losses are collected with their graph",
        since="0.1.0",
        level="assume",
        severity=Severity.INFO,
        fix="always",
        words=(".backward(",),
    )
    event = Retained

    def suspects(self, event: Retained, facts: Facts) -> bool:
        return True

    def judge(self, event: Retained, site: Site) -> Finding | None:
        verb = "is kept in" if event.how == "append" else "is added to"
        message = f"`{event.operand.text}` {verb} `{event.keeper}` with its graph: memory grows with each step"
        node = site.node
        if not isinstance(node, cst.Name):
            return None
        detached = cst.Call(cst.Attribute(cst.Name(node.value), cst.Name("detach")), lpar=node.lpar, rpar=node.rpar)
        fix = Fix(f"Detach `{node.value}`", Safety.UNSAFE, (Edit(node, detached),))
        return Finding(event.span, message, fix, event.because)
