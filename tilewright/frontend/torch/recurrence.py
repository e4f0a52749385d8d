"""A recurrence that topi has not: the LSTM whose state is a projection of its cells."""
from __future__ import annotations

from typing import Any

from tilewright import te, topi


def projected_lstm(x: te.Tensor, weight: te.Tensor, recurrent: te.Tensor, projection: te.Tensor,
                   bias: te.Tensor | None, recurrent_bias: te.Tensor | None, start: te.Tensor, start_cell: te.Tensor, *,
                   reverse: bool) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """(y, last, last cell): c = f * c + i * g and h = P (o * tanh(c)) for each step, the gates as in `topi.lstm`.

    x: T[l, b, n]; weight: T[4 * c, n], recurrent: T[4 * c, p], projection: T[p, c], the biases: T[4 * c]; start:
    T[b, p]; start_cell: T[b, c]. y: T[l, b, p]; last: T[b, p]; last cell: T[b, c]. Floats of 16 bits are computed in
    float32 and rounded once, at the end. Source: Sak and others (2014).
    """
    (steps, batch, _), (width, cells) = x.shape, projection.shape
    wide = "float64" if x.dtype == "float64" else "float32"
    inputs = topi.linear(x, weight, bias, out_dtype=wide)
    if recurrent_bias is not None:
        inputs = topi.add(inputs, topi.astype(recurrent_bias, wide))
    state = te.placeholder((steps + 1, batch, width), wide, name="projected_lstm_state")
    cell = te.placeholder((steps + 1, batch, cells), wide, name="projected_lstm_cell")
    k, m = te.reduce_axis((0, width), name="k"), te.reduce_axis((0, cells), name="m")
    product = te.compute((steps + 1, batch, cells * 4), lambda t, b, row: te.sum(
        state(t - 1, b, k.var) * te.cast(wide, recurrent(row, k)), axis=k), name="projected_lstm_product")

    def gate(number: int, t: Any, b: Any, j: Any) -> Any:
        row, place = j + cells * number, steps - t if reverse else t - 1
        e = te.if_then_else(t > 0, inputs(place, b, row), te.const(0.0, wide)) + product(t, b, row)
        return te.tanh(e) if number == 2 else te.sigmoid(e)
    new_cell = te.compute(cell.shape, lambda t, b, j: gate(1, t, b, j) * cell(t - 1, b, j) + gate(
        0, t, b, j) * gate(2, t, b, j), name="projected_lstm_new_cell")
    shown = te.compute(cell.shape, lambda t, b, j: gate(3, t, b, j) * te.tanh(new_cell(t, b, j)),
                       name="projected_lstm_shown")
    new_state = te.compute(state.shape, lambda t, b, j: te.sum(
        shown(t, b, m.var) * te.cast(wide, projection(j, m)), axis=m), name="projected_lstm_new_state")
    firsts = [te.compute((1, *v.shape), lambda t, b, j, v=v: te.cast(wide, v(b, j)), name=f"projected_lstm_start{n}")
              for n, v in enumerate((start, start_cell))]
    states, found = te.scan(firsts, [new_state, new_cell], [state, cell], inputs=[x], name="projected_lstm_steps")
    y = te.compute((steps, batch, width), lambda t, b, j: te.cast(x.dtype, states(
        steps - t if reverse else t + 1, b, j)), name="projected_lstm")
    last, last_cell = (te.compute(v.shape[1:], lambda b, j, v=v: te.cast(x.dtype, v(steps, b, j)),
                                  name=f"projected_lstm_last{n}") for n, v in enumerate((states, found)))
    return y, last, last_cell
