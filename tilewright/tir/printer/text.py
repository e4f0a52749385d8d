"""IR as TVMScript text: valid Python, one line a statement, so that a statement can be marked; scripts as
terminals and notebooks show them."""
from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tilewright.support.errors import ArgumentError, described
from tilewright.support.names import NameSupply, identifier
from tilewright.support.registry import register_hook
from tilewright.support.views import LIGHT, code_html
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.functions import BaseFunc, ModuleText
from tilewright.tir.node import Node, walk
from tilewright.tir.printer.expressions import is_expression, symbols, type_text
from tilewright.tir.printer.statements import StmtPrinter
from tilewright.tir.returns import result_dtype
from tilewright.tir.stmt import BlockRealize, IRModule, PrimFunc, Stmt


def show(node: Node, mark: Sequence[Node] = (), name: str | None = None) -> str:
    """node as TVMScript; the lines of statements in `mark` (or of expressions in it) end in `# <-- here`.

    name: what a function, or the class of a module, is called in the text.
    """
    flat = not is_expression(node) and not any(isinstance(n, BlockRealize) for n in _all(node))
    return _Printer({id(m) for m in mark}, flat).text(node, name)


@register_hook("tir.print")
def _show(node: Node) -> str:
    return show(node)


class _Printer(StmtPrinter):
    def text(self, node: Node, name: str | None = None) -> str:
        if is_expression(node):
            return self.expr(node)
        if isinstance(node, IRModule):
            self.module(node, name or "Module")
        elif isinstance(node, PrimFunc):
            self.function(node, name or node.name)
        elif isinstance(node, BaseFunc):
            self.lines += node.lines_in(name or str(getattr(node, "name", "main")), ModuleText())
        else:
            self.stmt(node)
        return "\n".join(self.lines)

    # functions ---------------------------------------------------------------------------------------------
    def module(self, m: IRModule, called: str) -> None:
        named: list[tuple[str, BaseFunc]] = [(k, f) for k, f in m.functions.items() if isinstance(f, BaseFunc)]
        names = _method_names([name for name, _ in named])
        others = {said: name for name, said in names.items() if said != name}
        self.line(f"@I.ir_module(names={self.value(others)})" if others else "@I.ir_module")
        self.line(f"class {called}:")
        self.indent = "    "
        if not named:
            self.line("pass")
        shared = ModuleText(called, names, {id(f): names[name] for name, f in named})
        for k, (text, func) in enumerate([*((names[name], f) for name, f in named), *_unnamed(named, shared)]):
            if k:
                self.lines.append("")
            if isinstance(func, PrimFunc):
                inner = _Printer(self.mark, not any(isinstance(n, BlockRealize) for n in walk(func)))
                inner.indent = "    "
                inner.function(func, text)
                self.lines += inner.lines
            else:
                self.lines += [f"    {line}" if line else line for line in func.lines_in(text, shared)]

    def function(self, func: PrimFunc, name: str) -> None:
        """`@T.prim_func` and `def`. Buffers with symbolic shapes come from handles through T.match_buffer."""
        self.names.push()
        params, matched = [], []
        for p in func.params:
            b = func.buffer_map.get(p)
            if b is None:
                params.append(f"{self.names.define(p, p.name)}: {type_text(p.type)}")
            elif _is_symbolic(b):
                text = self.names.define(b, b.name)
                params.append(f"{self.names.define(p, f'var_{text}')}: T.handle")
                matched.append((p, b))
            else:
                text = self.names.define(b, b.name)
                self.names.alias(p, f"{text}.data")
                params.append(f"{text}: T.Buffer({self.buffer_args(b, always_dtype=True)})")
            if b is not None:
                self.names.alias(b.data, f"{self.names.of(b)}.data")
        name = identifier(name)
        self.line("@T.prim_func" if "global_symbol" in func.attrs else "@T.prim_func(private=True)")
        result = result_dtype(func)
        self.line(f"def {name}({', '.join(params)}){f' -> {type_text(result)}' if result else ''}:", func)
        outer, self.indent = self.indent, self.indent + "    "
        attrs = {k: v for k, v in func.attrs.items() if not (k == "global_symbol" and v == name)}
        if attrs:
            self.line(f"T.func_attr({self.value(attrs)})")
        self.match_params(matched)
        self.collect_views(func)
        for b in func.buffers:
            self.views(b)
        if _is_root(func.body):
            self.line('# with T.block("root"):', func.body, func.body.block)  # type: ignore[attr-defined]
            self.block_body(func.body.block, root=True)  # type: ignore[attr-defined]
        else:
            self.stmt(func.body)
        self.indent = outer
        self.names.pop()

    def match_params(self, matched: list[tuple[Var, Buffer]]) -> None:
        for _, b in matched:
            for v in [v for x in (*b.shape, *b.strides, b.elem_offset) for v in symbols(x)]:
                if not self.names.knows(v):
                    self.line(f"{self.names.define(v, v.name)} = {type_text(v.type)}()")
        for p, b in matched:
            arguments = self.buffer_args(b, always_dtype=True)
            self.line(f"{self.names.of(b)} = T.match_buffer({self.names.of(p)}, {arguments})")

    def collect_views(self, func: PrimFunc) -> None:
        """Note the buffers of the body by their memory (the flat form has one view of each argument)."""
        seen: set[int] = set()
        for n in walk(func.body):
            b = getattr(n, "buffer", None)
            if isinstance(b, Buffer) and id(b) not in seen:
                seen.add(id(b))
                self.sharing.setdefault(id(b.data), []).append(b)


def _method_names(names: Sequence[str]) -> dict[str, str]:
    """What each function of a module is called in the class that shows it: by its name, where Python takes it.

    `def __f` in a class is another name.
    """
    texts = {name: identifier(name) for name in names}
    plain = {name: f"f{text}" if text.startswith("__") else text for name, text in texts.items()}
    supply = NameSupply(name for name, text in plain.items() if text == name)
    return {name: text if text == name else supply.fresh(text) for name, text in plain.items()}


def _unnamed(named: Sequence[tuple[str, BaseFunc]], shared: ModuleText) -> list[tuple[str, BaseFunc]]:
    """The functions that those of a module call and that are not in it, under names of their own."""
    supply, found = NameSupply(shared.methods.values()), []
    left = [f for _, f in named]
    for caller in left:                                   # it grows while it is walked
        for f in caller.called_functions:
            if id(f) not in shared.defined:
                shared.defined[id(f)] = supply.fresh(identifier(str(getattr(f, "name", "f"))))
                found.append((shared.defined[id(f)], f))
                left.append(f)
    return found


def _is_symbolic(b: Buffer) -> bool:
    return any(symbols(x) for x in (*b.shape, *b.strides, b.elem_offset))


def _is_root(s: Stmt) -> bool:
    """True for a root block that need not be written: the parser puts one around blocks and what only one has."""
    if not isinstance(s, BlockRealize) or s.block.name != "root" or s.iter_values:
        return False
    b = s.block
    if b.init is not None or b.match_buffers or not (isinstance(s.predicate, IntImm) and s.predicate.value):
        return False
    implied = b.alloc_buffers or b.annotations or b.reads or b.writes
    return bool(implied) or any(isinstance(n, BlockRealize) for n in walk(b.body))


def _all(node: Node) -> Iterator[Node]:
    """Every node below node; the functions of a module too."""
    for top in node.functions.values() if isinstance(node, IRModule) else (node,):
        if isinstance(top, Node):
            yield from walk(top)


DARK = "ansi_dark"
# Options of TVM's printer that choose between forms of which ours has one: types are always written, nodes that have
# no syntax of their own do not exist, and nothing stands beside the text.
_OF_ONE_FORM = ("show_meta", "verbose_expr", "buffer_dtype", "int_dtype", "float_dtype", "module_alias", "relax_prefix",
                "show_all_struct_info", "syntax_sugar")
_FIXED = {"tir_prefix": "T", "ir_prefix": "I"}


@register_hook("tir.script")
def script(node: Node, name: str | None, options: Mapping[str, Any]) -> str:
    """node as text under TVM's options. Raises ArgumentError for one that would need another text."""
    indent = 4
    for key, value in options.items():
        if key == "indent_spaces":
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"indent_spaces is {described(value)}, not a number of spaces")
            indent = value
        elif key in _FIXED and value == _FIXED[key]:
            continue
        elif key not in _OF_ONE_FORM:
            raise ArgumentError(f"script has no option {key}={described(value)}",
                                f"name, indent_spaces; without effect: {', '.join(_OF_ONE_FORM)}")
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise ArgumentError(f"name={described(name)} cannot name a function or a class")
    return "\n".join(_indented(line, indent) for line in show(node, name=name).split("\n"))


def _indented(line: str, indent: int) -> str:
    text = line.lstrip(" ")
    return " " * ((len(line) - len(text)) // 4 * indent) + text


@register_hook("tir.show")
def show_highlighted(node: Node, style: str | None = None, name: str | None = None,
                     options: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Print the script of node: highlighted where standard output is a terminal or a notebook, else as print does."""
    text = script(node, name, options)
    if _in_notebook():
        from IPython.display import HTML, display  # here only where a notebook has it loaded already
        display(HTML(code_html(text, style or LIGHT)))
    elif sys.stdout.isatty():
        from rich.console import Console  # loaded at first use: a program that shows nothing pays nothing
        from rich.syntax import Syntax
        width = max(len(line) for line in text.split("\n"))
        Console(width=max(width, 1), soft_wrap=True).print(
            Syntax(text, "python", theme=style or DARK, background_color="default"))
    else:
        print(text)


@register_hook("tir.html")
def as_html(node: Node, style: str | None = None) -> str:
    """node as HTML with its colours in it."""
    return code_html(str(node), style or LIGHT)


def _in_notebook() -> bool:
    """True in a Jupyter kernel; IPython in a terminal is a terminal."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
