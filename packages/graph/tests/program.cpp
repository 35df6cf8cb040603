// A C++ program: captures a function, then runs a model.
#include <cstdio>

#include "rushlight/graph/capture.h"
#include "rushlight/graph/program.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/ones.h"

namespace ops = rushlight::ops;
using namespace rushlight::graph;

namespace {

bool captures() {
    const int64_t sizes[] = {2, 3};
    const rushlight::Tensor x = ops::ones(sizes);
    Capture region({{"x", x}}, {});
    region.start();
    const rushlight::Tensor y = ops::add(ops::add(x, 1), x);
    region.stop();
    const Program program = region.finish(rushlight::TensorList(&y, 1), {});
    const std::vector<rushlight::Tensor> results = program.run(rushlight::TensorList(&x, 1));
    return program.graph().nodes.size() == 2 && *results[0].data<float>() == 3;
}

}  // namespace

int main(int count, char** words) {
    if (count != 2 || !captures()) return 2;
    const Program program = Program::load(words[1]);
    std::printf("%s\n", program.graph().operators[0].name.c_str());
    const int64_t sizes[] = {2, 3};
    const rushlight::Tensor x = ops::ones(sizes);
    const std::vector<rushlight::Tensor> results = program.run(rushlight::TensorList(&x, 1));
    for (int i = 0; i < 4; ++i) std::printf("%a\n", static_cast<double>(results[0].data<float>()[i]));
    try {
        program.run({});
    } catch (const rushlight::Error& error) { return error.kind() == rushlight::ErrorKind::Value ? 0 : 1; }
    return 1;
}
