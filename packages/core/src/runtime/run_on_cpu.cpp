#include "runtime/run_on_cpu.h"

#include <vector>

#include "runtime/cpu_context.h"

namespace rushlight {

void run_on_cpu(KernelFn before, KernelFn kernel, const KernelArgs& args, PhiloxKey random) {
    CpuContext context;
    KernelArgs complete = args;
    complete.context = context.get(random);
    if (before) {
        int64_t count = 0;
        std::vector<View> views{{&count, nullptr, nullptr, 1, 0, DType::Int64, 1}};
        views.insert(views.end(), args.tensors + args.num_outputs,
                     args.tensors + args.num_outputs + args.num_inputs);
        KernelArgs first = complete;
        first.num_outputs = 1;
        first.tensors = views.data();
        before(first);
    }
    kernel(complete);
}

}  // namespace rushlight
