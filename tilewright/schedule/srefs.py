"""TVM's references to loops and blocks, the replacement of one, and what the blocks of a scope depend on."""
from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.schedule.state import Index, block_root, replaced
from tilewright.support.errors import ArgumentError, described
from tilewright.tir.buffer import BufferRegion
from tilewright.tir.stmt import Block, BlockRealize, For, IRModule, PrimFunc, Stmt


class StmtSRef:
    """A reference to a loop or block of a ScheduleState. `stmt` is None once it was replaced by something else."""

    def __init__(self, stmt: Stmt | None, parent: StmtSRef | None = None) -> None:
        self.stmt, self.parent = stmt, parent

    def same_as(self, other: object) -> bool:
        """True for the same reference."""
        return self is other

    def __repr__(self) -> str:
        s = self.stmt
        if isinstance(s, Block):
            return f"reference to block {s.name}"
        return f"reference to loop {s.loop_var.name}" if isinstance(s, For) else "reference to nothing"


class DepKind(enum.IntEnum):
    """What a later block does with what an earlier one reads or writes."""
    RAW = 0                        # it reads what that writes
    WAW = 1                        # both write
    WAR = 2                        # it writes what that reads
    OPAQUE = 3


@dataclass(frozen=True)
class Dependency:
    """Block dst comes after block src because of what both touch."""
    src: StmtSRef
    dst: StmtSRef
    kind: DepKind


@dataclass(frozen=True)
class BlockScope:
    """The dependences between the blocks directly inside of a block, in program order."""
    dependences: tuple[Dependency, ...]

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """Those of which the block is the earlier one."""
        return [d for d in self.dependences if d.src is block]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """Those of which the block is the later one."""
        return [d for d in self.dependences if d.dst is block]


class ScheduleState:
    """The functions of a module with references to their loops and blocks. Nothing is checked: what `replace` puts in
    is taken as it is. Statements are never changed in place, so a replacement makes new ones on the way to the root.
    """

    def __init__(self, mod: PrimFunc | IRModule, *, debug_mask: str | int = "none", enable_check: bool = True) -> None:
        if not isinstance(mod, (PrimFunc, IRModule)):
            raise ArgumentError(f"ScheduleState takes a PrimFunc or an IRModule, not {described(mod)}")
        functions = {"main": mod} if isinstance(mod, PrimFunc) else mod.functions
        self._functions: dict[str, Any] = dict(functions)
        self._srefs: dict[int, StmtSRef] = {}                    # of statements that stand in a function

    @property
    def mod(self) -> IRModule:
        """The functions as they stand."""
        return IRModule(dict(self._functions))

    def get_sref(self, stmt: Stmt) -> StmtSRef:
        """The reference to a loop or block that stands in a function. Raises ArgumentError for another statement."""
        if isinstance(stmt, BlockRealize):
            stmt = stmt.block
        name, index = self._home(stmt)
        above = [s for s in index.path_to(stmt)[:-1] if isinstance(s, (For, Block))]
        found = self._srefs.get(id(stmt))
        if found is None or found.stmt is not stmt:
            found = self._srefs[id(stmt)] = StmtSRef(stmt)
        found.parent = self.get_sref(above[-1]) if above else None
        return found

    def _home(self, stmt: Stmt) -> tuple[str, Index]:
        """The function in which stmt stands, and its index."""
        if isinstance(stmt, (For, Block)):
            for name, func in self._functions.items():
                if isinstance(func, PrimFunc):
                    index = Index(block_root(func))
                    if id(stmt) in index.parent or stmt is index.root:
                        return name, index
        raise ArgumentError(f"{type(stmt).__name__} is no loop or block of the module as it stands",
                            "statements are new after each step: take them from `mod`")

    def replace(self, src_sref: StmtSRef, tgt_stmt: Stmt, block_sref_reuse: Mapping[Any, Any] | None = None) -> None:
        """Put a loop, block or realization in the place of what src_sref refers to.

        block_sref_reuse: blocks that are replaced -> the blocks to which references to them refer afterwards. Loops of
        one variable keep their references.
        """
        old = src_sref.stmt
        if old is None:
            raise ArgumentError("the reference refers to nothing any more")
        name, index = self._home(old)
        if isinstance(old, Block) != isinstance(tgt_stmt, Block):
            raise ArgumentError(f"{src_sref!r} cannot be replaced by a {type(tgt_stmt).__name__}")
        kept = {id(sref): sref for sref in self._srefs.values()}
        func = self._functions[name]
        self._functions[name] = func.with_body(replaced(index, old, tgt_stmt))
        self._renew(kept.values(), {id(a): b for a, b in (block_sref_reuse or {}).items()}, src_sref, tgt_stmt)

    def _renew(self, srefs: Any, reuse: Mapping[int, Block], src: StmtSRef, target: Stmt) -> None:
        """Let references to what still stands, or was rebuilt, refer to it; those to anything else refer to nothing."""
        indexes = [Index(block_root(f)) for f in self._functions.values() if isinstance(f, PrimFunc)]
        loops = {v: loop for index in indexes for v, loop in index.loops.items()}
        blocks = {name: r.block for index in indexes for name, r in index.realizes.items()}
        standing = {id(s) for s in (*loops.values(), *(r.block for index in indexes for r in index.realizes.values()))}
        self._srefs = {}
        for sref in srefs:
            old = sref.stmt
            if id(old) in standing:
                new: Stmt | None = old
            elif id(old) in reuse:
                new = reuse[id(old)]
            elif sref is src:
                same = isinstance(old, For) and isinstance(target, For) and target.loop_var is old.loop_var
                new = target if same else None
            else:
                new = loops.get(old.loop_var) if isinstance(old, For) else blocks.get(old.name)
            sref.stmt = new
            if new is not None:
                self._srefs[id(new)] = sref

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """What the blocks directly inside of a block depend on."""
        if not isinstance(block_sref.stmt, Block):
            raise ArgumentError(f"{block_sref!r} is no block")
        _, index = self._home(block_sref.stmt)
        inside = [r.block for r in index.realizes.values()
                  if r is not index.root and index.scope_of(r).block is block_sref.stmt]
        found = [Dependency(self.get_sref(a), self.get_sref(b), kind)
                 for k, a in enumerate(inside) for b in inside[k + 1:] for kind in _kinds(a, b)]
        return BlockScope(tuple(found))


def _kinds(a: Block, b: Block) -> list[DepKind]:
    """How block b depends on block a, which comes before it, by the buffers that they name."""
    pairs = {DepKind.RAW: (a.writes, b.reads), DepKind.WAW: (a.writes, b.writes), DepKind.WAR: (a.reads, b.writes)}
    return [kind for kind, (x, y) in pairs.items() if _meet(x, y)]


def _meet(a: tuple[BufferRegion, ...], b: tuple[BufferRegion, ...]) -> bool:
    return any(x.buffer is y.buffer for x in a for y in b)


