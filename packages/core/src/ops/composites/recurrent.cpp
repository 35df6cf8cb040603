// Recurrent layers. The products with the input are computed for all steps at once. Each step is then one more product and
// one pass over the gates. See Note [Differentiable composites].
#include <optional>

#include "bodies/recurrent.h"
#include "ops/differentiated.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_gru_gates.h"
#include "rushlight/ops/_gru_gates_backward.h"
#include "rushlight/ops/_lstm_gates.h"
#include "rushlight/ops/_lstm_gates_backward.h"
#include "rushlight/ops/_lstm_layer.h"
#include "rushlight/ops/_lstm_layer_backward.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/addmm.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/chunk.h"
#include "rushlight/ops/dropout.h"
#include "rushlight/ops/linear.h"
#include "rushlight/ops/lstm_gates_backward.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/relu.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sigmoid.h"
#include "rushlight/ops/split_with_sizes.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/tanh.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/random.h"

namespace rushlight::composites {
namespace {

enum class Cell { Tanh, Relu, Lstm, Gru };

const char* name_of(Cell cell) {
    constexpr const char* kNames[] = {"rnn_tanh", "rnn_relu", "lstm", "gru"};
    return kNames[static_cast<int>(cell)];
}
int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

// The hidden state, and the cell state of an LSTM.
struct State {
    Tensor h, c;

    State rows(int64_t first, int64_t count) const {
        return {ops::narrow(h, 0, first, count), c.defined() ? ops::narrow(c, 0, first, count) : c};
    }
    State followed_by(const State& other) const {
        return {ops::cat(std::vector<Tensor>{h, other.h}),
                c.defined() ? ops::cat(std::vector<Tensor>{c, other.c}) : c};
    }
};

struct Weights {
    Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

Tensor off_one(const Tensor& square_of) { return ops::sub(1, ops::mul(square_of, square_of)); }
Tensor sigmoid_derivative(const Tensor& sigmoid) { return ops::mul(sigmoid, ops::sub(1, sigmoid)); }

State lstm_state(const Tensor& gates, const Tensor& cell) {
    if (!differentiated_forward(gates, cell)) {
        auto [h, c] = ops::_lstm_gates(gates, cell);
        return {h, c};
    }
    auto g = ops::chunk(gates, 4, 1);
    Tensor c = ops::add(ops::mul(ops::sigmoid(g[1]), cell), ops::mul(ops::sigmoid(g[0]), ops::tanh(g[2])));
    return {ops::mul(ops::sigmoid(g[3]), ops::tanh(c)), c};
}

Tensor gru_state(const Tensor& from_input, const Tensor& from_hidden, const Tensor& hidden) {
    if (!differentiated_forward(from_input, from_hidden, hidden))
        return ops::_gru_gates(from_input, from_hidden, hidden);
    auto x = ops::chunk(from_input, 3, 1), h = ops::chunk(from_hidden, 3, 1);
    Tensor z = ops::sigmoid(ops::add(x[1], h[1]));
    Tensor m = ops::tanh(ops::add(x[2], ops::mul(ops::sigmoid(ops::add(x[0], h[0])), h[2])));
    return ops::add(ops::mul(ops::sub(1, z), m), ops::mul(z, hidden));
}

// Computes the input's contribution to the gates. Except in a GRU, the contributions of the input and of the state are
// simply added, so the bias of the state is added here, too.
Tensor from_input(Cell cell, const Tensor& input, const Weights& w) {
    Tensor bias = w.b_ih;
    if (cell != Cell::Gru && w.b_hh.defined()) bias = bias.defined() ? ops::add(bias, w.b_hh) : w.b_hh;
    return ops::linear(input, w.w_ih, bias);
}

State step(Cell cell, const Tensor& x, const State& s, const Weights& w) {
    if (cell == Cell::Gru) return {gru_state(x, ops::linear(s.h, w.w_hh, w.b_hh), s.h), Tensor()};
    Tensor gates = ops::addmm(x, s.h, ops::t(w.w_hh));
    if (cell == Cell::Tanh) return {ops::tanh(gates), Tensor()};
    if (cell == Cell::Relu) return {ops::relu(gates), Tensor()};
    State next = lstm_state(gates, s.c);
    if (w.w_hr.defined()) next.h = ops::linear(next.h, w.w_hr);
    return next;
}

void check_matrix(const char* op, const char* name, const Tensor& t, int64_t rows, int64_t columns) {
    RL_CHECK(t.dim() == 2 && t.size(0) == rows && t.size(1) == columns, throw_runtime,
             "%s(%s): needs shape (%lld, %lld), got %s", op, name, (long long)rows, (long long)columns,
             to_string(t.sizes()).c_str());
}

State one_cell(const char* op, Cell cell, const Tensor& input, const State& s, const Weights& w) {
    RL_CHECK(input.dim() == 2, throw_runtime, "%s(input): needs (batch, features), got shape %s", op,
             to_string(input.sizes()).c_str());
    RL_CHECK(s.h.dim() == 2, throw_runtime, "%s(hx): needs (batch, hidden), got shape %s", op,
             to_string(s.h.sizes()).c_str());
    const int64_t hidden = s.h.size(1);
    check_matrix(op, "hx", s.h, input.size(0), hidden);
    if (s.c.defined()) check_matrix(op, "hx", s.c, input.size(0), hidden);
    check_matrix(op, "w_ih", w.w_ih, gates_of(cell) * hidden, input.size(1));
    check_matrix(op, "w_hh", w.w_hh, gates_of(cell) * hidden, hidden);
    return step(cell, from_input(cell, input, w), s, w);
}

// For fewer rows, computing step by step costs less than packing the weight for the kernel that computes all steps.
constexpr int64_t kLeastRows = 32;

// Whether one kernel can compute all steps. All sequences, `x` (time, batch, gates), have the same length.
bool is_one_kernel(Cell cell, const Tensor& x, int64_t time, const State& s, const Weights& w) {
    const auto plain = [&](const Tensor& t) { return t.dtype() == x.dtype() && t.device() == x.device(); };
    const DeviceType device = x.device().type;
    return cell == Cell::Lstm && !w.w_hr.defined() && time > 1 && x.size(0) >= kLeastRows &&
           (x.dtype() == DType::Float32 || x.dtype() == DType::Float64) &&
           (device == DeviceType::CPU || device == DeviceType::CUDA) && plain(s.h) && plain(s.c) &&
           plain(w.w_hh) && !differentiated_forward(x, s.h, s.c, w.w_hh);
}

// Sequences ordered by time, the longest sequence first: step t holds the elements of the first sizes[t] sequences.
struct Steps {
    std::vector<int64_t> sizes, starts;

    void add(int64_t size) {
        starts.push_back(sizes.empty() ? 0 : starts.back() + sizes.back());
        sizes.push_back(size);
    }
    int64_t total() const { return starts.back() + sizes.back(); }
    bool are_equal() const { return sizes.front() == sizes.back(); }
};

struct Ran {
    Tensor output;
    State last;
};

// Runs one layer in one direction.
Ran run(Cell cell, const Tensor& data, const Steps& steps, const State& first, const Weights& w,
        bool backwards) {
    const int64_t count = static_cast<int64_t>(steps.sizes.size());
    const Tensor all = from_input(cell, data, w);
    if (steps.are_equal() && is_one_kernel(cell, all, count, first, w)) {
        const int64_t batch = steps.sizes[0], last = backwards ? 0 : count - 1;
        const int64_t apart[] = {count, batch, all.size(1)}, flat[] = {count * batch, first.h.size(1)};
        auto [output, cells, sums] =
            ops::_lstm_layer(ops::reshape(all, apart), first.h, first.c, w.w_hh, backwards);
        return {ops::reshape(output, flat), {ops::select(output, 0, last), ops::select(cells, 0, last)}};
    }
    // Split once, so that the gradients of the steps are joined once.
    const std::vector<Tensor> x = ops::split_with_sizes(all, steps.sizes, 0);
    std::vector<Tensor> outputs(static_cast<size_t>(count));
    State s = backwards ? first.rows(0, steps.sizes.back()) : first;
    // The final states of the sequences that have ended, in the order of the batch.
    std::optional<State> done;
    for (int64_t k = 0; k < count; ++k) {
        const auto t = static_cast<size_t>(backwards ? count - 1 - k : k);
        const int64_t size = steps.sizes[t], have = s.h.size(0);
        if (size < have) {
            State ended = s.rows(size, have - size);
            done = done ? ended.followed_by(*done) : ended;
            s = s.rows(0, size);
        } else if (size > have) {
            // In the backward direction, shorter sequences start later, with their initial states.
            s = s.followed_by(first.rows(have, size - have));
        }
        s = step(cell, x[t], s, w);
        outputs[t] = s.h;
    }
    return {ops::cat(outputs), done ? s.followed_by(*done) : s};
}

struct Network {
    Cell cell;
    bool has_biases, train, bidirectional;
    int64_t num_layers;
    double dropout;

    int64_t directions() const { return bidirectional ? 2 : 1; }

    struct Result {
        Tensor output, h, c;
    };

    Result operator()(Tensor data, const Steps& steps, const State& hx, TensorList params) const {
        const auto total = static_cast<size_t>(num_layers * directions());
        const size_t each = check(data, hx, params);
        const DrawScope scope(nullptr);  // of the dropout between layers
        std::vector<Tensor> h, c;
        for (size_t run_of = 0; run_of < total;) {
            std::vector<Tensor> outputs;
            for (int64_t d = 0; d < directions(); ++d, ++run_of) {
                const auto i = static_cast<int64_t>(run_of);
                const State first{ops::select(hx.h, 0, i), hx.c.defined() ? ops::select(hx.c, 0, i) : hx.c};
                Ran ran = run(cell, data, steps, first, weights(params.subspan(run_of * each, each)), d == 1);
                outputs.push_back(ran.output);
                h.push_back(ran.last.h);
                if (hx.c.defined()) c.push_back(ran.last.c);
            }
            data = outputs.size() == 1 ? outputs[0] : ops::cat(outputs, 1);
            if (train && dropout > 0 && run_of < total) data = ops::dropout(data, dropout, true);
        }
        return {data, ops::stack(h), c.empty() ? Tensor() : ops::stack(c)};
    }

  private:
    // Checks the arguments and returns the number of parameters of each layer and direction.
    size_t check(const Tensor& data, const State& hx, TensorList params) const {
        const char* op = name_of(cell);
        const auto given = static_cast<int64_t>(params.size());
        RL_CHECK(num_layers > 0, throw_runtime, "%s(num_layers): needs at least one layer, got %lld", op,
                 (long long)num_layers);
        RL_CHECK(num_layers <= given, throw_runtime,
                 "%s(params): %lld layers need at least one tensor each, got %lld tensors", op,
                 (long long)num_layers, (long long)given);
        const int64_t total = num_layers * directions(), least = has_biases ? 4 : 2;
        const bool projected = cell == Cell::Lstm && given == total * (least + 1);
        RL_CHECK(
            given == total * least || projected, throw_runtime,
            "%s(params): must contain %lld tensors for each layer and direction, %lld tensors in total, got %lld",
            op, (long long)least, (long long)(total * least), (long long)given);
        RL_CHECK(hx.h.dim() == 3 && hx.h.size(0) == total, throw_runtime,
                 "%s(hx): needs shape (%lld, batch, hidden), one state per layer and direction, got %s", op,
                 (long long)total, to_string(hx.h.sizes()).c_str());
        RL_CHECK(
            !hx.c.defined() || (hx.c.dim() == 3 && hx.c.size(0) == total && hx.c.size(1) == hx.h.size(1)),
            throw_runtime, "%s(hx): cell states of shape %s do not match hidden states of shape %s", op,
            to_string(hx.c.defined() ? hx.c.sizes() : IntList()).c_str(), to_string(hx.h.sizes()).c_str());
        const int64_t width = (hx.c.defined() ? hx.c : hx.h).size(2), out = hx.h.size(2);
        const size_t each = static_cast<size_t>(least + projected);
        RL_CHECK(projected || width == out, throw_runtime,
                 "%s(hx): hidden states have %lld features and cell states have %lld, but only an LSTM with "
                 "a projection allows a difference",
                 op, (long long)out, (long long)width);
        for (const Tensor& t : params)
            RL_CHECK(t.dtype() == params[0].dtype(), throw_runtime,
                     "%s(params): must have the same dtype, got %s and %s", op, name(params[0].dtype()),
                     name(t.dtype()));
        int64_t in = data.size(1);
        for (int64_t i = 0; i < total; ++i) {
            if (i > 0 && i % directions() == 0) in = out * directions();
            const Tensor* w = &params[static_cast<size_t>(i) * each];
            check_matrix(op, "params", w[0], gates_of(cell) * width, in);
            check_matrix(op, "params", w[1], gates_of(cell) * width, out);
            if (projected) check_matrix(op, "params", w[each - 1], out, width);
        }
        return each;
    }

    Weights weights(TensorList list) const {
        Weights w{list[0], list[1], {}, {}, {}};
        if (has_biases) w.b_ih = list[2], w.b_hh = list[3];
        if (list.size() % 2 == 1) w.w_hr = list.back();
        return w;
    }
};

Network::Result padded(const Network& net, const Tensor& input, const State& hx, TensorList params,
                       bool batch_first) {
    const char* op = name_of(net.cell);
    RL_CHECK(input.dim() == 3, throw_runtime, "%s(input): needs three dimensions, got shape %s", op,
             to_string(input.sizes()).c_str());
    Tensor x = batch_first ? ops::transpose(input, 0, 1) : input;
    const int64_t time = x.size(0), batch = x.size(1);
    RL_CHECK(time > 0, throw_runtime, "%s(input): needs at least one time step, got shape %s", op,
             to_string(input.sizes()).c_str());
    RL_CHECK(hx.h.dim() == 3 && hx.h.size(1) == batch, throw_runtime,
             "%s(hx): needs a state for each of %lld sequences, got shape %s", op, (long long)batch,
             to_string(hx.h.sizes()).c_str());
    Steps steps;
    for (int64_t t = 0; t < time; ++t) steps.add(batch);
    const int64_t flat[] = {time * batch, x.size(2)};
    Network::Result r = net(ops::reshape(x, flat), steps, hx, params);
    const int64_t full[] = {time, batch, r.output.size(1)};
    r.output = ops::reshape(r.output, full);
    if (batch_first) r.output = ops::transpose(r.output, 0, 1);
    return r;
}

Network::Result packed(const Network& net, const Tensor& data, const Tensor& batch_sizes, const State& hx,
                       TensorList params) {
    const char* op = name_of(net.cell);
    RL_CHECK(data.dim() == 2, throw_runtime, "%s(data): needs two dimensions, got shape %s", op,
             to_string(data.sizes()).c_str());
    RL_CHECK(
        batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::Int64 && batch_sizes.numel() > 0 &&
            batch_sizes.device().type == DeviceType::CPU,
        throw_runtime,
        "%s(batch_sizes): must be a non-empty vector of int64 on the CPU, got shape %s of dtype %s on %s", op,
        to_string(batch_sizes.sizes()).c_str(), name(batch_sizes.dtype()),
        name(batch_sizes.device()).c_str());
    Steps steps;
    require_values(op, batch_sizes);
    const auto view = batch_sizes.impl()->view();
    for (int64_t t = 0; t < batch_sizes.numel(); ++t) {
        const int64_t size = view.as<int64_t>()[t * view.stride(0)];
        RL_CHECK(size > 0 && size <= data.size(0), throw_runtime,
                 "%s(batch_sizes): entry %lld must be from 1 to %lld, the number of rows of data, got %lld",
                 op, (long long)t, (long long)data.size(0), (long long)size);
        steps.add(size);
    }
    for (size_t t = 0; t < steps.sizes.size(); ++t)
        RL_CHECK(steps.sizes[t] > 0 && (t == 0 || steps.sizes[t] <= steps.sizes[t - 1]), throw_runtime,
                 "%s(batch_sizes): must be positive and must not increase, but entry %zu is %lld", op, t,
                 (long long)steps.sizes[t]);
    RL_CHECK(
        steps.total() == data.size(0), throw_runtime,
        "%s(batch_sizes): must add up to the number of rows of data, but the sum is %lld, and data has %lld rows",
        op, (long long)steps.total(), (long long)data.size(0));
    RL_CHECK(hx.h.dim() == 3 && hx.h.size(1) == steps.sizes[0], throw_runtime,
             "%s(hx): needs a state for each of %lld sequences, got shape %s", op, (long long)steps.sizes[0],
             to_string(hx.h.sizes()).c_str());
    return net(data, steps, hx, params);
}

State lstm_states(const char* op, TensorList hx) {
    RL_CHECK(hx.size() == 2, throw_runtime, "%s(hx): needs a hidden and a cell state, got %zu tensors", op,
             hx.size());
    return {hx[0], hx[1]};
}

}  // namespace

Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih, const Tensor& b_hh) {
    return one_cell("rnn_tanh_cell", Cell::Tanh, input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih, const Tensor& b_hh) {
    return one_cell("rnn_relu_cell", Cell::Relu, input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                const Tensor& b_ih, const Tensor& b_hh) {
    return one_cell("gru_cell", Cell::Gru, input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
    State s =
        one_cell("lstm_cell", Cell::Lstm, input, lstm_states("lstm_cell", hx), {w_ih, w_hh, b_ih, b_hh, {}});
    return {s.h, s.c};
}

std::tuple<Tensor, Tensor> lstm_gates_backward(const Tensor& grad_hidden, const Tensor& grad_cell,
                                               const Tensor& gates, const Tensor& cell,
                                               const Tensor& next_cell) {
    if (!differentiated(grad_hidden, grad_cell, gates, cell, next_cell))
        return ops::_lstm_gates_backward(grad_hidden, grad_cell, gates, cell, next_cell);
    auto g = ops::chunk(gates, 4, 1);
    Tensor i = ops::sigmoid(g[0]), f = ops::sigmoid(g[1]), m = ops::tanh(g[2]), o = ops::sigmoid(g[3]),
           c = ops::tanh(next_cell);
    Tensor grad = ops::add(grad_cell, ops::mul(ops::mul(grad_hidden, o), off_one(c)));
    return {ops::cat(std::vector<Tensor>{ops::mul(ops::mul(grad, m), sigmoid_derivative(i)),
                                         ops::mul(ops::mul(grad, cell), sigmoid_derivative(f)),
                                         ops::mul(ops::mul(grad, i), off_one(m)),
                                         ops::mul(ops::mul(grad_hidden, c), sigmoid_derivative(o))},
                     1),
            ops::mul(grad, f)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstm_layer_backward(const Tensor& grad_output,
                                                               const Tensor& grad_cells,
                                                               const Tensor& grad_sums, const Tensor& hidden,
                                                               const Tensor& cell, const Tensor& weight,
                                                               const Tensor& output, const Tensor& cells,
                                                               const Tensor& sums, bool backwards) {
    if (!differentiated(grad_output, grad_cells, grad_sums, hidden, cell, weight, output, cells, sums))
        return ops::_lstm_layer_backward(grad_output, grad_cells, grad_sums, hidden, cell, weight, output,
                                         cells, sums, backwards);
    const int64_t count = output.size(0), step = backwards ? -1 : 1, first = backwards ? count - 1 : 0;
    if (count == 0) return {sums, ops::mul(hidden, 0), ops::mul(cell, 0), ops::mul(weight, 0)};
    std::vector<Tensor> grad_gates(static_cast<size_t>(count));
    Tensor grad_h, grad_c, grad_weight;
    for (int64_t k = count - 1; k >= 0; --k) {
        const int64_t t = first + k * step;
        Tensor dh = ops::select(grad_output, 0, t), dc = ops::select(grad_cells, 0, t);
        if (grad_h.defined()) dh = ops::add(dh, grad_h), dc = ops::add(dc, grad_c);
        const Tensor before = k == 0 ? hidden : ops::select(output, 0, t - step);
        auto [from_states, to_cell] = ops::lstm_gates_backward(
            dh, dc, ops::select(sums, 0, t), k == 0 ? cell : ops::select(cells, 0, t - step),
            ops::select(cells, 0, t));
        Tensor gates = ops::add(from_states, ops::select(grad_sums, 0, t));
        grad_h = ops::matmul(gates, weight);
        grad_c = to_cell;
        Tensor product = ops::matmul(ops::t(gates), before);
        grad_weight = grad_weight.defined() ? ops::add(grad_weight, product) : product;
        grad_gates[static_cast<size_t>(t)] = std::move(gates);
    }
    return {ops::stack(grad_gates), grad_h, grad_c, grad_weight};
}

std::tuple<Tensor, Tensor, Tensor> gru_gates_backward(const Tensor& grad, const Tensor& from_input,
                                                      const Tensor& from_hidden, const Tensor& hidden) {
    if (!differentiated(grad, from_input, from_hidden, hidden))
        return ops::_gru_gates_backward(grad, from_input, from_hidden, hidden);
    auto x = ops::chunk(from_input, 3, 1), h = ops::chunk(from_hidden, 3, 1);
    Tensor r = ops::sigmoid(ops::add(x[0], h[0])), z = ops::sigmoid(ops::add(x[1], h[1])),
           m = ops::tanh(ops::add(x[2], ops::mul(r, h[2])));
    Tensor dm = ops::mul(ops::mul(grad, ops::sub(1, z)), off_one(m)),
           dz = ops::mul(ops::mul(grad, ops::sub(hidden, m)), sigmoid_derivative(z)),
           dr = ops::mul(ops::mul(dm, h[2]), sigmoid_derivative(r));
    return {ops::cat(std::vector<Tensor>{dr, dz, dm}, 1),
            ops::cat(std::vector<Tensor>{dr, dz, ops::mul(dm, r)}, 1), ops::mul(grad, z)};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout, bool train,
                                        bool bidirectional, bool batch_first) {
    auto r = padded({Cell::Lstm, has_biases, train, bidirectional, num_layers, dropout}, input,
                    lstm_states("lstm", hx), params, batch_first);
    return {r.output, r.h, r.c};
}
std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes, TensorList hx,
                                             TensorList params, bool has_biases, int64_t num_layers,
                                             double dropout, bool train, bool bidirectional) {
    auto r = packed({Cell::Lstm, has_biases, train, bidirectional, num_layers, dropout}, data, batch_sizes,
                    lstm_states("lstm", hx), params);
    return {r.output, r.h, r.c};
}

#define RL_PLAIN_NETWORK(function, cell)                                                                     \
    std::tuple<Tensor, Tensor> function(const Tensor& input, const Tensor& hx, TensorList params,            \
                                        bool has_biases, int64_t num_layers, double dropout, bool train,     \
                                        bool bidirectional, bool batch_first) {                              \
        auto r = padded({cell, has_biases, train, bidirectional, num_layers, dropout}, input, {hx, {}},      \
                        params, batch_first);                                                                \
        return {r.output, r.h};                                                                              \
    }                                                                                                        \
    std::tuple<Tensor, Tensor> function##_data(                                                              \
        const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases, \
        int64_t num_layers, double dropout, bool train, bool bidirectional) {                                \
        auto r = packed({cell, has_biases, train, bidirectional, num_layers, dropout}, data, batch_sizes,    \
                        {hx, {}}, params);                                                                   \
        return {r.output, r.h};                                                                              \
    }
RL_PLAIN_NETWORK(gru, Cell::Gru)
RL_PLAIN_NETWORK(rnn_tanh, Cell::Tanh)
RL_PLAIN_NETWORK(rnn_relu, Cell::Relu)
#undef RL_PLAIN_NETWORK

}  // namespace rushlight::composites
