"""Scripts that complete `cuewise` in a shell, written from what the verbs declare; they start no Python while one types.

bash    eval "$(cuewise completion bash)"           in ~/.bashrc
zsh     eval "$(cuewise completion zsh)"            in ~/.zshrc, after compinit
fish    cuewise completion fish > ~/.config/fish/completions/cuewise.fish
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from cuewise.catalogue import KINDS, catalogue
from cuewise.errors import unknown
from cuewise.options import Option
from cuewise.parser import Verb

Verbs = Mapping[str, Callable[..., dict[str, Any]]]
SAFE = re.compile(r"[\w+./:=-]+")  # words that no shell reads as anything else
# what the first argument of a verb may be, and what an option may be given: kinds of `cuewise list`
FIRST = {"probe": "probes", "make": "makers", "reproduce": "studies"}
VALUES = {
    "--method": "methods",
    "--negatives": "negatives",
    "--only": "audits",
    "--leave-out": "augmentations",
}
FIXED = {"--format": {"export": ("safetensors", "torchvision", "timm", "onnx")}}


def script(shell: str, verbs: Verbs) -> str:
    """The script for one shell."""
    if shell not in SCRIPTS:
        raise unknown("no completion for", shell, SCRIPTS)
    return SCRIPTS[shell](verbs)


def first_words(name: str) -> list[str]:
    """What a verb's first argument may be; nothing where that is a path or a model."""
    if name == "list":
        return [*KINDS]
    if name == "completion":
        return [*SCRIPTS]
    return _safe(catalogue(FIRST[name])) if name in FIRST else []


def option_values(name: str, verbs: Verbs) -> dict[str, list[str]]:
    """flag → names it may be given, of one verb."""
    flags = {o.flag for o in options(name, verbs)}
    found = {flag: _safe(catalogue(kind)) for flag, kind in VALUES.items() if flag in flags}
    if name == "inspect":
        found["--only"] = _safe(catalogue("clues"))
    return found | {flag: [*by[name]] for flag, by in FIXED.items() if flag in flags and name in by}


def options(name: str, verbs: Verbs) -> list[Option]:
    """All options of a verb."""
    return [*Verb(name, verbs[name]).options().values()]


def _safe(names: Mapping[str, str]) -> list[str]:
    return [n for n in names if SAFE.fullmatch(n)]


def bash(verbs: Verbs) -> str:
    """A function that looks only at the words typed so far; what it does not know are files."""
    cases, values = [], []
    for name in verbs:
        flags = " ".join([*(o.flag for o in options(name, verbs)), "--json", "--help"])
        cases.append(f'    {name}) flags="{flags}"; first="{" ".join(first_words(name))}" ;;')
        values += [
            f'    {name}:{flag}) words="{" ".join(names)}" ;;'
            for flag, names in option_values(name, verbs).items()
        ]
    return "\n".join(
        [
            "_cuewise() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" verb="${COMP_WORDS[1]}" flags="" first="" words=""',
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f'    COMPREPLY=($(compgen -W "{" ".join(verbs)} --help --version" -- "$cur")); return',
            "  fi",
            '  case "$verb" in',
            *cases,
            "  esac",
            '  case "$verb:${COMP_WORDS[COMP_CWORD-1]}" in',
            *values,
            "  esac",
            '  if [ -z "$words" ]; then',
            '    case "$cur" in -*) words="$flags" ;; *) [ "$COMP_CWORD" -eq 2 ] && words="$first" ;; esac',
            "  fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "}",
            "complete -o default -F _cuewise cuewise",
        ]
    )


def zsh(verbs: Verbs) -> str:
    """zsh reads bash's completions."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash(verbs)}"


def fish(verbs: Verbs) -> str:
    """One line per verb, option and name, with its help."""
    lines = ["complete -c cuewise -e"]
    for name, verb in verbs.items():
        summary = (verb.__doc__ or "").splitlines()[0]
        lines.append(f"complete -c cuewise -n __fish_use_subcommand -a {name} -d {_quoted(summary)}")
        seen = f"complete -c cuewise -n '__fish_seen_subcommand_from {name}'"
        values = option_values(name, verbs)
        for o in options(name, verbs):
            given = f" -x -a {_quoted(' '.join(values[o.flag]))}" if o.flag in values else ""
            takes = "" if o.kinds[0] is bool else " -r"
            lines.append(f"{seen} -l {o.flag.removeprefix('--')}{given or takes} -d {_quoted(o.help)}")
        if first_words(name):
            lines.append(f"{seen} -a {_quoted(' '.join(first_words(name)))}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[Verbs], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
