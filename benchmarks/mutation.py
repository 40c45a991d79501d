"""Mutation testing of equations, scores and statistics: the share of small changes that survive.

    python benchmarks/mutation.py [MODULE…] [--most 60] [--seed 0] [--minutes 30] [--results FILE.jsonl]

A mutant is a module with one change: an operator, a comparison, a number, a condition or a statement. It is killed if the
few tests that cover the module fail or take too long, and survives otherwise. Mutants that no test can kill, since they
compute the same, are listed in EQUIVALENT with the reason and are not counted. With more mutants than --most in a module,
a sample is drawn. Every mutant runs in a process that is forked from one in which torch and pytest are imported.
Appends one line per mutant to --results (a second call makes the rest) and prints a table and the survivors.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mutation_changes import count, mutated

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 60  # seconds of the tests of one mutant, at most; else three times the tests' own
ORACLE = "tests/oracle/test_"
# module → the tests that cover it
MODULES: dict[str, list[str]] = {
    "objectives/bank_nce.py": ["tests/methods/test_banks.py"],
    "objectives/byol.py": [f"{ORACLE}objectives.py"],
    "objectives/debiased.py": [f"{ORACLE}hard_objectives.py"],
    "objectives/dense.py": [f"{ORACLE}dense_objective.py"],
    "objectives/dials.py": [f"{ORACLE}objectives.py"],
    "objectives/hyperbolic.py": [f"{ORACLE}hyperbolic.py"],
    "objectives/ifm.py": [f"{ORACLE}hard_objectives.py"],
    "objectives/looc.py": [f"{ORACLE}looc_objective.py"],
    "objectives/masked.py": [f"{ORACLE}masked_objectives.py"],
    "objectives/mochi.py": [f"{ORACLE}hard_objectives.py"],
    "objectives/nce.py": [f"{ORACLE}objectives.py", f"{ORACLE}hard_objectives.py", f"{ORACLE}looc_objective.py"],
    "objectives/neighbours.py": [f"{ORACLE}objectives.py", "tests/probes/test_probes.py"],
    "objectives/nt_xent.py": [f"{ORACLE}objectives.py", f"{ORACLE}hard_objectives.py"],
    "objectives/scene_object.py": [f"{ORACLE}scene_object.py"],
    "scores.py": ["tests/test_scores.py"],
    "studies/statistics.py": ["tests/studies/test_statistics.py"],
    "studies/claims.py": [f"{ORACLE}verdicts.py"],
    "audits/measures.py": [f"{ORACLE}answer_measures.py"],
    "audits/rank_statistics.py": ["tests/audits/test_objects.py", "tests/audits/test_rank_statistics.py"],
    "probes/mce.py": [f"{ORACLE}mce.py"],
    "audits/decisions.py": ["tests/audits/test_shape_bias.py", "tests/audits/test_reliability.py"],
    "audits/shape_bias.py": [f"{ORACLE}shape_bias_audit.py"],
    "probes/average_precision.py": ["tests/probes/test_average_precision.py"],
}  # fmt: skip
# (module, changed source line) → why the change computes the same
EQUIVALENT: dict[tuple[str, str], str] = {
    ("objectives/byol.py", "loss = 2 - 2 * (p * z).sum(-1) → loss = 2 - 2 * (p * z).sum(1)"): "p is B×D",
    (
        "objectives/byol.py",
        "if negatives is not None and negatives.shape[1]: → if negatives is not None and negatives.shape[2]:",
    ): "without negatives the sum over them is zero either way",
    (
        "studies/statistics.py",
        "while 0.5 + t_within(high, freedom) / 2 < p: → while 0.5 + t_within(high, freedom) / 2 <= p:",
    ): "one more doubling of the interval that bisection halves",
    (
        "studies/statistics.py",
        "if 0.5 + t_within(middle, freedom) / 2 < p: → if 0.5 + t_within(middle, freedom) / 2 <= p:",
    ): "bisection ends at the same number from either side",
}


def modules(given: list[str]) -> list[str]:
    wrong = [m for m in given if m not in MODULES]
    if wrong:
        raise SystemExit(f"{', '.join(wrong)}: choose from {', '.join(MODULES)}")
    return given or list(MODULES)


def run_tests(tests: list[str], place: Path, seconds: float) -> str:
    """killed, survived or slow: the tests in a forked process, on the sources in `place`."""
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setsid()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            sys.path.insert(0, str(place / "src"))
            os.chdir(ROOT)
            import pytest

            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
            code = int(pytest.main([*tests, *options]))
        os._exit(code)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "slow"


def test_module(
    name: str, given: argparse.Namespace, place: Path, done: set[tuple[str, int]], end: float
) -> None:
    """Every mutant of one module (or a sample of them) that has not been tried yet."""
    file = place / "src" / "cuewise" / name
    source = file.read_text()
    numbers = list(range(count(source)))
    if len(numbers) > given.most:
        numbers = sorted(random.Random(f"{given.seed} {name}").sample(numbers, given.most))
    numbers = [n for n in numbers if (name, n) not in done]
    began = time.monotonic()
    if numbers and run_tests(MODULES[name], place, LONGEST) != "survived":
        raise SystemExit(f"{name}: its tests fail without any change: {' '.join(MODULES[name])}")
    own = min(LONGEST, 3 * (time.monotonic() - began) + 2)
    for number in numbers:
        if time.monotonic() > end:
            break
        text, line, change = mutated(source, number)
        file.write_text(text)
        outcome = run_tests(MODULES[name], place, own)
        file.write_text(source)
        row = {"module": name, "number": number, "line": line, "change": change, "outcome": outcome}
        with given.results.open("a") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def report(rows: list[dict[str, Any]]) -> str:
    """A table of counts, then every mutant that survived."""
    same = [r for r in rows if (r["module"], r["change"]) in EQUIVALENT]
    counted = [r for r in rows if r not in same]
    lines = ["| module | mutants | killed | survived |", "|---|---|---|---|"]
    for name in [*dict.fromkeys(r["module"] for r in counted), "all"]:
        own = [r for r in counted if name in (r["module"], "all")]
        lived = sum(r["outcome"] == "survived" for r in own)
        lines.append(
            f"| {name} | {len(own)} | {len(own) - lived} | {lived} ({100 * lived / len(own):.0f} %) |"
        )
    lines.append(f"not counted, since they compute the same: {len(same)}")
    lines += [f"{r['module']}:{r['line']}: {r['change']}" for r in counted if r["outcome"] == "survived"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--most", type=int, default=60, help="mutants of one module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0, help="start no mutant after that")
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    given = parser.parse_args()
    given.results = given.results.resolve()
    rows = read(given.results)
    done = {(r["module"], r["number"]) for r in rows}
    end = time.monotonic() + 60 * given.minutes
    import_libraries()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        place = Path(folder)
        shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(place / "src", quiet=2)
        for name in modules(given.modules):
            file = place / "src" / "cuewise" / name
            for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
                stale.unlink()
            test_module(name, given, place, done, end)
    print(report(read(given.results)))
    return 0


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def import_libraries() -> None:
    """What every mutant needs and no change touches; the sources of cuewise come from the copy."""
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != ROOT / "src"]
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode = True
    os.environ.pop("PYTHONPATH", None)
    for library in ("numpy", "pytest", "torch", "torchvision", "timm", "cv2", "numba", "scipy.stats"):
        importlib.import_module(library)

    assert not any(name.startswith("cuewise") for name in sys.modules)


if __name__ == "__main__":
    sys.exit(main())
