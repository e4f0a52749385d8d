"""The doors of the parser: decorators on Python functions and classes, and text."""
from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Mapping
from typing import Any, overload

from tilewright.script import relax
from tilewright.script.environment import Environment, captured
from tilewright.script.expressions import Expressions
from tilewright.script.language import NAMES, lookup
from tilewright.script.macros import Macro
from tilewright.script.members import Decorator, Member, Members, Place
from tilewright.script.module_calls import ModuleNames, class_of, methods, methods_beside
from tilewright.script.parser import parse_function
from tilewright.script.source import TOO_DEEP, Source
from tilewright.script.values import DType, Form
from tilewright.support.errors import ScriptError, described
from tilewright.tir.functions import BaseFunc
from tilewright.tir.stmt import IRModule, PrimFunc

_LINE_END = re.compile(r"\r\n|\r|\n")        # what ends a line of Python; str.splitlines has more


@overload
def prim_func(func: Callable[..., Any]) -> PrimFunc: ...
@overload
def prim_func(func: None = None, *, private: bool = False, check_well_formed: bool = True) -> \
    Callable[[Callable[..., Any]], PrimFunc]: ...


def prim_func(func: Any = None, *, private: bool = False, check_well_formed: bool = True) -> Any:
    """Decorator: the PrimFunc that a Python function describes. The function itself never runs.

    Names that the body does not define are those of the function's globals and closure: numbers, dtypes, variables.
    `private`: the function gets no "global_symbol". Raises ScriptError, which points into the source.
    """
    if func is None:
        return lambda f: prim_func(f, private=private, check_well_formed=check_well_formed)
    if not isinstance(func, types.FunctionType):
        raise ScriptError(f"@T.prim_func stands on a function, not on {described(func)}")
    source, node = source_of(func)
    names = captured(func)
    if class_of(func):
        module = ModuleNames(class_of(func), lambda: methods_beside(func), functools.partial(_dtype, source, names))
        names = {**names, class_of(func): module}
    return parse_function(source, node, Environment(names, runs_python=True), func.__annotations__,
                          private=private, check_well_formed=check_well_formed)


def _dtype(source: Source, names: Mapping[str, Any], annotation: ast.expr) -> str:
    """The dtype that the annotation of a result states; that of a function that returns nothing is not used."""
    stated = Expressions(source, Environment(names)).value(annotation)
    return stated.name if isinstance(stated, DType) else "int32"


def macro(*args: Any, hygienic: bool = True) -> Any:
    """Decorator: statements that stand wherever the function is called, in a script, on a line of its own.

    A parameter is what the call gives: an expression, a buffer, a number. `hygienic`: other names are those of the
    place where the macro is written; with hygienic=False those of the place where it is called.
    """
    if not args:
        return lambda f: macro(f, hygienic=hygienic)
    (func,) = args
    if not isinstance(func, types.FunctionType):
        raise ScriptError(f"@T.macro stands on a function, not on {described(func)}")
    source, node = source_of(func)
    return Macro(source, node, lambda: captured(func), hygienic)


def ir_module(cls: Any = None, *, names: Mapping[str, str] | None = None, check_well_formed: bool = True) -> Any:
    """Decorator: the IRModule of the functions that a class holds, each under @T.prim_func or @R.function.

    `names`: the names in the module of functions that Python cannot call so, `{"conv_1": "conv-1"}`.
    """
    if cls is None:
        return lambda c: ir_module(c, names=names)
    if not isinstance(cls, type):
        raise ScriptError(f"@I.ir_module stands on a class, not on {described(cls)}")
    given: dict[str, BaseFunc | Member] = {}
    for name, member in cls.__dict__.items():
        if isinstance(member, (BaseFunc, Member)):
            given[name] = member
        elif not name.startswith("__"):
            raise ScriptError(f"class {cls.__name__}: {name} is {described(member)}, not a PrimFunc",
                              "put @T.prim_func on each function")
    return _module(Members(cls.__name__, given).all(), names)


def _module(functions: Mapping[str, BaseFunc], names: Any) -> IRModule:
    """The module of functions, those in `names` under the names that it gives them."""
    others = {} if names is None else names
    if not isinstance(others, Mapping) or not all(isinstance(n, str) for n in others.values()):
        raise ScriptError(f"names is {described(names)}, not a dict of names by the names of functions")
    wrong = next((n for n in others if n not in functions), None)
    if wrong is not None:
        raise ScriptError(f"names speaks of {described(wrong)}, which is no function of the module",
                          f"its functions are {', '.join(functions) or 'none'}")
    named = [others.get(name, name) for name in functions]
    if len(set(named)) < len(named):
        raise ScriptError(f"names gives two functions of the module one name: {', '.join(named)}")
    return IRModule(dict(zip(named, functions.values(), strict=True)))


def source_of(func: types.FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The text of a function, and its syntax tree."""
    try:
        lines, first = inspect.getsourcelines(func)
    except (OSError, TypeError):
        raise ScriptError(f"the source of {func.__name__} is not to be found",
                          "functions typed at a prompt have none: use script.from_source(text)") from None
    text = "".join(lines)
    cut = textwrap.dedent(text)
    source = Source(func.__code__.co_filename, tuple(lines), first, len(lines[0]) - len(lines[0].lstrip()))
    try:
        node = ast.parse(cut).body[0]
    except (SyntaxError, RecursionError, MemoryError):
        node = ast.Pass()
    if not isinstance(node, ast.FunctionDef):
        raise source.error(ast.Pass(lineno=1, col_offset=0), "no function definition stands here",
                           "@T.prim_func stands on `def`, not on a lambda or `async def`")
    return source, node


def from_source(text: str, *, extra_vars: Mapping[str, Any] | None = None,
                check_well_formed: bool = True) -> Any:
    """The function or module that a text describes, as print(func) writes it. Nothing in the text is executed.

    Known names are T, I, R and tir, constants that the text assigns above the function, and those of extra_vars, such
    as the `metadata` of graph functions. Raises ScriptError.
    """
    if not isinstance(text, str):
        raise ScriptError(f"from_source takes a text, not {described(text)}")
    cut = textwrap.dedent(text)
    source = Source("<script>", tuple(_LINE_END.split(cut)))
    try:
        tree = ast.parse(cut)
    except SyntaxError as why:
        at = ast.Pass(lineno=why.lineno or 1, col_offset=max(0, (why.offset or 1) - 1))
        raise source.error(at, f"this is not Python: {why.msg}") from None
    except (RecursionError, MemoryError):
        raise source.error(ast.Pass(), *TOO_DEEP) from None
    except UnicodeEncodeError as why:
        raise ScriptError(f"the text is not Unicode: character {why.start} is a lone surrogate") from None
    return _Text(source, check_well_formed, extra_vars or {}).read(tree)


_OPTIONS = {"prim_func": "private", "ir_module": "names", "macro": "hygienic"}     # of decorators


class _Modules:
    """What a text can import: T, I, and the packages around them."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.__dict__.update(members)


class _T:
    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = lookup(name)
        return value


_TIR = _T()
_IR = _Modules({"ir_module": Form("ir_module")})
_SCRIPT = _Modules({"tir": _TIR, "ir": _IR, "relax": relax, "ir_module": Form("ir_module"),
                    "prim_func": NAMES["prim_func"]})
_IMPORTS: dict[str, Any] = {"T": _TIR, "R": relax, "I": _IR, "tir": _TIR, "tvm": _Modules({"script": _SCRIPT}),
                            "tilewright": _Modules({"script": _SCRIPT})}


class _Text:
    """The definitions of a text, in order."""

    def __init__(self, source: Source, check: bool, extra: Mapping[str, Any]) -> None:
        self.source, self.check = source, check
        self.names: dict[str, Any] = {**_IMPORTS, **extra}
        self.found: list[BaseFunc | IRModule] = []

    def read(self, tree: ast.Module) -> BaseFunc | IRModule:
        for node in tree.body:
            self.statement(node)
        if len(self.found) != 1:
            raise ScriptError(f"the text defines {len(self.found)} functions and modules, not one",
                              "put several functions into a class under @I.ir_module")
        return self.found[0]

    def expressions(self) -> Expressions:
        return Expressions(self.source, Environment(self.names))

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            options = self.decorator(node, "macro")
            if options is None:
                made = self.function(node)
                self.found.append(made.finish(Members("", {})) if isinstance(made, Member) else made)
            else:
                hygienic = bool(options.get("hygienic", True))
                self.names[node.name] = Macro(self.source, node, lambda: self.names, hygienic, runs_python=False)
        elif isinstance(node, ast.ClassDef):
            self.found.append(self.module(node))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.names[node.targets[0].id] = self.expressions().value(node.value)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise self.source.error(node, "a text defines constants and one function or module, nothing else")

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for a in node.names:
            home = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            full = (home + a.name).replace("tvm.", "tilewright.", 1)
            known = {"tilewright.script": _SCRIPT, "tilewright.script.tir": _TIR, "tilewright.script.ir": _IR,
                     "tilewright.script.relax": self.names["R"],
                     "tvm": _IMPORTS["tvm"], "tilewright": _IMPORTS["tilewright"]}
            if full not in known and home != "__future__.":
                raise self.source.error(node, f"a text imports nothing but T and I, not {full}",
                                        "from tilewright.script import tir as T, ir as I")
            if full in known:
                self.names[a.asname or a.name.split(".")[-1]] = known[full]

    def decorator(self, node: ast.FunctionDef | ast.ClassDef, form: str) -> dict[str, Any] | None:
        """The keywords of the decorator T.form; None where node is under no such."""
        for d in node.decorator_list:
            call = d if isinstance(d, ast.Call) else None
            fn = self.expressions().value(call.func if call else d)
            if isinstance(fn, Form) and fn.name == form:
                return self.options(call, _OPTIONS[form]) if call else {}
        return None

    def decorated(self, node: ast.FunctionDef | ast.ClassDef, form: str) -> dict[str, Any]:
        """The keywords of the decorator, which is T.prim_func or I.ir_module."""
        options = self.decorator(node, form)
        if options is not None:
            return options
        raise self.source.error(node, f"{node.name} is not under @{'T' if form == 'prim_func' else 'I'}.{form}")

    def options(self, call: ast.Call, own: str) -> dict[str, Any]:
        if call.args or any(k.arg not in (own, "check_well_formed") for k in call.keywords):
            raise self.source.error(call, "the decorator does not take these arguments",
                                    f"{own}= and check_well_formed= there are")
        return {str(k.arg): self.expressions().value(k.value) for k in call.keywords}

    def function(self, node: ast.FunctionDef) -> BaseFunc | Member:
        for d in node.decorator_list:
            call = d if isinstance(d, ast.Call) else None
            reader = self.expressions().value(call.func if call else d)
            if isinstance(reader, Decorator):
                given = {str(k.arg): self.expressions().value(k.value) for k in call.keywords} if call else {}
                return Member(functools.partial(self.other, node, reader, given))
        options = self.decorated(node, "prim_func")
        return parse_function(self.source, node, Environment(self.names), private=bool(options.get("private")),
                              check_well_formed=self.check and options.get("check_well_formed", True))

    def other(self, node: ast.FunctionDef, reader: Decorator, options: Mapping[str, Any], module: Members) -> BaseFunc:
        """A function of another kind."""
        return reader.read(node, Place(self.source, self.names, module, False), options)

    def module(self, node: ast.ClassDef) -> IRModule:
        options = self.decorated(node, "ir_module")
        known, dtype_of = methods(node), functools.partial(_dtype, self.source, self.names)
        self.names[node.name] = ModuleNames(node.name, lambda: known, dtype_of)
        functions: dict[str, BaseFunc | Member] = {}
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                if member.name in functions:
                    raise self.source.error(member, f"the module has a function {member.name} already")
                functions[member.name] = self.function(member)
            elif not isinstance(member, ast.Pass) and not (isinstance(member, ast.Expr)
                                                           and isinstance(member.value, ast.Constant)):
                raise self.source.error(member, "a module holds functions under @T.prim_func, nothing else")
        try:
            return _module(Members(node.name, functions).all(), options.get("names"))
        except ScriptError as why:
            if getattr(why, "placed", False):
                raise
            raise self.source.error(node, str(why)) from None
