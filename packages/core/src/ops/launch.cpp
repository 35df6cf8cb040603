#include "ops/launch.h"

#include "ops/copying.h"
#include "ops/cpu_kernel.h"
#include "ops/device_kernel.h"
#include "ops/outputs.h"
#include "rushlight/backend.h"
#include "rushlight/graphs.h"

namespace rushlight {

// Calls strides(sizes, result) for the outputs whose dimensions have the same order as those of `like`, on devices that
// support `formats`.
template <class Strides>
void Outputs::order(const Tensor& like, int which, uint32_t formats, const Strides& strides) {
    for (int i = 0; i < count_; ++i) {
        One& one = list_[i];
        if ((which != kAll && which != i) || one.ndim != like.dim() ||
            !takes_formats(one.device.type, formats))
            continue;
        one.strided = true;
        strides(sizes(i), one.strides);
    }
}

void Outputs::in_format_of(const Tensor& like, int which) {
    if (!like.defined()) return;
    if (format_of(like) == MemoryFormat::Contiguous) [[likely]]
        return;
    order(like, which, kTakesChannelsLast | kTakesChannelsLast3d, channels_last_strides);
}

void Outputs::in_order_of(const Tensor& like, int which) {
    if (!like.defined() || like.is_contiguous()) return;
    const int64_t* given = like.strides().data();
    // Only the CPU and the meta device support outputs in any order.
    const bool is_format = format_of(like) != MemoryFormat::Contiguous;
    const uint32_t formats = is_format ? kTakesChannelsLast | kTakesChannelsLast3d : ~uint32_t{0};
    order(like, which, formats,
          [&](IntList sizes, int64_t* strides) { strides_in_order(sizes, &given, 1, strides); });
}

Tensor Outputs::make_ordered(const One& one) {
    const auto n = static_cast<size_t>(one.ndim);
    return make_strided(IntList(one.sizes, n), IntList(one.strides, n), one.dtype, one.device);
}

void Launch::grow() {
    int capacity = 2 * capacity_;
    std::unique_ptr<View[]> larger(new View[static_cast<size_t>(capacity)]);
    std::copy_n(views_, count_, larger.get());
    more_ = std::move(larger);
    views_ = more_.get();
    capacity_ = capacity;
}

void Launch::check(const Tensor& t) const { check_writable(op_, t); }

void Launch::note_written(const Tensor& t) {
    if (!written_) written_ = std::make_unique<std::vector<const void*>>();
    written_->push_back(t.impl()->data());
}

void Launch::check_other_device(const Tensor& t) {
    if (has_device_ && t.device() != device_) fail_device(t);
    device_ = t.device();
    has_device_ = true;
    record_current_use(*t.impl()->storage());
}

void Launch::fail_device(const Tensor& t) const {
    throw_runtime("%s: all tensors must be on one device, found %s and %s", op_, name(device_).c_str(),
                  name(t.device()).c_str());
}

[[gnu::always_inline]] inline void Launch::call(const std::atomic<KernelFn>* slots, int num_outputs) {
    KernelArgs args{sizeof(KernelArgs),
                    static_cast<uint16_t>(num_outputs),
                    static_cast<uint16_t>(count_ - Outputs::kMax),
                    static_cast<uint16_t>(num_params_),
                    kNoDType,
                    kNoDType,
                    views_ + Outputs::kMax - num_outputs,
                    params_,
                    nullptr};
    if (device_.type == DeviceType::CPU) {
        args.context = context_.get(key_);
        call_cpu_kernel(slots[static_cast<int>(DeviceType::CPU)].load(std::memory_order_acquire), args);
    } else {
        KernelContext context{nullptr, key_, nullptr, nullptr};
        args.context = &context;
        call_on_device(op_, device_, slots_, slots == slots_.device ? KernelPart::Run : KernelPart::Before,
                       std::move(args), written_.get());
    }
}

void Launch::check_values() {
    if (device_.type == DeviceType::Meta) return;
    // If the device does not have this kernel, the values are not checked.
    if (slots_.before[static_cast<int>(device_.type)].load(std::memory_order_acquire)) call(slots_.before, 0);
}

int64_t Launch::count() {
    RL_CHECK(device_.type != DeviceType::Meta, throw_not_implemented,
             "%s: the shape of the result depends on values, which a meta tensor does not have", op_);
    int64_t count = 0;
    View& out = views_[Outputs::kMax - 1];
    if (device_.type == DeviceType::CPU) {
        out = {&count, nullptr, nullptr, 1, 0, DType::Int64, 1};
        call(slots_.before, 1);
        return count;
    }
    detail::refuse_in_capture(op_, device_, current_stream(device_));
    const Tensor there = make_tensor({}, DType::Int64, device_), here = make_tensor({}, DType::Int64);
    out = there.impl()->view();
    call(slots_.before, 1);
    copy_into(here, there);
    return *here.data<int64_t>();
}

Launch::Results Launch::run(const Outputs& outputs) {
    Results results;
    // The views of the outputs are stored directly before those of the inputs.
    const int num_outputs = outputs.size();
    View* first = views_ + Outputs::kMax - num_outputs;
    for (int i = 0; i < num_outputs; ++i) {
        results[i] = outputs.make(i);
        first[i] = results[i].defined() ? results[i].impl()->view() : kAbsent;
    }
    if (!has_device_ && num_outputs > 0 && results[0].defined()) device_ = results[0].device();
    call(num_outputs);
    return results;
}

void Launch::run_over(const Tensor& input) {
    views_[Outputs::kMax - 1] = input.impl()->view();
    call(1);
}

void Launch::call(int num_outputs) {
    if (device_.type == DeviceType::Meta) return;
    RL_CHECK(count_ - Outputs::kMax <= UINT16_MAX, throw_runtime, "%s: more than %d tensors in one call", op_,
             UINT16_MAX);
    call(slots_.device, num_outputs);
}

}  // namespace rushlight
