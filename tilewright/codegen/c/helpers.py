"""Static inline functions for what C has no operator for: vectors in memory, choices of lanes, checks, faults."""
from __future__ import annotations

from tilewright.codegen.c.types import vector_of
from tilewright.codegen.c.unit import Unit

FAULT_BYTES = 1024            # of a message with values, the end of the text included


def lanes_of(unit: Unit, kind: str, vector: str, parameters: str, lane: str, extra: str = "") -> str:
    """A function KIND_VECTOR of the parameters whose lane k is `lane`."""
    element, lanes = vector_of(vector) or ("", 0)
    name = f"{kind}_{unit.type(vector)}"
    return unit.helper(name, lambda: f"static inline {vector} {name}({parameters.format(e=element, v=vector)}) {{\n"
                       f"    {vector} v;\n{extra}"
                       f"    for (int k = 0; k < {lanes}; ++k) v[k] = {lane.format(e=element)};\n    return v;\n}}")


def splat(unit: Unit, vector: str) -> str:
    """(x): x in every lane. x - 0 is x for every number, -0.0 too."""
    element, _ = vector_of(vector) or ("", 0)
    name = f"splat_{unit.type(vector)}"
    return unit.helper(name, lambda: f"static inline {vector} {name}({element} x) {{\n"
                       f"    return x - ({vector}){{0}};\n}}")


def ramp(unit: Unit, vector: str) -> str:
    """(base, stride): base + k * stride in lane k."""
    element, lanes = vector_of(vector) or ("", 0)
    name, steps = f"ramp_{unit.type(vector)}", ", ".join(map(str, range(lanes)))
    return unit.helper(name, lambda: f"static inline {vector} {name}({element} base, {element} stride) {{\n"
                       f"    return base + stride * ({vector}){{{steps}}};\n}}")


def load(unit: Unit, vector: str) -> str:
    element, _ = vector_of(vector) or ("", 0)
    name = f"load_{unit.type(vector)}"
    return unit.helper(name, lambda: f"static inline {vector} {name}(const {element} *p) {{\n    {vector} v;\n"
                       "    memcpy(&v, p, sizeof v);\n    return v;\n}")


def store(unit: Unit, vector: str) -> str:
    element, _ = vector_of(vector) or ("", 0)
    name = f"store_{unit.type(vector)}"
    return unit.helper(name, lambda: f"static inline void {name}({element} *p, {vector} v) {{\n"
                       "    memcpy(p, &v, sizeof v);\n}")


def load_masked(unit: Unit, vector: str) -> str:
    """(p, mask): 0 in the lanes that the mask leaves out, which are not read."""
    return lanes_of(unit, "load_masked", vector, f"const {{e}} *p, {_mask(unit, vector)} mask", "mask[k] ? p[k] : 0")


def load_strided(unit: Unit, vector: str) -> str:
    return lanes_of(unit, "load_strided", vector, "const {e} *p, int64_t stride", "p[k * stride]")


def gather(unit: Unit, vector: str, index: str) -> str:
    """(p, index, mask): 0 in the lanes that the mask leaves out, which are not read."""
    unit.type(index)
    return lanes_of(unit, f"gather_{index}", vector, f"const {{e}} *p, {index} at, {_mask(unit, vector)} mask",
                  "mask[k] ? p[at[k]] : 0")


def _each(unit: Unit, kind: str, vector: str, parameters: str, statement: str) -> str:
    """A function KIND_VECTOR of a pointer, a vector and the parameters that runs the statement for each lane k."""
    element, lanes = vector_of(vector) or ("", 0)
    name = f"{kind}_{unit.type(vector)}"
    return unit.helper(name, lambda: f"static inline void {name}({element} *p, {vector} v, {parameters}) {{\n"
                       f"    for (int k = 0; k < {lanes}; ++k) {statement}\n}}")


def scatter(unit: Unit, vector: str, index: str) -> str:
    """(p, v, index, mask): lanes in order; of several lanes with one index the last one wins."""
    return _each(unit, f"scatter_{unit.type(index)}", vector, f"{index} at, {_mask(unit, vector)} mask",
                 "if (mask[k]) p[at[k]] = v[k];")


def store_masked(unit: Unit, vector: str) -> str:
    """(p, v, mask)"""
    return _each(unit, "store_masked", vector, f"{_mask(unit, vector)} mask", "if (mask[k]) p[k] = v[k];")


def store_strided(unit: Unit, vector: str) -> str:
    """(p, v, stride)"""
    return _each(unit, "store_strided", vector, "int64_t stride", "p[k * stride] = v[k];")


def reverse(unit: Unit, vector: str) -> str:
    _, lanes = vector_of(vector) or ("", 0)
    return lanes_of(unit, "reverse", vector, "{v} x", f"x[{lanes - 1} - k]")


def lanewise(unit: Unit, name: str, vector: str, count: int) -> str:
    """The scalar function `name` of `count` vectors, lane by lane."""
    parameters = ", ".join(f"{{v}} x{k}" for k in range(count))
    return lanes_of(unit, name, vector, parameters, f"{name}({', '.join(f'x{k}[k]' for k in range(count))})")


def select(unit: Unit, vector: str) -> str:
    """(mask, a, b): a where the mask holds. The mask is of integers as wide as the elements."""
    element, lanes = vector_of(vector) or ("", 0)
    mask, name = unit.type(f"i{_bits(element)}x{lanes}"), f"select_{unit.type(vector)}"
    return unit.helper(name, lambda: f"static inline {vector} {name}({mask} mask, {vector} a, {vector} b) {{\n"
                       f"    return ({vector})((mask & ({mask})a) | (~mask & ({mask})b));\n}}")


def any_lane(unit: Unit, lanes: int) -> str:
    mask = unit.type(f"i32x{lanes}")
    return unit.helper(f"any_{mask}", lambda: f"static inline bool any_{mask}({mask} mask) {{\n    int32_t some = 0;\n"
                       f"    for (int k = 0; k < {lanes}; ++k) some |= mask[k];\n    return some != 0;\n}}")


def reinterpret(unit: Unit, target: str, source: str) -> str:
    """The bits of one scalar type as another of its size."""
    name = f"{target.replace(' ', '_')}_of_{source.replace(' ', '_')}_bits"
    return unit.helper(name, lambda: f"static inline {target} {name}({source} x) {{\n    {target} y;\n"
                       "    memcpy(&y, &x, sizeof y);\n    return y;\n}")


def _mask(unit: Unit, vector: str) -> str:
    return unit.type(f"i32x{(vector_of(vector) or ('', 0))[1]}")


def _bits(element: str) -> int:
    return {"float": 32, "double": 64}.get(element) or int(element.strip("uint_"))


def own_fault(unit: Unit, function: str) -> str:
    """The place for the message of a function that is called without one."""
    unit.declare("tw_fault", f"typedef struct {{ const char *message; char text[{FAULT_BYTES}]; }} tw_message;\n"
                 "tw_message *tw_fault(tw_message *own) __attribute__((const));")
    return unit.data(f"{function}__fault", f"static tw_message {function}__fault;")


def fault_of(unit: Unit, function: str) -> str:
    """The place for the message of the first fault of a call (native/fault.ll)."""
    return f"tw_fault(&{own_fault(unit, function)})"


def record(unit: Unit) -> str:
    """(fault, text): leave a message, unless there is one already."""
    return unit.helper("record_fault", lambda: """\
static bool record_fault(tw_message *fault, const char *text) {
    const char *none = NULL;
    return __atomic_compare_exchange_n(&fault->message, &none, text, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}""")


def inside(unit: Unit, function: str) -> str:
    """(index, extent, form): whether 0 <= index < extent; a message with both is left where it is not."""
    fault, name = fault_of(unit, function), f"{function}__inside"
    record(unit)
    return unit.helper(name, lambda: f"""\
static bool {name}(int64_t index, int64_t extent, const char *form) {{
    if (__builtin_expect((uint64_t)index < (uint64_t)extent, 1)) return true;
    tw_message *fault = {fault};
    if (record_fault(fault, fault->text))
        snprintf(fault->text, sizeof fault->text, form, (long long)index, (long long)extent);
    return false;
}}""")


def lanes_inside(unit: Unit, function: str, lanes: int) -> str:
    """(index, extent, mask, form): the lanes of mask whose index is inside."""
    one = inside(unit, function)
    name, mask, index = f"{one}_x{lanes}", unit.type(f"i32x{lanes}"), unit.type(f"i64x{lanes}")
    return unit.helper(name, lambda: f"""\
static {mask} {name}({index} at, int64_t extent, {mask} mask, const char *form) {{
    for (int k = 0; k < {lanes}; ++k)
        if (mask[k] && !{one}(at[k], extent, form)) mask[k] = 0;
    return mask;
}}""")
