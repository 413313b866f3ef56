"""Losses are collected with their graphs.

## What it flags
In a training loop, `total += loss`, `total = total + loss` or `losses.append(loss)` for the very loss whose
`.backward()` the loop calls, where the total or the list outlives the step.

## Why it matters
The sum, or the list, keeps every step's graph alive, and what the graph refers to on the device. Memory
grows with each step until it runs out.

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
Unsafe: code that differentiates the total later would no longer get a gradient.

## Known limits
Silent for a loss that is rebound to a number or a detached copy anywhere in the loop, with `retain_graph` or
`create_graph`, for meters and other objects, and in loops that call no `.backward()`.
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
        fix = Fix("Detach it", Safety.UNSAFE, (Edit(node, detached),))
        return Finding(event.span, message, fix, event.because)
