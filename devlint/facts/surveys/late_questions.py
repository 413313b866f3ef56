"""A flag that puts something on CUDA before it is asked whether CUDA is there.

if use_cuda:
    model.cuda()
use_cuda = use_cuda and torch.cuda.is_available()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.events import LateQuestion
from devlint.facts.surveys.outline import Outline, dotted, inside, method
from devlint.facts.text.nodes import text_of


def late_questions(o: Outline) -> Iterator[LateQuestion]:
    """The first use of CUDA under such a flag."""
    for call in o.calls:
        if (o.qualname(call.func) or "") != "torch.cuda.is_available":
            continue
        asked = o.parent.get(call)
        statement = o.parent.get(asked) if isinstance(asked, ast.BoolOp) and isinstance(asked.op, ast.And) else None
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(asked, ast.BoolOp):
            continue
        flag = dotted(statement.targets[0])
        if flag is None or flag not in map(dotted, asked.values):
            continue
        for before in o.block(statement):
            if before is statement:
                break
            if isinstance(before, ast.If) and dotted(before.test) == flag:
                use = next((n for n in inside(before.body) if isinstance(n, ast.Call) and _uses_cuda(n)), None)
                if use is not None:
                    origin = o.flow.origin(call, "the check is here")
                    yield LateQuestion(*o.head(use, origin), flag)
                    return


def _uses_cuda(call: ast.Call) -> bool:
    if method(call) == "cuda":
        return True
    return method(call) == "to" and any((text_of(a) or "").startswith("cuda") for a in call.args)
