// Trains a linear regression in C++. The program does not link or run Python.
#include <cmath>
#include <cstdio>
#include <limits>

#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/function.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/mm.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/zero_.h"
#include "rushlight/ops/zeros.h"

namespace rl = rushlight;
namespace ops = rushlight::ops;

namespace {

constexpr int64_t kSamples = 256;
constexpr int64_t kFeatures = 3;
constexpr float kWeight[kFeatures] = {1.5f, -2.0f, 0.5f};
constexpr float kBias = 0.25f;

/// Returns values in [-1, 1) from a linear congruential generator, so that the run is the same on all machines.
float next_value() {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
}

constexpr int64_t kSampleShape[] = {kSamples, kFeatures};
constexpr int64_t kTargetShape[] = {kSamples, 1};
constexpr int64_t kWeightShape[] = {kFeatures, 1};
constexpr int64_t kBiasShape[] = {1};

rl::Tensor parameter(rl::IntList shape) {
    rl::Tensor made = ops::zeros(shape, rl::DType::Float32);
    made.set_requires_grad(true);
    return made;
}

/// A custom operator with its derivative: x^2 * scale.
struct ScaledSquare : rl::autograd::Function<ScaledSquare> {
    static constexpr const char* name = "ScaledSquareBackward";
    static rl::Tensor forward(rl::autograd::Context& ctx, const rl::Tensor& x, double scale) {
        ctx.save({x});
        ctx.values["scale"] = scale;
        return ops::mul(ops::mul(x, x), scale);
    }
    static std::vector<rl::Tensor> backward(rl::autograd::Context& ctx, rl::TensorList gradients) {
        rl::Tensor x = ctx.saved()[0];
        return {ops::mul(gradients[0], ops::mul(x, 2 * *ctx.values["scale"].as<double>()))};
    }
};

/// A custom operator whose gradient has the wrong shape.
struct Wrong : rl::autograd::Function<Wrong> {
    static rl::Tensor forward(rl::autograd::Context&, const rl::Tensor& x) { return ops::mul(x, 2.0); }
    static std::vector<rl::Tensor> backward(rl::autograd::Context&, rl::TensorList gradients) {
        return {ops::sum(gradients[0])};
    }
};

/// Checks first and second derivatives of ScaledSquare, and the error of Wrong.
bool own_operators_work() {
    rl::Tensor x = ops::zeros(kWeightShape, rl::DType::Float32);
    for (int64_t i = 0; i < kFeatures; ++i) x.data<float>()[i] = kWeight[i];
    x.set_requires_grad(true);
    rl::Tensor y = ScaledSquare::apply(x, 3.0);
    rl::autograd::BackwardOptions options;
    options.create_graph = options.retain_graph = true;
    options.accumulate_grad = false;
    rl::Tensor ones = ops::zeros(kWeightShape, rl::DType::Float32);
    for (int64_t i = 0; i < kFeatures; ++i) ones.data<float>()[i] = 1;
    auto first = rl::autograd::run_backward(rl::TensorList(&y, 1), rl::TensorList(&ones, 1),
                                            rl::TensorList(&x, 1), options);
    auto second = rl::autograd::run_backward(first, rl::TensorList(&ones, 1), rl::TensorList(&x, 1), options);
    bool good = rl::autograd::grad_fn(y)->name() == "ScaledSquareBackward";
    for (int64_t i = 0; i < kFeatures; ++i)
        good = good && first[0].data<float>()[i] == 6 * kWeight[i] && second[0].data<float>()[i] == 6;
    try {
        rl::autograd::backward(Wrong::apply(x), ones);
        good = false;
    } catch (const rl::Error& error) {
        good = good && std::string(error.what()).find("of shape () for tensor 0 of shape (3, 1)") !=
                           std::string::npos;
    }
    std::puts(good ? "operators of its own are differentiated" : "an operator of its own went wrong");
    return good;
}

}  // namespace

int main() {
    rl::autograd::initialize();
    if (!own_operators_work()) return 1;

    rl::Tensor x = rl::make_tensor(kSampleShape, rl::DType::Float32);
    rl::Tensor y = rl::make_tensor(kTargetShape, rl::DType::Float32);
    for (int64_t i = 0; i < kSamples; ++i) {
        float target = kBias;
        for (int64_t j = 0; j < kFeatures; ++j) {
            float value = next_value();
            x.data<float>()[i * kFeatures + j] = value;
            target += kWeight[j] * value;
        }
        y.data<float>()[i] = target;
    }

    rl::Tensor weight = parameter(kWeightShape);
    rl::Tensor bias = parameter(kBiasShape);
    float loss = 0, reported = std::numeric_limits<float>::infinity();
    bool falling = true;
    for (int step = 0; step < 300; ++step) {
        rl::Tensor error = ops::sub(ops::add(ops::mm(x, weight), bias), y);
        rl::Tensor mean_square = ops::mean(ops::square(error));
        rl::autograd::backward(mean_square);
        loss = *mean_square.data<float>();
        if (step % 10 == 0 && step < 50) {
            std::printf("step %2d, loss %.3e\n", step, loss);
            falling = falling && loss < reported;
            reported = loss;
        }

        rl::GradMode off(false);
        for (const rl::Tensor& p : {weight, bias}) {
            ops::add_(p, p.grad(), -0.3);
            ops::zero_(p.grad());
        }
    }

    std::printf("loss %.2e, weight %.4f %.4f %.4f, bias %.4f\n", loss, weight.data<float>()[0],
                weight.data<float>()[1], weight.data<float>()[2], bias.data<float>()[0]);
    bool learnt = falling && loss < 1e-6f && std::fabs(bias.data<float>()[0] - kBias) < 1e-3f;
    for (int64_t j = 0; j < kFeatures; ++j)
        learnt = learnt && std::fabs(weight.data<float>()[j] - kWeight[j]) < 1e-3f;
    if (!learnt) std::puts("the regression did not find the values that made the data");
    return learnt ? 0 : 1;
}
