// The part of the plug-in that plans convolutions, without a device, for tests that call it with cuDNN itself.
#include <cstdio>

#include "cuda/convolution_plans.h"
#include "cuda/driver.h"

namespace rushlight::cuda {

const Driver driver = {};  // planning queues nothing
void use_device(int32_t) {}

}  // namespace rushlight::cuda

/// Plans a form on the device that a JSON text describes. `numbers` are the members of ConvolutionForm in their order, and
/// `offer` receives those of ConvolutionOffer. Returns 0, or 1 after writing an error to `text`.
extern "C" [[gnu::visibility("default")]] int plan(const int64_t* numbers, const char* device, int64_t* offer,
                                                   char* text, size_t size) {
    using namespace rushlight::cuda;
    try {
        const auto next = [&numbers] { return *numbers++; };
        ConvolutionForm form = {};
        form.kind = static_cast<ConvolutionForm::Kind>(next());
        form.dtype = static_cast<rushlight::DType>(next());
        form.dims = static_cast<int32_t>(next());
        form.channels_last = next() != 0;
        form.tf32 = next() != 0;
        form.deterministic = next() != 0;
        form.alignment = static_cast<int32_t>(next());
        for (auto* sizes : {&form.x, &form.w, &form.y})
            for (int64_t& entry : *sizes) entry = next();
        for (auto* entries : {&form.stride, &form.padding, &form.dilation})
            for (int64_t& entry : *entries) entry = next();
        const ConvolutionOffer made = offered_by_library(form, device);
        for (const int64_t count :
             {made.engines, made.configurations, made.permitted, made.plans, made.workspace})
            *offer++ = count;
        return 0;
    } catch (const Failure& failure) {
        std::snprintf(text, size, "%s", failure.text.c_str());
        return 1;
    }
}
