"""Questions about `ast` calls and surgery on libcst calls that several rules share."""

from __future__ import annotations

import ast

from devlint.api import Site, cst


def has_star(call: ast.Call) -> bool:
    """Whether `*args` may carry arguments that the code does not show."""
    return any(isinstance(a, ast.Starred) for a in call.args)


def has_double_star(call: ast.Call) -> bool:
    """Whether `**kwargs` may carry keywords that the code does not show."""
    return any(k.arg is None for k in call.keywords)


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    """The keyword arguments of a call by name, without `**kwargs`."""
    return {k.arg: k.value for k in call.keywords if k.arg is not None}


def with_keyword(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """`call` with `name=value`: in the place of an argument of that name, else after the last argument.

    The layout of the call is kept: one argument a line stays one argument a line, a trailing comma stays.
    """
    arguments = list(call.args)
    for i, argument in enumerate(arguments):
        if argument.keyword is not None and argument.keyword.value == name:
            arguments[i] = argument.with_changes(value=value)
            return call.with_changes(args=arguments)
    added = cst.Arg(
        value=value,
        keyword=cst.Name(name),
        equal=cst.AssignEqual(whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace("")),
    )
    if not arguments:
        return call.with_changes(args=[added])
    last = arguments[-1]
    between: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if len(arguments) > 1 and isinstance(arguments[0].comma, cst.Comma):
        between = arguments[0].comma.whitespace_after
    elif isinstance(last.comma, cst.Comma) and isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        between = call.whitespace_before_args
    if isinstance(last.comma, cst.Comma):
        added = added.with_changes(comma=last.comma)
        after = last.comma.whitespace_after
        if isinstance(after, cst.ParenthesizedWhitespace) and isinstance(between, cst.ParenthesizedWhitespace):
            # a comment behind the last argument stays behind it
            between = after.with_changes(last_line=between.last_line, indent=between.indent)
            ending = after.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())
            added = added.with_changes(comma=last.comma.with_changes(whitespace_after=ending))
    else:
        added = added.with_changes(whitespace_after_arg=last.whitespace_after_arg)
        last = last.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
    arguments[-1] = last.with_changes(comma=cst.Comma(whitespace_after=between))
    return call.with_changes(args=[*arguments, added])


def may_precede(statement: cst.CSTNode) -> bool:
    """Whether a statement put before this one runs right before its expressions; not so for `while` and `elif`."""
    return isinstance(statement, cst.BaseSmallStatement | cst.If | cst.With | cst.For)


def path_to(site: Site, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes from the event's statement down to `node` in it, both included; empty when `node` is elsewhere."""
    target = site.span(node)

    def below(root: cst.CSTNode) -> list[cst.CSTNode]:
        if root is node:
            return [root]
        for child in root.children:
            try:
                span = site.span(child)
                # libcst gives a parameter the place of its name alone
                inside = isinstance(child, cst.Param) or span.start <= target.start <= target.end <= span.end
            except LookupError:  # a node without a place, as a comma that is only meant
                continue
            if inside and (found := below(child)):
                return [root, *found]
        return []

    return below(site.statement)
