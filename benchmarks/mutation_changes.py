"""The changes of benchmarks/mutation.py: one operator, comparison, number, condition or statement of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Sites(ast.NodeTransformer):
    """Walks the places that can be changed, in order, and changes number `wanted`."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted, self.seen, self.line = wanted, 0, 0

    def hit(self, node: ast.AST) -> bool:
        """Whether this place is the wanted one."""
        self.seen += 1
        if self.seen - 1 != self.wanted:
            return False
        self.line = getattr(node, "lineno", 0)
        return True

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [self.visit(d) if d is not None else None for d in node.args.kw_defaults]
        node.body = [statement for s in node.body for statement in self.statements(s)]
        return node

    def statements(self, node: ast.stmt) -> Iterator[ast.stmt]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node  # a docstring
            return
        removable = isinstance(node, ast.AugAssign) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        )
        if removable and self.hit(node):
            yield ast.copy_location(ast.Pass(), node)
            return
        yield self.visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(s) for s in node.body]  # not its decorators
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "UserError", "print"):
            return node
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return node  # messages

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        if self.hit(node):
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        node.test = self.visit(node.test) if self.seen <= self.wanted else node.test
        node.body = [statement for s in node.body for statement in self.statements(s)]
        node.orelse = [statement for s in node.orelse for statement in self.statements(s)]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if type(node.op) in SWAPS and not _text(node) and self.hit(node):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self.hit(node):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if self.hit(node):
            node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.USub | ast.Not | ast.Invert) and self.hit(node):
            return self.visit(node.operand)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if isinstance(value, bool):
            return ast.copy_location(ast.Constant(not value), node) if self.hit(node) else node
        if isinstance(value, int | float) and self.hit(node):
            return ast.copy_location(ast.Constant(value + 1), node)
        return node


def _text(node: ast.BinOp) -> bool:
    """Whether texts are put together, or a union of types is written."""
    parts = (node.left, node.right)
    return any(
        isinstance(p, ast.JoinedStr) or (isinstance(p, ast.Constant) and isinstance(p.value, str | None))
        for p in parts
    )


def count(source: str) -> int:
    """How many mutants a module has."""
    sites = Sites()
    sites.wanted = 1 << 30
    sites.visit(ast.parse(source))
    return sites.seen


def mutated(source: str, number: int) -> tuple[str, int, str]:
    """The source of a mutant, the line, and that line before and after."""
    before = ast.unparse(ast.parse(source)).splitlines()
    sites = Sites(number)
    text = ast.unparse(ast.fix_missing_locations(sites.visit(ast.parse(source))))
    after = text.splitlines()
    changed = next(
        (f"{a.strip()} → {b.strip()}" for a, b in zip(before, after) if a != b), "a statement removed"
    )
    return text, sites.line, changed
