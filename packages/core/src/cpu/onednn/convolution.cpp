#include "cpu/onednn/convolution.h"

#if RUSHLIGHT_WITH_ONEDNN

#include <cstring>
#include <string_view>
#include <utility>

#include "cpu/capability.h"
#include "cpu/kernels_in_use.h"
#include "cpu/onednn/primitive.h"
#include "runtime/per_thread.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::onednn {
namespace {

enum class Direction : int64_t { Forward, BackwardData, BackwardWeights };

// All values on which a primitive depends. All fields have 64 bits, so that keys can be compared as bytes.
struct Key {
    ConvolutionGeometry geometry;
    Direction direction;
    int64_t dtype, has_bias, in_last, weight_last, out_last;
    int64_t threads;  // oneDNN divides the work when it creates a primitive
    int64_t winograd;  // whether Winograd's algorithm may be used

    bool operator==(const Key& other) const { return std::memcmp(this, &other, sizeof(Key)) == 0; }
};
static_assert(std::has_unique_object_representations_v<Key>);

struct KeyHash {
    size_t operator()(const Key& k) const {
        return std::hash<std::string_view>()(std::string_view(reinterpret_cast<const char*>(&k), sizeof k));
    }
};

// Sizes in oneDNN's order: batch or groups, channels, then the spatial dimensions without the leading ones of size
// 1 that the geometry adds.
struct Sizes {
    dnnl_data_type_t type = dnnl_f32;
    int ndim = 0;
    dnnl_dims_t size{};

    void push(int64_t n) { size[ndim++] = n; }
    void push_spatial(const int64_t* three, int64_t dims) {
        for (int64_t d = 3 - dims; d < 3; ++d) push(three[d]);
    }
    // In the channels-last layout, the dimension `channel` varies fastest and the other dimensions keep their
    // order.
    Layout layout(bool channels_last, int channel) const {
        dnnl_dims_t strides;
        int64_t step = 1;
        if (channels_last) {
            strides[channel] = 1;
            step = size[channel];
        }
        for (int d = ndim - 1; d >= 0; --d) {
            if (channels_last && d == channel) continue;
            strides[d] = step;
            step *= size[d];
        }
        return strided_layout(ndim, size, strides, type);
    }
    Layout any() const { return any_layout(ndim, size, type); }
};

struct Shapes {
    Sizes in, weight, bias, out;
    dnnl_dims_t stride, dilation, before, after;

    Shapes(const ConvolutionGeometry& g, DType dtype) {
        for (Sizes* sizes : {&in, &weight, &bias, &out})
            sizes->type = dtype == DType::BFloat16 ? dnnl_bf16 : dnnl_f32;
        in.push(g.batch), in.push(g.in_channels), in.push_spatial(g.in, g.dims);
        out.push(g.batch), out.push(g.out_channels), out.push_spatial(g.out, g.dims);
        if (g.groups > 1) weight.push(g.groups);
        weight.push(g.out_channels / g.groups), weight.push(g.in_channels / g.groups);
        weight.push_spatial(g.kernel, g.dims);
        bias.push(g.out_channels);
        for (int64_t i = 0; i < g.dims; ++i) {
            const int64_t d = 3 - g.dims + i;
            stride[i] = g.stride[d];
            dilation[i] = g.dilation[d] - 1;
            before[i] = g.padding[d];
            after[i] =
                (g.out[d] - 1) * g.stride[d] + (g.kernel[d] - 1) * g.dilation[d] + 1 - g.in[d] - g.padding[d];
        }
    }
    int weight_channel() const { return weight.ndim > in.ndim ? 2 : 1; }
};

// Winograd's minimal filtering (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016) needs
// 2.25 to 4 times fewer multiplications for 3x3 filters with stride 1. It also transforms the filters and pads the
// channels to multiples of 16, so it is faster only with enough tiles of 4x4 outputs and more than 16 channels. Both
// limits were measured.
bool prefer_winograd(const ConvolutionGeometry& g, Direction direction) {
    if (capability() != Capability::AVX512 || g.dims != 2 || g.groups != 1) return false;
    for (int d = 1; d < 3; ++d) {
        if (g.kernel[d] != 3 || g.stride[d] != 1 || g.dilation[d] != 1 || g.padding[d] > 1) return false;
    }
    const int64_t tiles = g.batch * ((g.out[1] + 3) / 4) * ((g.out[2] + 3) / 4);
    return g.in_channels >= 24 && g.out_channels >= 24 &&
           tiles >= (direction == Direction::BackwardWeights ? 24 : 40);
}

Plan plan(const Key& key, const Shapes& s, dnnl_alg_kind_t algorithm) {
    const Functions& f = functions();
    const Layout in = s.in.any(), weight = s.weight.any(), bias = s.bias.any(), out = s.out.any();
    const_dnnl_memory_desc_t bias_if = key.has_bias ? bias.get() : nullptr;
    dnnl_primitive_desc_t forward = nullptr, made = nullptr;
    const bool alone = key.direction == Direction::Forward;
    dnnl_status_t status = f.convolution_forward_primitive_desc_create(
        &forward, engine(), dnnl_forward_training, algorithm, in.get(), weight.get(), bias_if, out.get(),
        s.stride, s.dilation, s.before, s.after, attributes());
    if (status != dnnl_success) return nullptr;
    if (alone) return Plan(forward);
    const Plan hint(forward);
    if (key.direction == Direction::BackwardData) {
        status = f.convolution_backward_data_primitive_desc_create(
            &made, engine(), algorithm, in.get(), weight.get(), out.get(), s.stride, s.dilation, s.before,
            s.after, forward, attributes());
    } else {
        status = f.convolution_backward_weights_primitive_desc_create(
            &made, engine(), algorithm, in.get(), weight.get(), bias_if, out.get(), s.stride, s.dilation,
            s.before, s.after, forward, attributes());
    }
    return Plan(status == dnnl_success ? made : nullptr);
}

std::unique_ptr<Primitive> make(const Key& key) {
    const Shapes s(key.geometry, static_cast<DType>(key.dtype));
    Plan p;
    if (key.winograd && key.dtype == static_cast<int64_t>(DType::Float32) &&
        prefer_winograd(key.geometry, key.direction))
        p = plan(key, s, dnnl_convolution_winograd);
    if (!p) p = plan(key, s, dnnl_convolution_direct);
    if (!p) return nullptr;
    auto primitive = std::make_unique<Primitive>(std::move(p));
    // The first primitive of each direction makes tables that last until the process ends.
    static bool known[3] = {};  // guarded by making_primitives()
    if (!std::exchange(known[static_cast<size_t>(key.direction)], true)) switch_off_at_exit();
    const Layout in = s.in.layout(key.in_last, 1), out = s.out.layout(key.out_last, 1);
    const Layout weight = s.weight.layout(key.weight_last, s.weight_channel()),
                 bias = s.bias.layout(false, 0);
    switch (key.direction) {
        case Direction::Forward:
            primitive->add_input(DNNL_ARG_SRC, dnnl_query_src_md, in);
            primitive->add_input(DNNL_ARG_WEIGHTS, dnnl_query_weights_md, weight, 0, true);
            primitive->add_output(DNNL_ARG_DST, dnnl_query_dst_md, out);
            if (key.has_bias) primitive->add_input(DNNL_ARG_BIAS, dnnl_query_weights_md, bias, 1);
            break;
        case Direction::BackwardData:
            primitive->add_output(DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, in);
            primitive->add_input(DNNL_ARG_WEIGHTS, dnnl_query_weights_md, weight);
            primitive->add_input(DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, out);
            break;
        case Direction::BackwardWeights:
            primitive->add_output(DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, weight);
            primitive->add_input(DNNL_ARG_SRC, dnnl_query_src_md, in);
            primitive->add_input(DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, out);
            break;
    }
    return primitive;
}

bool run(KernelContext& ctx, const ConvolutionGeometry& g, DType dtype, Direction direction,
         ConvolutionOperand in, ConvolutionOperand weight, ConvolutionOperand bias, ConvolutionOperand out) {
    if (!enabled()) return false;
    const ThreadLease lease;
    const Key key{g,
                  direction,
                  static_cast<int64_t>(dtype),
                  bias.data != nullptr,
                  in.channels_last,
                  weight.channels_last,
                  out.channels_last,
                  lease.threads(),
                  winograd()};
    auto& cache = PerThread<PrimitiveCache<Key, KeyHash>>::get();
    Primitive* primitive = cache.get(key, [&] { return make(key); });
    if (primitive == nullptr) return false;
    switch (direction) {
        case Direction::Forward: primitive->run(ctx, {in.data, weight.data, out.data, bias.data}); break;
        case Direction::BackwardData: primitive->run(ctx, {in.data, weight.data, out.data}); break;
        case Direction::BackwardWeights:
            primitive->run(ctx, {weight.data, in.data, out.data, bias.data});
            break;
    }
    return true;
}

}  // namespace

bool convolution_forward(KernelContext& ctx, const ConvolutionGeometry& g, DType dtype, ConvolutionOperand in,
                         ConvolutionOperand weight, ConvolutionOperand bias, ConvolutionOperand out) {
    return run(ctx, g, dtype, Direction::Forward, in, weight, bias, out);
}

bool convolution_backward_data(KernelContext& ctx, const ConvolutionGeometry& g, DType dtype,
                               ConvolutionOperand grad_in, ConvolutionOperand weight,
                               ConvolutionOperand grad_out) {
    return run(ctx, g, dtype, Direction::BackwardData, grad_in, weight, {nullptr, false}, grad_out);
}

bool convolution_backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, DType dtype,
                                  ConvolutionOperand grad_weight, ConvolutionOperand in,
                                  ConvolutionOperand grad_out) {
    return run(ctx, g, dtype, Direction::BackwardWeights, in, grad_weight, {}, grad_out);
}

}  // namespace rushlight::cpu::onednn

#else

namespace rushlight::cpu::onednn {

bool convolution_forward(KernelContext&, const ConvolutionGeometry&, DType, ConvolutionOperand,
                         ConvolutionOperand, ConvolutionOperand, ConvolutionOperand) {
    return false;
}
bool convolution_backward_data(KernelContext&, const ConvolutionGeometry&, DType, ConvolutionOperand,
                               ConvolutionOperand, ConvolutionOperand) {
    return false;
}
bool convolution_backward_weights(KernelContext&, const ConvolutionGeometry&, DType, ConvolutionOperand,
                                  ConvolutionOperand, ConvolutionOperand) {
    return false;
}

}  // namespace rushlight::cpu::onednn

#endif
