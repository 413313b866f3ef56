"""An option whose -1 stands for the CPU, and which names a card all the same: `f"cuda:{args.gpu}"` becomes "cuda:-1".

    parser.add_argument("--gpu", type=int, default=-1, help="-1 for the CPU")
    device = torch.device(f"cuda:{args.gpu}" if torch.cuda.is_available() else "cpu")

A file that compares the option with anything, or asks whether it holds, knows of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import RankIndex
from devlint.facts.surveys.outline import Outline, argument, dotted, method
from devlint.facts.surveys.parallel import indices
from devlint.facts.text.nodes import text_of
from devlint.facts.text.references import last_name

_SAYS_CPU = re.compile(r"(?i)-1\b.*\bcpu\b|\bcpu\b.*-1\b")

# Compared with something, or asked whether it holds; `torch.cuda.is_available()` is no question about `args.cuda`.
_ASKED = (
    r"\bNAME\s*(?:[<>=!]=|[<>]|\bis\b|\bin\b)|(?:[<>=!]=|[<>])\s*[\w.]*\bNAME\b(?!\.)"
    r"|\b(?:if|and|or|not)\s+(?!torch\b)[\w.]*\bNAME\b(?![.:])"
)


def card_options(o: Outline) -> Iterator[RankIndex]:
    """The places where such an option is the index of a card."""
    options = {name: call for call in o.calls if method(call) == "add_argument" for name in _means_cpu(o, call)}
    if not options:
        return
    text = _without_options(o.flow.source.text)
    for place in indices(o):
        call = options.get(last_name(place))
        if call is None or dotted(place) is None:
            continue
        asked = _ASKED.replace("NAME", re.escape(last_name(place)))
        if re.search(asked, text, re.MULTILINE) is None:
            origin = o.flow.origin(call, "the value -1 stands for the CPU")
            yield RankIndex(*o.head(place, origin), "minus-one", o.flow.text(place), "", False)


def _means_cpu(o: Outline, call: ast.Call) -> Iterator[str]:
    """The name of a number that may be -1: by its default, or by what its help says of it."""
    names = [text for a in call.args if (text := text_of(a)) is not None and text.startswith("--")]
    kind, default = argument(call, "type"), argument(call, "default")
    if not names or not isinstance(kind, ast.Name) or kind.id != "int":
        return
    told = text_of(argument(call, "help")) or ""
    given = ast.unparse(default) if default is not None else ""
    if given == "-1" or _SAYS_CPU.search(told):
        yield text_of(argument(call, "dest")) or names[0].lstrip("-").replace("-", "_")


def _without_options(text: str) -> str:
    """The text of a file without its help texts, which speak of the options."""
    return re.sub(r"help\s*=\s*\(?\s*(?:[frb]*(?:\"[^\"\n]*\"|'[^'\n]*')\s*)+", "", text)
