"""`lower`: what the user wrote, as the loops that will run."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Union

from tilewright import te
from tilewright.codegen.registry import back_end
from tilewright.lowering import lower as run_passes
from tilewright.lowering.link_calls import link
from tilewright.runtime import Module
from tilewright.schedule import Schedule
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.support.errors import ArgumentError, TargetError, described
from tilewright.support.target import Target
from tilewright.support.target import target as resolve_target
from tilewright.tir import Expr, IRModule, PrimFunc

_SYMBOL = re.compile(r"[A-Za-z_$.-][A-Za-z0-9_$.-]*")
Input = Union[StageSchedule, Schedule, PrimFunc, IRModule, te.Tensor, te.Operation, Sequence[Union[te.Tensor, te.Var]]]


def lower(inputs: Input, args: Sequence[te.Tensor] | None = None, name: str | None = None,
          simple_mode: bool = False, target: str | Target | None = None) -> IRModule:
    """The loops of `inputs` as a module that prints as script.

    With simple_mode, before loop partition, vectorisation and unrolling: the form to read. args: the parameters,
    in the order of the call, of a schedule of stages. What is looked at may be a part of a program: outputs that are
    no arguments are computed all the same, and variables that nothing binds become arguments. Tensors without a
    schedule, as `[A, B, C]` in the order of the call, are te.create_prim_func of them; one tensor alone takes what it
    is computed from, then itself.
    """
    check_listed(args)
    resolved = resolve_target(target)
    return IRModule({key: run_passes(f, resolved, simple_mode=simple_mode)
                     for key, f in functions(inputs, args, name, partial=True).items()})


def functions(inputs: Any, args: Sequence[Any] | None, name: str | None, *,
              partial: bool = False) -> dict[str, PrimFunc]:
    """The functions behind any form of input, by their names in its module.

    Each has the global symbol under which it is called. partial: of a schedule of stages, see its replay. Raises
    ArgumentError for anything else, for missing or superfluous args, and for a name that is none.
    """
    check_listed(args)
    name = check_name(name)
    if isinstance(inputs, StageSchedule):
        if args is None:
            raise ArgumentError("a schedule of stages needs the argument list",
                                "lower(s, [A, B, C]), build(s, [A, B, C], target)")
        name = name or "default_function"
        return {name: inputs.replay(args, name, partial).func}
    if args is not None:
        raise ArgumentError(f"args are given with a {type(inputs).__name__}, which has its own parameters",
                            "args belong to a schedule of stages (te.create_schedule)")
    if isinstance(inputs, Schedule):
        return functions(inputs.mod, None, name)
    if isinstance(inputs, PrimFunc):
        return {name or inputs.name: _named(inputs, name or inputs.name)}
    if isinstance(inputs, IRModule):
        return _of_module(inputs, name)
    if isinstance(inputs, (te.Tensor, te.Operation)):
        return functions(_parameters(inputs), None, name)
    if isinstance(inputs, (list, tuple)) and any(isinstance(x, te.Tensor) for x in inputs):
        return functions(te.create_prim_func(inputs, name=name or "main"), None, name)
    if isinstance(inputs, Module):
        raise ArgumentError(f"the module of {inputs.entry_name} is compiled already",
                            "pass what it was made from: a schedule, a PrimFunc or the tensors [A, B, C]")
    array = next((x for x in inputs if hasattr(x, "__dlpack__")), None) if isinstance(inputs, (list, tuple)) else None
    if array is not None:
        raise ArgumentError(
            f"the list holds {described(array)}, which has values: a function is made from tensors of te or a PrimFunc",
            "pass [A, B, C] of te.placeholder and te.compute; arrays are the arguments of the compiled function")
    raise ArgumentError(
        f"cannot lower a {type(inputs).__name__}",
        "pass a schedule (te.create_schedule, tilewright.Schedule), a PrimFunc, an IRModule or the tensors [A, B, C]")


def _parameters(output: te.Tensor | te.Operation) -> list[te.Tensor]:
    """The placeholders that the output needs, in order of first use, and then the output, all of it."""
    op = output.op if isinstance(output, te.Tensor) else output
    if isinstance(op, te.PlaceholderOp):
        raise ArgumentError(f"{op.name} is a placeholder: there is nothing to compute",
                            "pass a tensor that te.compute returned, or the tensors [A, B, C]")
    placeholders = [t for x in te.post_order([op]) if isinstance(x, te.PlaceholderOp)
                    and not isinstance(x, te.ConstantOp) for t in x.outputs]
    return list(dict.fromkeys([*placeholders, *op.outputs]))


def _of_module(module: IRModule, name: str | None) -> dict[str, PrimFunc]:
    if not module.functions:
        raise ArgumentError("the module has no functions")
    if name is not None and len(module.functions) > 1:
        raise ArgumentError(f"name={name!r} is given with a module of {len(module.functions)} functions",
                            f"they keep their names: {', '.join(module.functions)}")
    other = next((n for n, f in module.functions.items() if not isinstance(f, PrimFunc)), None)
    if other is not None:
        raise ArgumentError(f"{other} is a function of the graph, and kernels are made of functions of blocks",
                            f"tilewright.compile(mod[{str(other)!r}]) compiles it, relax.build(mod) a module of relax")
    found = {key: _named(f, name or f.attrs.get("global_symbol", key)) for key, f in module.functions.items()}
    found = link(found)
    symbols = [f.name for f in found.values()]
    twice = next((s for s in symbols if symbols.count(s) > 1), None)
    if twice is not None:
        raise ArgumentError(f"two functions of the module have the global symbol {twice!r}")
    return found


def _named(func: PrimFunc, name: Any) -> PrimFunc:
    if not isinstance(name, str) or not _SYMBOL.fullmatch(name):
        raise ArgumentError(f"the global symbol {described(name)} cannot name compiled code",
                            "use letters, digits and _")
    return func if func.attrs.get("global_symbol") == name else func.with_attr("global_symbol", name)


def check_listed(args: Any) -> None:
    """Raises ArgumentError where args is one tensor: the list around the arguments was forgotten, and those that
    follow stand in the place of other parameters; or a target, in the place of the arguments.
    """
    if isinstance(args, (str, Target)):
        raise ArgumentError(f"the arguments are {described(args)}, not a list",
                            f'a target that follows no arguments has its name: build(func, target="{args}")')
    if isinstance(args, (te.Tensor, Expr)):
        raise ArgumentError(f"the arguments are {described(args)}, not a list",
                            "the arguments of the function go in a list: lower(s, [A, B, C])")


def check_name(name: Any) -> str | None:
    """name, when it can be a function's. Raises ArgumentError."""

    if name is not None and not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise ArgumentError(f"name={name!r} cannot name a function", "use letters, digits and _")
    return name


def common_target(given: Mapping[str, PrimFunc], default: Target) -> Target:
    """The target of functions: what their attribute "target" says, else default. Raises TargetError for several."""
    said = {name: check_target(f.attrs.get("target", default)) for name, f in given.items()}
    (first, one), *others = said.items()
    for name, other in others:
        if other != one:
            raise TargetError(f"function {first} is for {one}, function {name} for {other}",
                              "build a module for each target")
    return one


def check_target(spec: str | Target | None) -> Target:
    """The target, when there is a back end for it. Raises TargetError."""
    resolved = resolve_target(spec)
    back_end(resolved)
    return resolved
