"""Loops of a script: range, T.grid, T.serial and its kinds, T.thread_binding, T.launch_thread; `while`, `if`."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.script.frames import Around
from tilewright.script.operators import is_expression, truth
from tilewright.script.suites import LOOP_FORMS
from tilewright.script.values import is_annotation
from tilewright.script.variables import Variables
from tilewright.support.errors import described
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import convert, match_types
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.slices import extent_of
from tilewright.tir.stmt import SERIAL, THREAD_BINDING, THREAD_TAGS, For, IfThenElse, LetStmt, Seq, Stmt, While

_KINDS = {"range": SERIAL, "serial": SERIAL, "parallel": "parallel", "vectorized": "vectorized", "unroll": "unroll",
          "thread_binding": THREAD_BINDING}


@dataclass(frozen=True)
class EnvThread:
    """A thread axis that was named, and is launched later."""
    name: str
    tag: str


class Loops(Variables):
    def loop(self, node: ast.For) -> Stmt:
        if node.orelse:
            self.fail(node.orelse[0], "`else` of a loop is not part of the script language")
        call = node.iter
        form = self.form(call)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
            form = "range"
        if not isinstance(call, ast.Call) or form not in (*LOOP_FORMS, "range"):
            self.fail(call, "a loop runs over range(...), T.grid(...) or T.serial, T.parallel, T.vectorized, T.unroll, "
                            "T.thread_binding")
        if form == "grid":
            return self.grid(node, call)
        names = self.loop_names(node.target)
        if len(names) != 1:
            self.fail(node.target, f"{len(names)} loop variables for the 1 loop of {ast.unparse(call.func)}",
                      "T.grid(a, b) makes two loops")
        domain, tag, annotations = self.domain(call, form)
        v = Var(names[0], domain.min.dtype)
        with self.nested():
            self.define_loop(v, domain)
            body = self.suite(node.body)
        return For(v, domain.min, domain.extent, _KINDS[form], body, tag, annotations)

    def loop_names(self, target: ast.AST) -> list[str]:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        return [self.target(t) for t in parts]

    def define_loop(self, v: Var, domain: Range) -> None:
        self.domains[v] = domain
        self.names.define(v.name, v)

    def grid(self, node: ast.For, call: ast.Call) -> Stmt:
        names = self.loop_names(node.target)
        extents = [self.extent(call, x) for x in self.items(call.args)]
        if call.keywords:
            self.fail(call, "T.grid takes extents only", "nest the loops to give one a kind or annotations")
        if len(names) != len(extents):
            self.fail(node.target,
                      f"{len(names)} loop variable(s) for the {len(extents)} loop(s) of {ast.unparse(call)}")
        loops = [(Var(name, e.dtype), Range(IntImm(0, e.dtype), e)) for name, e in zip(names, extents, strict=True)]
        with self.nested():
            for v, domain in loops:
                self.define_loop(v, domain)
            body = self.suite(node.body)
        for v, domain in reversed(loops):
            body = self.at(node, For(v, domain.min, domain.extent, SERIAL, body))
        return body

    def extent(self, node: ast.AST, x: Any) -> Expr:
        e = self.guard(node, convert, x)
        if not dt.is_integer(e.dtype) or dt.lanes_of(e.dtype) > 1:
            self.fail(node, f"the bound of a loop is {e.dtype}, not an integer")
        return e

    def domain(self, call: ast.Call, form: str) -> tuple[Range, str, dict[str, Any]]:
        """(range, thread tag, annotations) of the call that a loop runs over."""
        keywords = {str(k.arg): k.value for k in call.keywords}
        given = self.items(call.args)
        tag = keywords.pop("thread", None)
        if form == "thread_binding" and tag is None and len(given) > 1 and isinstance(given[-1], str):
            thread: Any = given.pop()
        else:
            thread = "" if tag is None else self.value(tag)
        bounds = self.bounds(call, given, keywords)
        extra = keywords.pop("annotations", None)
        annotations = {} if extra is None else self.annotations(extra)
        if keywords:
            self.fail(call, f"a loop has no argument {next(iter(keywords))!r}", "thread= and annotations= there are")
        if (form == "thread_binding") != bool(thread) or not isinstance(thread, str):
            self.fail(call, "thread= names the hardware axis of T.thread_binding, and of no other loop",
                      'T.thread_binding(128, thread="threadIdx.x")')
        if thread:
            self.thread_axis(call, thread)
        return self.range(call, *bounds), thread, annotations

    def bounds(self, call: ast.Call, given: list[Any], keywords: dict[str, ast.expr]) -> list[Any]:
        """The extent, or the start and the stop, of which keywords, which are taken out, name some."""
        if len(given) > 2:
            self.fail(call, f"a loop has one or two bounds, {len(given)} given",
                      "a step is not supported: loop over fewer iterations and multiply" if len(given) == 3 else "")
        named = dict(zip(("start", "stop"), given))
        for key, name in (("start", "start"), ("begin", "start"), ("stop", "stop"), ("end", "stop")):
            if key in keywords:
                if name in named:
                    self.fail(call, f"the {name} of the loop is given twice", "T.serial(start, stop)")
                named[name] = self.value(keywords.pop(key))
        if not named:
            self.fail(call, "a loop has one or two bounds, 0 given")
        return [named[name] for name in ("start", "stop") if name in named]

    def thread_axis(self, node: ast.AST, tag: str) -> None:
        if tag not in THREAD_TAGS:
            self.fail(node, f"{tag!r} is not a thread axis", f"the axes are {', '.join(THREAD_TAGS)}")

    def annotations(self, node: ast.AST) -> dict[str, Any]:
        x = self.value(node)
        if not isinstance(x, dict) or not all(isinstance(k, str) for k in x):
            self.fail(node, "annotations are a dict whose keys are names", '{"pragma_auto_unroll": 16}')
        for key, value in x.items():
            if not is_annotation(value):
                self.fail(node, f"the annotation {key} is {described(value)}", "it is a text, a number, an expression "
                          "or a list or dict of these")
        return x

    def range(self, node: ast.AST, first: Any, last: Any = None) -> Range:
        """0:first, or first:last; the distance is simplified where it is not plain."""
        if last is None:
            extent = self.extent(node, first)
            return Range(IntImm(0, extent.dtype), extent)
        low, stop = self.guard(node, match_types, first, last)
        low, stop = self.extent(node, low), self.extent(node, stop)
        distance = extent_of(low, stop)
        if distance is None:
            distance = Analyzer().simplify(binary("sub", stop, low))
        return Range(low, distance)

    # with T.launch_thread ----------------------------------------------------------------------------------
    def env_thread(self, node: ast.Call, target: ast.AST) -> None:
        """name = T.env_thread("threadIdx.x"): the variable of the loop that T.launch_thread(name, extent) makes."""
        arguments = self.bound(node, ("thread_tag",), 1)
        tag = self.value(arguments["thread_tag"])
        if not isinstance(tag, str) or not tag:
            self.fail(arguments["thread_tag"], "a thread axis is named by a string", '"blockIdx.x", "threadIdx.x"')
        self.thread_axis(arguments["thread_tag"], tag)
        name = self.target(target)
        self.names.define(name, EnvThread(name, tag))

    def launch(self, node: ast.Call, target: ast.AST | None) -> Around:
        """with T.launch_thread("blockIdx.x", extent) as name."""
        arguments = self.bound(node, ("thread", "extent"), 2)
        tag, extent = self.value(arguments["thread"]), self.extent(arguments["extent"], self.value(arguments["extent"]))
        name = tag.name if isinstance(tag, EnvThread) else ""
        if isinstance(tag, EnvThread):
            tag = tag.tag
        if not isinstance(tag, str) or not tag:
            self.fail(arguments["thread"], "a thread axis is named by a string", '"blockIdx.x", "threadIdx.x"')
        self.thread_axis(arguments["thread"], tag)
        v = Var(self.target(target) if target is not None else name or tag, extent.dtype)
        low = IntImm(0, extent.dtype)
        self.domains[v] = Range(low, extent)
        if target is not None or name:
            self.names.define(v.name, v)
        return Around(lambda body: For(v, low, extent, THREAD_BINDING, body, tag), node)

    def let_context(self, node: ast.Call, target: ast.AST | None) -> Around:
        """with T.LetStmt(value) as name; with T.let(name, value)."""
        variable, value = self.let_of_variable(node)
        if variable is not None and target is not None:
            self.fail(target, "the variable has a name already", "with T.let(x, value):")
        name = self.target(target or variable, node)
        v = Var(name, value.dtype)
        self.names.define(name, v)
        return Around(lambda body: LetStmt(v, value, body), node)

    # branches ----------------------------------------------------------------------------------------------
    def condition(self, node: ast.expr) -> Any:
        c = self.value(node)
        if not is_expression(c):
            return self.guard(node, truth, c)
        e = convert(c)
        if e.dtype != "bool":
            self.fail(node, f"the condition is {e.dtype}, not a bool", "compare: x != 0")
        return e

    def branch(self, node: ast.If) -> Stmt | list[ast.stmt]:
        """if: decided now where the condition is known now."""
        c = self.condition(node.test)
        if not isinstance(c, Expr):
            return node.body if c else node.orelse
        then = self.scoped(node.body)
        return IfThenElse(c, then, self.scoped(node.orelse) if node.orelse else None)

    def repeat(self, node: ast.While) -> Stmt:
        if node.orelse:
            self.fail(node.orelse[0], "`else` of a loop is not part of the script language")
        c = self.condition(node.test)
        if not isinstance(c, Expr):
            self.fail(node.test, f"the condition is always {c}")
        return While(c, self.scoped(node.body))

    def nothing(self, node: ast.Pass) -> Stmt:
        return Seq(())
