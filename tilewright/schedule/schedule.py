"""The schedule: functions in block form, a trace, and the helpers with which primitives rewrite them."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.admission import admit
from tilewright.schedule.handles import RV
from tilewright.schedule.outside import outside_of
from tilewright.schedule.sampled import Sampled
from tilewright.schedule.session import Session
from tilewright.schedule.srefs import ScheduleState, StmtSRef
from tilewright.schedule.state import (
    BlockRV,
    Index,
    LoopRV,
    bind_loop,
    block_root,
    outside_buffers,
    removed,
    replaced,
)
from tilewright.schedule.trace import Trace
from tilewright.support.errors import ArgumentError, Illegal, ScheduleError, legal, no_attribute, require
from tilewright.support.names import NameSupply
from tilewright.support.views import View, Viewed, counted
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, BlockRealize, For, IRModule, PrimFunc, Stmt

Snapshot = tuple[dict[str, Any], dict[tuple[str, str], str], dict[Any, str], frozenset[Any], str, int]


class Schedule(Viewed, Session):
    """Loop transformations of a function, or of the functions of a module, each checked when it is asked for.

    A PrimFunc is scheduled as the function "main" of a module. `mod` is the current module, `trace` what was
    done. Every primitive is legal, or raises ScheduleError and changes nothing. Sampling instructions draw from a
    random state of the schedule's own, which starts at `seed`.
    """

    def __init__(self, mod: PrimFunc | IRModule, seed: int | None = 0, *, debug_mask: str | int = "none",
                 error_render_level: str = "detail", enable_check: bool = True) -> None:
        """The last three are TVM's: every primitive is checked, and errors show the program, whatever they say."""
        if not isinstance(mod, (PrimFunc, IRModule)):
            raise ArgumentError(f"Schedule takes a PrimFunc or an IRModule, not {type(mod).__name__}")
        super().__init__(0 if seed is None else seed)
        self.trace = Trace()
        self._start({"main": mod} if isinstance(mod, PrimFunc) else dict(mod.functions))
        for name in self.scheduled_functions():
            admit(self._functions[name])

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """For type checkers: primitives are methods too, each set by its decorator."""
        raise no_attribute("a schedule", name, dir(self))

    def _start(self, functions: dict[str, Any]) -> None:
        """Stand at the functions as they are, with nothing done to them."""
        self._functions = functions
        self._renamed: dict[tuple[str, str], str] = {}       # (function, old block name) -> new name
        self._gone: dict[Any, str] = {}                      # loop Var or (function, block name) -> primitive
        # (Var of a loop whose iterations run at once, Buffer, Vars of loops): inside of no other loops than these, each
        # iteration is known to write what it reads there
        self.own_values: frozenset[tuple[Any, Any, Any]] = frozenset()
        self._indexes: dict[str, Index] = {}
        self._settled: dict[str, Index] = {}                 # those after the last primitive
        self._shape_vars: dict[str, tuple[Any, list[Var]]] = {}
        self._state: ScheduleState | None = None
        self._around: list[tuple[PrimFunc, list[IterVar]]] = []  # of the blocks that stand in for the function
        names = self.scheduled_functions()
        if not names:
            raise ScheduleError("the module has no kernel (PrimFunc) to schedule")
        self.focus = "main" if "main" in names else names[0]   # the function that helpers act on

    # ---- what users read

    @property
    def mod(self) -> IRModule:
        """The functions as they stand."""
        return IRModule(dict(self._functions))

    @property
    def func(self) -> PrimFunc:
        """The function that was scheduled last (the only one, for a schedule of a PrimFunc)."""
        return self._functions[self.focus]

    def get(self, rv: RV | Sampled) -> For | Block | int:
        """The loop, block or integer behind a handle. Raises ScheduleError when a primitive has consumed it."""
        try:
            if isinstance(rv, RV):
                self.require_valid(rv)
            if isinstance(rv, Sampled):
                return rv.value
            return self.loop(rv) if isinstance(rv, LoopRV) else self.realize(rv).block
        except Illegal as why:
            raise ScheduleError(str(why), why.hint) from None

    def get_sref(self, rv_or_stmt: RV | Stmt) -> StmtSRef:
        """TVM's reference to a loop or block: `get_sref(block).stmt` is what `get(block)` gives."""
        stmt = rv_or_stmt if isinstance(rv_or_stmt, Stmt) else self.get(rv_or_stmt)
        return self.state.get_sref(stmt)                                       # type: ignore[arg-type]

    @property
    def state(self) -> ScheduleState:
        """The functions as they stand, with references to their loops and blocks."""
        if self._state is None or any(self._state.mod.functions.get(k) is not f for k, f in self._functions.items()):
            self._state = ScheduleState(self.mod)
        return self._state

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """True where decompose_padding is legal."""
        try:
            self.copy().decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    def copy(self) -> Schedule:
        """An independent schedule in the same state; the handles that this one has given are valid for it."""
        other = type(self).__new__(type(self))
        Session.__init__(other, 0)
        other._start(dict(self._functions))
        other.trace = self.trace.copy()
        other.restore(self.snapshot())
        other.take_session(self)
        return other

    def show(self, *style: Any, **options: Any) -> None:
        """Print the module as TVMScript; the arguments are those of IRModule.show."""
        (self.mod if len(self._functions) > 1 else self.func).show(*style, **options)

    def __str__(self) -> str:
        return str(self.mod if len(self._functions) > 1 else self.func)

    def view(self) -> View:
        done = [e for e in self.trace if not e.kind.is_pure]
        rows = [(name, ", ".join(self.block_names(name)[1:])) for name in self.scheduled_functions()]
        return View(f"tilewright.Schedule after {counted(len(done), 'primitive')}", rows, ("function", "blocks"),
                    [("the functions now", lambda: self),
                     (f"the trace: {counted(len(self.trace), 'call')}", lambda: self.trace)])

    # ---- all-or-nothing

    def snapshot(self) -> Snapshot:
        """Everything that a primitive may change."""
        tables = dict(self._functions), dict(self._renamed), dict(self._gone)
        return *tables, self.own_values, self.focus, len(self.trace)

    def restore(self, saved: Snapshot) -> None:
        """Go back to a snapshot of this schedule or of one that it was copied from."""
        functions, renamed, gone, self.own_values, self.focus, length = saved
        self._functions, self._renamed, self._gone = dict(functions), dict(renamed), dict(gone)
        self.trace.truncate(length)

    def retire(self, saved: Snapshot, primitive: str) -> None:
        """Note that the loops and blocks of saved that do not exist any more were consumed by primitive."""
        for name, old in saved[0].items():
            if old is self._functions.get(name) or not isinstance(old, PrimFunc):
                continue
            before, now = self._settled.get(name), self._index(name)
            if before is None or before.root is not old.body:
                before = Index(old.body)
            self._settled[name] = now
            self._gone.update((v, primitive) for v in before.loops if v not in now.loops)
            self._gone.update(((name, b), primitive) for b in before.realizes if b not in now.realizes)

    @contextmanager
    def inside(self, scope: BlockRealize) -> Iterator[None]:
        """While this lasts the current function is the block of scope: its axes are parameters, and memory that it does
        not allocate belongs to the caller."""
        func, focus = self.func, self.focus
        around = [s.block for s in self.path_to(scope) if isinstance(s, BlockRealize)]
        known = {id(b) for b in func.buffers}
        memory = {Var(b.name, "handle"): b for b in outside_buffers(scope.block) if id(b) not in known}
        self._around.append((func, [iv for block in around for iv in block.iter_vars]))
        root = BlockRealize((), IntImm(1, "bool"), scope.block.replace(iter_vars=()))
        self._functions[focus] = func.replace(
            params=(*func.params, *memory), body=root, buffer_map={**func.buffer_map, **memory})
        try:
            yield
        finally:
            self._functions[focus] = func
            self._around.pop()

    @property
    def arguments(self) -> tuple[Buffer, ...]:
        """The buffers that the caller of the function gives."""
        return (self._around[0][0] if self._around else self.func).buffers

    # ---- helpers of primitive authors; they raise Illegal, which `primitive` renders

    def _index(self, name: str) -> Index:
        body = self._functions[name].body
        found = self._indexes.get(name)
        if found is None or found.root is not body:
            found = self._indexes[name] = Index(body)
            self._settled.setdefault(name, found)            # before the first primitive
        return found

    def scheduled_functions(self) -> list[str]:
        """Names of the module's kernels."""
        return [name for name, f in self._functions.items() if isinstance(f, PrimFunc)]

    def block_names(self, func: str) -> list[str]:
        """Names of the blocks of a function, the root first, in program order."""
        return list(self._index(func).realizes)

    @property
    def index(self) -> Index:
        """Where the statements of the current function stand."""
        found = self._indexes.get(self.focus)
        return found if found is not None and found.root is self.func.body else self._index(self.focus)

    @property
    def root(self) -> BlockRealize:
        """The realization of the root block; function-wide buffers are `root.block.alloc_buffers`."""
        return block_root(self.func)

    def loop(self, rv: LoopRV) -> For:
        """The loop behind a handle; its function becomes the current one."""
        require(isinstance(rv, LoopRV), f"expected a loop, got {rv!r}",
                hint="loops come from get_loops, split and fuse")
        found = self._index(rv.func).loops.get(rv.var)
        if found is None:
            raise self._stale(rv, self._gone.get(rv.var))
        self.focus = rv.func
        return found

    def realize(self, rv: BlockRV | str) -> BlockRealize:
        """The realization of a block, by handle or name; the handle's function becomes the current one."""
        rv = BlockRV(rv, self.focus) if isinstance(rv, str) else rv
        require(isinstance(rv, BlockRV), f"expected a block, got {rv!r}", hint="blocks come from get_block")
        found = self._index(rv.func).realizes.get(self.current_name(rv))
        if found is None:
            raise self._stale(rv, self._gone.get((rv.func, rv.name)))
        self.focus = rv.func
        return found

    def _stale(self, rv: LoopRV | BlockRV, primitive: str | None) -> Illegal:
        if primitive is not None:
            return Illegal(f"{rv} does not exist any more: {primitive} consumed it",
                           hint=f"use what {primitive} returned, or ask get_loops again")
        return Illegal(f"there is no {rv} in function {self._functions[rv.func].name}", hint=self._where_else(rv))

    def _where_else(self, rv: LoopRV | BlockRV) -> str:
        """The hint for what its function does not have."""
        if isinstance(rv, BlockRV):
            owner = next((f for f in self.scheduled_functions() if rv.name in self.block_names(f)), None)
            if owner is not None:
                return (f"function {owner} has one, and a name alone means a block of {rv.func}: work_on({owner!r}) "
                        f"first, or pass get_block({rv.name!r}, {owner!r})")
        return f"its blocks are {', '.join(self._index(rv.func).realizes)}"

    def current_name(self, rv: BlockRV) -> str:
        """The name that the block has now (decompose_reduction renames one)."""
        name = rv.name
        while (rv.func, name) in self._renamed and name not in self._index(rv.func).realizes:
            name = self._renamed[rv.func, name]
        return name

    def loop_rv(self, loop: For) -> LoopRV:
        """A handle to a loop of the current function."""
        return LoopRV(loop.loop_var, self.focus)

    def block_rv(self, block: Block | BlockRealize | str) -> BlockRV:
        """A handle to a block of the current function."""
        if isinstance(block, BlockRealize):
            block = block.block
        return BlockRV(block.name if isinstance(block, Block) else block, self.focus)

    def path_to(self, stmt: Stmt) -> list[Stmt]:
        """The statements from the root realization down to stmt, both included."""
        return self.index.path_to(stmt)

    def loops_above(self, block: BlockRV | BlockRealize | str) -> list[For]:
        """The loops around a block, up to the block that encloses it, outermost first."""
        realize = block if isinstance(block, BlockRealize) else self.realize(block)
        return self.index.loops_above(realize)

    def replace(self, old: Stmt, new: Stmt) -> None:
        """Put new in the place of old in the current function; only the path down to it is rebuilt."""
        self.set_body(replaced(self.index, old, new))

    def remove_stmt(self, stmt: Stmt) -> None:
        """Drop stmt from the current function, and the loops and branches that this leaves empty."""
        self.set_body(removed(self.index, stmt))

    def set_body(self, body: Stmt) -> None:
        """Replace the whole body of the current function."""
        self._functions[self.focus] = self.func.with_body(body)

    def set_function(self, func: PrimFunc) -> None:
        """Replace the current function."""
        self._functions[self.focus] = func

    def add_alloc(self, *buffers: Buffer) -> None:
        """Allocate buffers in the root block."""
        root = self.root
        allocated = root.block.alloc_buffers + buffers
        self.set_body(root.replace(block=root.block.replace(alloc_buffers=allocated)))

    def remove_alloc(self, buffer: Buffer) -> None:
        """Drop the allocation of buffer from the root block. Refused where a block views it, used or not."""
        for realize in self.index.realizes.values():
            viewed = any(m.source.buffer is buffer for m in realize.block.match_buffers)
            legal(not viewed, f"{buffer.name} would vanish, and block {realize.block.name} has a view of it", realize,
                  hint="write the block without match_buffer, or leave the buffer where it is")
        root = self.root
        kept = tuple(b for b in root.block.alloc_buffers if b is not buffer)
        self.set_body(root.replace(block=root.block.replace(alloc_buffers=kept)))

    def fresh_var(self, name: str, dtype: str = "int32") -> Var:
        """A new loop variable. Names may repeat (the printer tells loops apart); identity may not."""
        return Var(name, dtype)

    def block_supply(self) -> NameSupply:
        """Names that no block of the current function has or had, for several new blocks."""
        keys = [key for key in (*self._gone, *self._renamed) if isinstance(key, tuple)]
        retired = [name for func, name in keys if func == self.focus]
        outside = [name for func, _ in self._around for name in Index(func.body).realizes]
        return NameSupply([*self.index.realizes, *outside, *retired])

    def fresh_block(self, name: str) -> str:
        """name, or name_1, name_2, ...: the first that no block of the current function has or had."""
        return self.block_supply().fresh(name)

    def rename_block(self, old: str, new: str) -> None:
        """Note that handles to the block old now mean the block new of the current function."""
        self._renamed[self.focus, old] = new

    def producers(self, block: str) -> list[str]:
        """Names of the blocks beside block, in program order, that write a buffer that it reads, or that is read on the
        way to it."""
        read = self._read(self.realize(block))
        return [r.block.name for r in self._beside(block) if any(w.buffer in read for w in r.block.writes)]

    def consumers(self, block: str) -> list[str]:
        """Names of the blocks beside block, in program order, that read a buffer that it writes, or on the way to which
        it is read."""
        written = {w.buffer for w in self.realize(block).block.writes}
        return [r.block.name for r in self._beside(block) if written & self._read(r)]

    def _beside(self, block: str) -> list[BlockRealize]:
        """The other blocks in the block that encloses this one, in program order."""
        realize, index = self.realize(block), self.index
        if realize is index.root:
            return []
        scope = index.scope_of(realize)
        return [r for r in index.realizes.values()
                if r is not realize and r is not index.root and index.scope_of(r) is scope]

    def _read(self, realize: BlockRealize) -> set[Buffer]:
        return {r.buffer for r in realize.block.reads} | {r.region.buffer for r in outside_of(self.index).of(realize)}

    def shape_vars(self) -> list[Var]:
        """The variables in the shapes of the current function's arguments, in order of appearance."""
        buffer_map = self.func.buffer_map
        found = self._shape_vars.get(self.focus)
        if found is None or found[0] is not buffer_map:
            extents = [d for b in self.func.buffers for d in b.shape]
            seen = {node: None for d in extents for node in walk(d) if isinstance(node, Var)}
            found = self._shape_vars[self.focus] = (buffer_map, list(seen))
        return found[1]

    def analyzer_at(self, stmt: Stmt | None = None, keep_units: bool = False) -> Analyzer:
        """An analyzer that knows the shape variables, and the loops and iter vars around stmt.

        With keep_units a loop of one iteration is not replaced by its value when it simplifies.
        """
        analyzer = Analyzer()
        for var in self.shape_vars():
            analyzer.assume_nonneg(var)
        bind = bind_loop if keep_units else Analyzer.bind
        for iv in (iv for _, axes in self._around for iv in axes):
            bind(analyzer, iv.var, iv.domain.min, iv.domain.extent)
        for above in self.path_to(stmt)[:-1] if stmt is not None else ():
            if isinstance(above, For):
                bind(analyzer, above.loop_var, above.min, above.extent)
            elif isinstance(above, Block):
                for iv in above.iter_vars:
                    bind(analyzer, iv.var, iv.domain.min, iv.domain.extent)
        return analyzer
