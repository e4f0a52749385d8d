"""What a block that is dissolved into another one stores, and the block's iter vars in terms of its indices."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.schedule.analysis.dataflow import block_statements, is_reduction, require_stage, takes_address
from tilewright.schedule.analysis.domains import axis_domains, bind_axes
from tilewright.schedule.primitives.caching import require_visible
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import Illegal, legal, require
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.node import Node, children, rewrite, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt, Store


def only_store(sch: Schedule, realize: BlockRealize, alone: bool = True) -> Store:
    """The one statement of a block that computes each element by itself; no other block writes them where `alone`."""
    require_stage(sch, realize, alone=alone)
    block = realize.block
    require(not is_reduction(block) and block.init is None,
            f"block {block.name} is a reduction: its buffer holds partial sums until the last step", realize,
            hint="compute_at or reverse_compute_at can move it")
    store = block.body
    if isinstance(store, Store) and store.predicate is None and not block.match_buffers:
        return store
    raise Illegal(f"block {block.name} is more than one store of one value", (realize,))


def require_plain_loads(realize: BlockRealize, buffer: Buffer) -> None:
    """The block uses buffer in scalar loads only."""
    name = realize.block.name
    nodes = [n for top in block_statements(realize.block) for n in walk(top)]
    require(not any(takes_address(n, buffer) for n in nodes), f"block {name} uses the address of {buffer.name}",
            realize)
    users = [n for n in nodes if n is buffer.data or getattr(n, "buffer", None) is buffer]
    require(all(isinstance(n, Load) for n in users),
            f"block {name} uses {buffer.name} otherwise than by reading elements", realize)
    for load in users:
        require_scalar(realize, load, buffer)
    require_visible(realize, buffer)


def require_scalar(realize: BlockRealize, load: object, buffer: Buffer) -> None:
    """A load by the block, or on the way to it, is of one element."""
    require(isinstance(load, Load) and load.predicate is None and load.dtype == buffer.dtype,
            f"block {realize.block.name} reads vectors of {buffer.name}", realize)


def inverse_of(realize: BlockRealize, indices: Sequence[Expr], points: Sequence[Var],
               analyzer: Analyzer) -> dict[Var, Expr]:
    """The iter vars of the block in terms of the values `points` of the indices; of points that are no image of the map
    it says nothing. Raises Illegal where the map cannot be inverted.
    """
    block = realize.block
    domains = axis_domains(block.iter_vars)
    inverse: dict[Var, Expr] = {}
    left = []
    for p, e in zip(points, indices, strict=True):
        if isinstance(e, Var) and e in domains and e not in inverse:
            inverse[e] = p
        else:
            left.append((p, e))
    for v, (low, extent) in domains.items():
        if v not in inverse and analyzer.equal(extent, 1):
            inverse[v] = low
    domains = {v: d for v, d in domains.items() if v not in inverse}
    if not domains:
        return inverse
    left = [(p, e) for p, e in left if any(n in domains for n in walk(e))]
    plain = [e for _, e in left]
    mapping = detect_iter_map([substitute(e, inverse) for e in plain], domains, IntImm(1, "bool"), analyzer)
    text = ", ".join(map(str, indices))
    require(mapping is not None and mapping.is_injective,
            f"the indices ({text}) of block {block.name} do not determine its iter vars", realize,
            hint="distinct iter vars, or an invertible affine map of them, do")
    assert mapping is not None
    return inverse | mapping.invert([p for p, _ in left])


def settled(e: Expr, at: Mapping[Var, Expr], analyzer: Analyzer) -> Expr:
    """e at a point; simplified unless it is a coordinate itself."""
    if isinstance(e, Var):
        return at.get(e, e)
    return analyzer.simplify(substitute(e, at))


def require_same_indices(known: Analyzer, realize: BlockRealize, node: Node, buffer: Buffer,
                         expand: Callable[[Node], Node | None]) -> None:
    """An index that loads from buffer means what it meant once `expand` puts values in the place of the loads.

    Arithmetic on what is loaded wraps around; in an index, arithmetic on variables alone does not.
    """
    own = [node] if not isinstance(node, Stmt) or isinstance(node, Block) else [
        c for c in children(node) if isinstance(c, Expr)]                  # the statements below it are not asked about
    inside = [n for part in own for n in walk(part)]
    places = [i for n in inside if isinstance(n, (Load, Store)) for i in n.indices]
    places += [n.args[1] for n in inside if isinstance(n, Call) and n.op == "table"]
    if isinstance(node, For):
        places += [node.min, node.extent]
    elif isinstance(node, BlockRealize):
        places += [*node.iter_values, node.predicate]
    for index in places:
        if not isinstance(index, (Var, IntImm)) and any(
                isinstance(n, Load) and n.buffer is buffer for n in walk(index)):
            new = rewrite(index, expand)
            legal(known.same_everywhere(new), f"the index {new} of block {realize.block.name} may wrap around in "
                  f"{new.dtype} while it loads from {buffer.name}, and would not without", realize,
                  hint="keep the block, or compute the index in int64")


def inside_of(sch: Schedule, block: Block) -> Analyzer:
    """What is known in the body of block."""
    analyzer = sch.analyzer_at(None)
    bind_axes(analyzer, block.iter_vars)
    return analyzer
