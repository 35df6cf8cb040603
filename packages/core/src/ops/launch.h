// Calls of kernels by operators of kind "custom": the rule determines the outputs, arguments are converted to views and
// parameters, the versions of written inputs are incremented, and the device's kernel is called.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "ops/memory_format.h"
#include "runtime/cpu_context.h"
#include "rushlight/dispatch.h"
#include "rushlight/random.h"

namespace rushlight {

/// The outputs of a kernel, in the order of the schema. The operator's rule determines them. Auxiliary outputs are
/// last. All outputs are row-major except those for which `in_format_of`, `in_order_of` or `by_columns` is called. The
/// first two are called by generated code, for the key `layout` of an operator's entry.
class Outputs {
  public:
    static constexpr int kMax = 6;

    void add(IntList sizes, DType dtype, Device device) {
        One& one = next();
        one.ndim = static_cast<int>(sizes.size());
        std::copy(sizes.begin(), sizes.end(), one.sizes);
        one.dtype = dtype;
        one.device = device;
    }
    /// If `like` is channels-last and the device supports such outputs, selects the channels-last format for an output,
    /// or for all outputs. Outputs that have another number of dimensions than `like` (4 or 5) are not affected.
    void in_format_of(const Tensor& like, int which = kAll);
    /// If the device supports such outputs, orders the dimensions of an output, or of all outputs, in memory as `like`
    /// orders its dimensions. Pointwise operators do the same. Outputs that have another number of dimensions than
    /// `like` are not affected.
    void in_order_of(const Tensor& like, int which = kAll);
    /// Stores the last output, a matrix, in column-major order on the CPU.
    void by_columns() {
        One& last = list_[count_ - 1];
        last.strided = last.device.type == DeviceType::CPU;
        last.strides[0] = 1;
        last.strides[1] = last.sizes[0];
    }
    void like(const Tensor& t) { add(t.sizes(), t.dtype(), t.device()); }
    /// Adds an output that is not needed. It is undefined for the kernel and the caller.
    void skip() { next().ndim = kSkipped; }
    /// If `wanted` is true, adds an output like `t`. Otherwise adds an output that is not needed.
    void like_if(bool wanted, const Tensor& t) { wanted ? like(t) : skip(); }
    /// Marks the auxiliary outputs with the number `first` and above as not needed.
    void drop_from(int first) {
        for (int i = first; i < count_; ++i) list_[i].ndim = kSkipped;
    }

    int size() const { return count_; }
    IntList sizes(int i) const { return {list_[i].sizes, static_cast<size_t>(list_[i].ndim)}; }
    Tensor make(int i) const {
        const One& one = list_[i];
        if (one.ndim == kSkipped) return Tensor();
        if (one.strided) return make_ordered(one);
        return make_tensor(IntList(one.sizes, static_cast<size_t>(one.ndim)), one.dtype, one.device);
    }

  private:
    static constexpr int kSkipped = -1, kAll = -1;
    struct One {
        int ndim;
        DType dtype;
        Device device;
        bool strided;  // not row-major
        int64_t sizes[kMaxDims];
        int64_t strides[kMaxDims];  // set if `strided`
    };
    static Tensor make_ordered(const One& one);
    One& next() {
        list_[count_].strided = false;
        return list_[count_++];
    }
    template <class Strides>
    void order(const Tensor& like, int which, uint32_t formats, const Strides& strides);

    int count_ = 0;
    One list_[kMax];
};

class Launch {
  public:
    using Results = std::array<Tensor, Outputs::kMax>;

    Launch(const char* op, KernelSlots& slots) : op_(op), slots_(slots) {}
    Launch(const Launch&) = delete;

    void input(const Tensor& t) {
        push(t.defined() ? t.impl()->view() : kAbsent);
        if (t.defined()) check_device(t);
    }
    /// Adds the length of the list as a parameter, and then the tensors of the list as inputs.
    void inputs(TensorList list) {
        param(static_cast<int64_t>(list.size()));
        for (const Tensor& t : list) input(t);
    }

    void param(bool v) { next(Param::Kind::Bool).integer = v; }
    void param(int64_t v) { next(Param::Kind::Int).integer = v; }
    void param(double v) { next(Param::Kind::Float).floating = v; }
    /// Adds a real number. Raises NotImplementedError for complex numbers.
    void param(Scalar v) {
        RL_CHECK(!v.is_complex(), throw_not_implemented, "%s: takes real numbers, got a complex number", op_);
        v.is_floating() ? param(v.to<double>()) : param(v.to<int64_t>());
    }
    /// Adds a number, which may be complex, for kernels that support complex numbers.
    void complex_param(Scalar v) {
        if (!v.is_complex()) return param(v);
        const auto z = v.to<Complex<double>>();
        double* parts = parts_[num_complex_++];
        parts[0] = z.re;
        parts[1] = z.im;
        next(Param::Kind::Complex).parts = parts;
    }
    void param(IntList v) {
        Param& p = next(Param::Kind::Ints);
        p.ints = v.data();
        p.length = static_cast<uint32_t>(v.size());
    }
    void param(std::string_view v) {
        Param& p = next(Param::Kind::String);
        p.string = v.data();
        p.length = static_cast<uint32_t>(v.size());
    }
    /// Adds an optional number. For an absent number, the kernel receives 0.
    template <class T>
    void param(const std::optional<T>& v) {
        v ? param(*v) : void(next(Param::Kind::None).integer = 0);
    }

    /// Reserves a random stream for the kernel.
    void random(Generator* generator) {
        Generator& drawn = generator ? *generator : default_generator();
        key_ = drawn.reserve();
        if (drawn.stream() == RandomStream::Torch) [[unlikely]]
            context_.draw_from(&drawn);
    }

    /// Runs the device's check of the input values, before anything is written.
    void check_values();
    /// Returns the number of results of an operator whose kind is `dynamic`. Raises NotImplementedError on the meta
    /// device.
    int64_t count();
    /// Marks an input that the kernel writes. The tensor must be writable. Its version is increased before the kernel
    /// runs.
    void write(const Tensor& t) {
        if (!t.defined()) return;
        check(t);
        write_checked(t);
    }
    void write(TensorList list) {
        for (const Tensor& t : list)
            if (t.defined()) check(t);
        for (const Tensor& t : list)
            if (t.defined()) write_checked(t);
    }

    Results run(const Outputs& outputs);
    /// Runs a kernel whose only output is the memory of a row-major input. `write` must have been called for this
    /// input.
    void run_over(const Tensor& input);

  private:
    static constexpr View kAbsent{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};
    static constexpr int kInline = 16;

    void push(const View& view) {
        if (count_ == capacity_) [[unlikely]]
            grow();
        views_[count_++] = view;
    }
    Param& next(Param::Kind kind) {
        Param& p = params_[num_params_++];
        p.kind = kind;
        p.length = 0;
        return p;
    }
    // Checks that all inputs are on one device.
    void check_device(const Tensor& t) {
        if (t.device() == Device{} && device_ == Device{}) [[likely]] {
            has_device_ = true;
        } else {
            check_other_device(t);
        }
    }
    void check_other_device(const Tensor& t);
    void check(const Tensor& t) const;
    void write_checked(const Tensor& t) {
        if (device_.type != DeviceType::CPU) [[unlikely]]
            note_written(t);
        begin_write(op_, t);
    }
    void note_written(const Tensor& t);
    void call(int num_outputs);
    // Calls the kernel with the outputs, which are stored before the inputs.
    void call(const std::atomic<KernelFn>* slots, int num_outputs);
    void grow();
    [[noreturn, gnu::cold]] void fail_device(const Tensor& t) const;

    const char* op_;
    KernelSlots& slots_;
    Device device_{};
    bool has_device_ = false;
    PhiloxKey key_{};
    std::unique_ptr<std::vector<const void*>> written_;  // start addresses of written inputs, on a device
    int count_ = Outputs::kMax, capacity_ = Outputs::kMax + kInline, num_params_ = 0;
    View* views_ = inline_views_;  // the first kMax are reserved for outputs
    View inline_views_[Outputs::kMax + kInline];
    std::unique_ptr<View[]> more_;
    Param params_[kInline];
    double parts_[2][2];
    int num_complex_ = 0;
    CpuContext context_;
};

}  // namespace rushlight
