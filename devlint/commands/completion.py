"""`devlint completion bash|zsh|fish`: a completion script, generated from the parsers of the commands."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from devlint.cli import COMMANDS, ExitCode
from devlint.commands.shell import Parser
from devlint.config import OUTPUT_FORMATS
from devlint.terminal import Terminal

# Commands whose module has `parser()`; the words of the others are completed as paths.
PARSERS = {
    "check": "devlint.commands.options",
    "clean": "devlint.commands.clean",
    "completion": "devlint.commands.completion",
    "config": "devlint.commands.config",
    "doctor": "devlint.runtime.doctor",
    "events": "devlint.commands.events",
    "explain": "devlint.commands.explain",
    "init": "devlint.commands.init",
    "report": "devlint.commands.report",
    "reveal": "devlint.commands.reveal",
    "rule": "devlint.commands.rule",
    "run": "devlint.runtime.run",
    "verify": "devlint.runtime.verify",
}


class Option(NamedTuple):
    """One option as a shell sees it. `words`: its spellings; `values`: what may follow, None when nothing does."""

    words: tuple[str, ...]
    text: str
    values: tuple[str, ...] | None


def main(arguments: Sequence[str]) -> int:
    """Run `devlint completion` and return the exit code."""
    args = parser().parse_args(arguments)
    terminal = Terminal("never")
    terminal.print(SHELLS[args.shell]())
    terminal.flush()
    return ExitCode.CLEAN


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint completion`."""
    result = Parser(
        prog="devlint completion",
        description="Print a completion script for a shell: `devlint completion bash >> ~/.bash_completion`, "
        "`devlint completion zsh > ~/.zfunc/_devlint`, "
        "`devlint completion fish > ~/.config/fish/completions/devlint.fish`.",
        allow_abbrev=False,
    )
    result.add_argument("shell", choices=tuple(SHELLS), help="the shell that you use")
    return result


def options_of(command: str) -> list[Option]:
    """The options of a command, from its parser."""
    source: argparse.ArgumentParser = importlib.import_module(PARSERS[command]).parser()
    return [
        Option(tuple(action.option_strings), action.help or "", _values(action))
        for action in source._actions
        if action.option_strings and action.help != argparse.SUPPRESS
    ]


def arguments_of(command: str) -> tuple[str, ...]:
    """The words that the positional arguments of a command are chosen from; none when they are paths or names."""
    source: argparse.ArgumentParser = importlib.import_module(PARSERS[command]).parser()
    return tuple(str(word) for action in source._actions if not action.option_strings for word in action.choices or ())


def _values(action: argparse.Action) -> tuple[str, ...] | None:
    if action.nargs == 0:
        return None
    if action.dest == "output_format" and not action.choices:  # may be followed by a path
        return OUTPUT_FORMATS
    return tuple(str(choice) for choice in action.choices or ())


def _bash() -> str:
    cases, values = [], []
    for command in sorted(PARSERS):
        words = " ".join([*(word for option in options_of(command) for word in option.words), *arguments_of(command)])
        cases.append(f'        {command}) words="{words}" ;;')
    for command in sorted(PARSERS):
        for option in options_of(command):
            if option.values:
                pattern = "|".join(f"{command}:{word}" for word in option.words)
                values.append(f'        {pattern}) words="{" ".join(option.values)}" ;;')
    return "\n".join((
        "_devlint() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command=check words=""',
        f'    case " {" ".join(sorted(COMMANDS))} " in',
        '        *" ${COMP_WORDS[1]} "*) [ "$COMP_CWORD" -gt 1 ] && command="${COMP_WORDS[1]}" ;;',
        "    esac",
        '    case "$command:$previous" in',
        *values,
        "    esac",
        '    if [ -z "$words" ]; then',
        '        case "$command" in',
        *(f"    {case}" for case in cases),
        "        esac",
        f'        [ "$COMP_CWORD" -eq 1 ] && words="$words {" ".join(COMMANDS)}"',
        "    fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))',
        "}",
        "complete -o filenames -F _devlint devlint",
    ))  # fmt: skip


def _zsh() -> str:
    lines = ["#compdef devlint", "", "_devlint() {", "    local command=check", "    local -a commands=("]
    lines += [f"        {_quoted(f'{name}:{text}')}" for name, text in COMMANDS.items()]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "    elif (( ${commands[(I)$words[2]:*]} )); then",
        "        command=$words[2]",
        "        shift words",
        "        (( CURRENT-- ))",
        "    fi",
        '    case "$command" in',
    ]
    for command in sorted(PARSERS):
        lines.append(f"        {command})")
        lines.append("            _arguments \\")
        lines += [f"                {spec} \\" for option in options_of(command) for spec in _zsh_specs(option)]
        choices = arguments_of(command)
        lines.append(f"                {_quoted('*: :(' + ' '.join(choices) + ')' if choices else '*:path:_files')}")
        lines.append("            ;;")
    return "\n".join((*lines, "        *) _files ;;", "    esac", "}", "", '_devlint "$@"'))


def _zsh_specs(option: Option) -> Iterator[str]:
    text = option.text.replace("[", "(").replace("]", ")").replace(":", " -")
    for word in option.words:
        spec = f"*{word}[{text}]"
        if option.values is not None:
            spec += f":value:({' '.join(option.values)})" if option.values else ":value:_files"
        yield _quoted(spec)


def _fish() -> str:
    lines = ["complete -c devlint -n __fish_use_subcommand -a check -d " + _quoted(COMMANDS["check"])]
    lines += [
        f"complete -c devlint -n __fish_use_subcommand -a {name} -d {_quoted(text)}"
        for name, text in COMMANDS.items()
        if name != "check"
    ]
    for command in sorted(PARSERS):
        seen = f"__fish_seen_subcommand_from {command}"
        if command == "check":
            others = " ".join(name for name in COMMANDS if name != "check")
            seen = f"not __fish_seen_subcommand_from {others}"
        for option in options_of(command):
            names = " ".join(f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" for word in option.words)
            value = (
                ""
                if option.values is None
                else f" -x -a {_quoted(' '.join(option.values))}"
                if option.values
                else " -r"
            )
            lines.append(f"complete -c devlint -n {_quoted(seen)} {names}{value} -d {_quoted(option.text)}")
        if arguments_of(command):
            lines.append(f"complete -c devlint -n {_quoted(seen)} -f -a {_quoted(' '.join(arguments_of(command)))}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A word in single quotes for zsh and fish."""
    return "'" + text.replace("%%", "%").replace("'", "") + "'"


SHELLS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
