// The shared kernel "check", which raises the alarm if an element of its input is not as required.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

struct CheckElement {
    const char* data;
    DType dtype;
    int64_t size;
    Required required;
    Alarm alarm;

    __device__ void operator()(int64_t i) const {
        const auto value = converted<double>(data + i * size, dtype);
        if (required == Required::NotZero && value == 0) alarm.raise(Cause::DividesByZero);
        if (required == Required::NotNegative && !(value >= 0)) alarm.raise(Cause::NegativeOrNan);
        if (required == Required::Probability && !(value >= 0 && value <= 1))
            alarm.raise(Cause::BadProbability);
    }
};

}  // namespace

BackendStatus check_kernel(const KernelArgs* args) {
    return guarded([args] {
        const View& in = args->in(0);
        if (in.numel == 0) return;
        queue_of(*args);
        const bool direct = in.contiguous;
        const DType dtype = direct ? in.dtype : DType::Float64;
        const auto* data =
            direct ? in.as<char>() : reinterpret_cast<const char*>(dense<double>(args->context, in));
        queue_for_each(
            *args, in.numel,
            CheckElement{data, dtype, static_cast<int64_t>(itemsize(dtype)),
                         static_cast<Required>(args->params[0].as_int()), alarm_of(args->context)});
    });
}

}  // namespace rushlight::cuda
