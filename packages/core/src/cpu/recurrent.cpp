#include "cpu/recurrent.h"

#include "cpu/contiguous.h"
#include "cpu/recurrent_kernels.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

template <class T> const RecurrentLoops<T>& loops();
template <> const RecurrentLoops<float>& loops() { return recurrent_kernels().f32; }
template <> const RecurrentLoops<double>& loops() { return recurrent_kernels().f64; }

template <class F>
void with_type(const char* op, DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{});
    if (dtype == DType::Float64) return f(double{});
    throw_not_implemented("%s: no kernel for dtype %s on the CPU", op, name(dtype));
}

View dense(KernelContext& ctx, const View& v) { return contiguous_in(ctx, widened(ctx, v)); }

}  // namespace

void lstm_gates(KernelContext& ctx, const View& hidden, const View& next_cell, const View& gates,
                const View& cell) {
    if (cell.numel == 0) return;
    const WidenedOut h(ctx, hidden), c(ctx, next_cell);
    const View g = dense(ctx, gates), old = dense(ctx, cell);
    with_type("lstm_cell", g.dtype, [&]<class T>(T) {
        loops<T>().lstm(cell.size(0), cell.size(1), h.view().template as<T>(), c.view().template as<T>(),
                        g.as<T>(), old.as<T>());
    });
    h.finish();
    c.finish();
}

void lstm_gates_backward(KernelContext& ctx, const View& grad_gates, const View& grad_old_cell,
                         const View& grad_hidden, const View& grad_cell, const View& gates, const View& cell,
                         const View& next_cell) {
    if (cell.numel == 0) return;
    const WidenedOut dg(ctx, grad_gates), dc(ctx, grad_old_cell);
    const View gh = dense(ctx, grad_hidden), gc = dense(ctx, grad_cell), g = dense(ctx, gates),
               old = dense(ctx, cell), next = dense(ctx, next_cell);
    with_type("lstm_cell", g.dtype, [&]<class T>(T) {
        loops<T>().lstm_backward(cell.size(0), cell.size(1), dg.view().template as<T>(),
                                 dc.view().template as<T>(), gh.as<T>(), gc.as<T>(), g.as<T>(), old.as<T>(),
                                 next.as<T>());
    });
    dg.finish();
    dc.finish();
}

namespace {

template <class T> const LstmLayerLoops<T>& layer_loops();
template <> const LstmLayerLoops<float>& layer_loops() { return lstm_layer_kernels().f32; }
template <> const LstmLayerLoops<double>& layer_loops() { return lstm_layer_kernels().f64; }

}  // namespace

void lstm_layer(KernelContext& ctx, const View& output, const View& cells, const View& sums,
                const View& gates, const View& hidden, const View& cell, const View& weight, bool backwards) {
    if (output.numel == 0) return;
    const View x = dense(ctx, gates), h = dense(ctx, hidden), c = dense(ctx, cell), w = dense(ctx, weight);
    with_type("lstm", x.dtype, [&]<class T>(T) {
        const LstmLayer<T> layer{output.size(0), output.size(1), output.size(2), backwards,     h.as<T>(),
                                 c.as<T>(),      w.as<T>(),      output.as<T>(), cells.as<T>(), sums.as<T>()};
        layer_loops<T>().forward(ctx, layer, x.as<T>());
    });
}

void lstm_layer_backward(KernelContext& ctx, const View& grad_gates, const View& grad_hidden,
                         const View& grad_cell, const View& grad_weight, const View& grad_output,
                         const View& grad_cells, const View& grad_sums, const View& hidden, const View& cell,
                         const View& weight, const View& output, const View& cells, const View& sums,
                         bool backwards) {
    if (output.numel == 0) {
        for (const View* grad : {&grad_gates, &grad_hidden, &grad_cell, &grad_weight}) clear(*grad);
        return;
    }
    const View dh = dense(ctx, grad_output), dc = dense(ctx, grad_cells), ds = dense(ctx, grad_sums),
               h = dense(ctx, hidden), c = dense(ctx, cell), w = dense(ctx, weight), y = dense(ctx, output),
               states = dense(ctx, cells), s = dense(ctx, sums);
    with_type("lstm", s.dtype, [&]<class T>(T) {
        const LstmLayer<T> layer{y.size(0), y.size(1), y.size(2), backwards,      h.as<T>(),
                                 c.as<T>(), w.as<T>(), y.as<T>(), states.as<T>(), s.as<T>()};
        const LstmLayerGradients<T> grad{dh.as<T>(),         dc.as<T>(),          ds.as<T>(),
                                         grad_gates.as<T>(), grad_hidden.as<T>(), grad_cell.as<T>(),
                                         grad_weight.as<T>()};
        layer_loops<T>().backward(ctx, layer, grad);
    });
}

void gru_gates(KernelContext& ctx, const View& out, const View& from_input, const View& from_hidden,
               const View& hidden) {
    if (hidden.numel == 0) return;
    const WidenedOut wide(ctx, out);
    const View x = dense(ctx, from_input), h = dense(ctx, from_hidden), old = dense(ctx, hidden);
    with_type("gru_cell", x.dtype, [&]<class T>(T) {
        loops<T>().gru(hidden.size(0), hidden.size(1), wide.view().template as<T>(), x.as<T>(), h.as<T>(),
                       old.as<T>());
    });
    wide.finish();
}

void gru_gates_backward(KernelContext& ctx, const View& grad_input, const View& grad_from_hidden,
                        const View& grad_old, const View& grad, const View& from_input,
                        const View& from_hidden, const View& hidden) {
    if (hidden.numel == 0) return;
    const WidenedOut dx(ctx, grad_input), dh(ctx, grad_from_hidden), d_old(ctx, grad_old);
    const View g = dense(ctx, grad), x = dense(ctx, from_input), h = dense(ctx, from_hidden),
               old = dense(ctx, hidden);
    with_type("gru_cell", x.dtype, [&]<class T>(T) {
        loops<T>().gru_backward(hidden.size(0), hidden.size(1), dx.view().template as<T>(),
                                dh.view().template as<T>(), d_old.view().template as<T>(), g.as<T>(),
                                x.as<T>(), h.as<T>(), old.as<T>());
    });
    dx.finish();
    dh.finish();
    d_old.finish();
}

}  // namespace rushlight::cpu
