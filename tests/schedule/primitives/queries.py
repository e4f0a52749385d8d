"""The queries: their examples, what they refuse, and how random schedules use them."""
from __future__ import annotations

import tilewright as tw
from tests.schedule.case import Case
from tests.schedule.compute_support import chain as chain_function
from tests.schedule.core_support import matmul, scale
from tests.wrong_uses.programs import blocks, chain
from tests.wrong_uses.schedule_programs import chain_blocks, product, two_functions
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

GET_BLOCK = Case("get_block")
GET_BLOCKS = Case("get_blocks")
GET_LOOPS = Case("get_loops")
GET_PRODUCERS = Case("get_producers")
GET_CONSUMERS = Case("get_consumers")
GET_CHILD_BLOCKS = Case("get_child_blocks")
GET_OUTPUT_BLOCKS = Case("get_output_blocks")


@GET_BLOCK.example
def example_of_get_block():
    """
    b0 = sch.get_block(name='B')
    """
    sch = Schedule(scale())
    sch.get_block("B")
    return sch


@GET_BLOCKS.example
def example_of_get_blocks():
    """
    b0, b1 = sch.get_blocks()
    """
    sch = Schedule(chain_function())
    sch.get_blocks()
    return sch


@GET_LOOPS.example
def example_of_get_loops():
    """
    l0, l1, l2 = sch.get_loops(block='C')
    """
    sch = Schedule(matmul())
    sch.get_loops("C")
    return sch


@GET_PRODUCERS.example
def example_of_get_producers():
    """
    b0, = sch.get_producers(block='C')
    """
    sch = Schedule(chain_function())
    sch.get_producers("C")
    return sch


@GET_CONSUMERS.example
def example_of_get_consumers():
    """
    b0, = sch.get_consumers(block='B')
    """
    sch = Schedule(chain_function())
    sch.get_consumers("B")
    return sch


@GET_CHILD_BLOCKS.example
def example_of_get_child_blocks():
    """
    b0, b1 = sch.get_child_blocks(block_or_loop='root')
    """
    sch = Schedule(chain_function())
    sch.get_child_blocks("root")
    return sch


@GET_OUTPUT_BLOCKS.example
def example_of_get_output_blocks():
    """
    b0, = sch.get_output_blocks(scope_block='root')
    """
    sch = Schedule(chain_function())
    sch.get_output_blocks("root")
    return sch


@GET_BLOCK.wrong("`get_block(\"D\")` of a block that is not there",
                 r"get_block\(name='D'\): function main has no block 'D'")
def unknown_block():
    watch(blocks()).get_block("D")


@GET_BLOCK.wrong("`get_block(\"C\", \"other\")` of a function that is not there",
                 r"get_block\(name='C', func_name='other'\): the module has no kernel 'other'")
def unknown_function():
    watch(blocks()).get_block("C", "other")


@GET_LOOPS.wrong("`get_loops(3)`",
                 r"get_loops\(block=3\): expected a block, got 3")
def loops_of_number():
    watch(blocks()).get_loops(3)


@GET_LOOPS.wrong("the name of a block that the function does not have",
                 r"get_loops\(block='D'\): there is no block D in function main")
def no_such_block():
    sch, _, _, _, _ = product()
    watch(sch).get_loops("D")


@GET_BLOCKS.wrong("`get_blocks(\"other\")` of a function that is not there", r"the module has no kernel 'other'")
def blocks_of_unknown():
    watch(blocks()).get_blocks("other")


@GET_BLOCK.wrong("`get_block(3)`", r"a block is asked for by its name, not by 3")
def block_number():
    watch(blocks()).get_block(3)


@GET_BLOCK.wrong("`get_block(\"C\")` where two functions have one", r"functions first, second have a block C")
def block_of_two():
    functions = {"main": te.create_prim_func(list(chain())), **two_functions().mod.functions}
    del functions["main"]
    a, _, c = chain()
    other = te.create_prim_func([a, te.compute((16, 16), lambda i, j: a[i, j], name="Q")])
    watch(tw.Schedule(tw.IRModule({"main": other, **functions}))).get_block("C")


@GET_LOOPS.wrong("a block of another schedule", r"block C belongs to another schedule")
def block_of_another():
    block = two_functions().get_block("C", "first")
    watch(blocks()).get_loops(block)


@GET_CHILD_BLOCKS.wrong("`get_child_blocks(3)`", r"expected a block, got 3")
def children_of_number():
    sch, _, _ = chain_blocks()
    sch.get_child_blocks(3)
