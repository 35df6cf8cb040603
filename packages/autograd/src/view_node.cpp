#include "view_node.h"

#include <algorithm>

#include "rushlight/ops/add.h"
#include "rushlight/ops/as_strided.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/view_as_complex.h"
#include "rushlight/ops/zero_.h"

namespace rushlight::autograd {
namespace {

bool overlaps_itself(const Geometry& g) {
    for (size_t d = 0; d < g.sizes.size(); ++d)
        if (g.sizes[d] > 1 && g.strides[d] == 0) return true;
    // In the order of strides, the stride of each dimension must exceed the extent of all dimensions with smaller
    // strides.
    std::vector<std::pair<int64_t, int64_t>> dims;
    for (size_t d = 0; d < g.sizes.size(); ++d)
        if (g.sizes[d] > 1) dims.emplace_back(g.strides[d], g.sizes[d]);
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;
    for (auto [stride, size] : dims) {
        if (stride <= reach) return true;
        reach += stride * (size - 1);
    }
    return false;
}

// Adds `grad` to a view whose elements may share memory. The longest dimension whose stride is not 0 is added by one
// operator. Along all other dimensions, the slices are added one after the other.
void add_windows(const Tensor& view, const Tensor& grad) {
    int64_t kept = -1;
    for (int64_t d = 0; d < view.dim(); ++d)
        if (view.strides()[d] != 0 && (kept < 0 || view.sizes()[d] > view.sizes()[kept])) kept = d;
    int64_t slice = view.dim() > 0 && kept == 0 ? 1 : 0;
    if (view.dim() == (kept < 0 ? 0 : 1)) {
        ops::add_(view, grad);
        return;
    }
    for (int64_t i = 0; i < view.sizes()[slice]; ++i)
        add_windows(ops::select(view, slice, i), ops::select(grad, slice, i));
}

// Returns the offset behind the last element; 0 if there are no elements.
int64_t reach(const Geometry& g) {
    if (std::find(g.sizes.begin(), g.sizes.end(), 0) != g.sizes.end()) return 0;
    int64_t last = g.offset;
    for (size_t d = 0; d < g.sizes.size(); ++d) last += (g.sizes[d] - 1) * g.strides[d];
    return last + 1;
}

// Writes `values` to the elements of `view`. Values that share a location are summed.
void put(const Tensor& view, const Tensor& values, const Geometry& g) {
    if (overlaps_itself(g)) add_windows(view, values);
    else ops::copy_(view, values, false);
}

// Converts the geometry of complex numbers to the geometry of pairs of real numbers.
void make_real(Geometry& g) {
    for (int64_t& stride : g.strides) stride *= 2;
    g.offset *= 2;
    g.sizes.push_back(2);
    g.strides.push_back(1);
}

}  // namespace

Window::Window(const Tensor& r, const Tensor& v) : root_(r.impl()->geometry()), view_(v.impl()->geometry()) {
    if (is_complex(r.dtype()) != is_complex(v.dtype())) {
        root_complex_ = is_complex(r.dtype());
        view_complex_ = !root_complex_;
        make_real(root_complex_ ? root_ : view_);
    }
    const int64_t first = std::min(view_.offset, root_.offset);  // a view may begin before its root
    view_.offset -= first;
    root_.offset -= first;
}

bool Window::seen_alike(const Tensor& t) const {
    return !root_complex_ && !view_complex_ && std::ranges::equal(t.strides(), root_.strides) &&
           root_.offset == 0 && reach(view_) <= reach(root_);
}

DType Window::flat_dtype(const Tensor& grad) const {
    return root_complex_ || view_complex_ ? real_dtype(grad.dtype()) : grad.dtype();
}

Tensor Window::fresh(const Tensor& grad) const {
    const int64_t extent = std::max({int64_t{1}, reach(root_), reach(view_)});
    const DType dtype = flat_dtype(grad);
    // If gradients are batched, each example gets a buffer. An operator allocates it, so that a trace records the
    // allocation.
    if (is_batched(grad) || is_tracing()) return ops::new_zeros(grad, IntList(&extent, 1), dtype);
    Tensor flat = make_tensor(IntList(&extent, 1), dtype, grad.device());
    ops::zero_(flat);
    return flat;
}

// Returns, for each location of the buffer, the number of the root's elements at this location, but at least 1.
// Undefined if no two elements of the root share a location.
Tensor Window::shares(const Tensor& flat) const {
    if (!overlaps_itself(root_)) return {};
    const Tensor numbers = ops::new_zeros(flat, flat.sizes(), real_dtype(flat.dtype()));
    const Tensor all = seen(numbers, root_, false);
    add_windows(all, ops::ones_like(all));
    return ops::clamp_min(numbers, Scalar(1));
}

// Returns the gradient in the dtype in which gradients that share a location are added, so that a sum in half
// precision is rounded only once.
Tensor Window::widened(const Tensor& grad) const {
    const DType wide = compute_dtype(grad.dtype());
    const bool adds = wide != grad.dtype() && (overlaps_itself(root_) || overlaps_itself(view_));
    return adds ? ops::to(grad, wide) : grad;
}

Tensor Window::shared_out(const Tensor& flat, DType dtype) const {
    const Tensor count = shares(flat);
    const Tensor each = count.defined() ? ops::div(flat, count) : flat;
    return each.dtype() == dtype ? each : ops::to(each, dtype);
}

Tensor Window::filled(const Tensor& values) const {
    const Tensor wide = widened(values);
    Tensor flat = fresh(wide);
    put(whole(flat), wide, root_);
    return shared_out(flat, flat_dtype(values));
}

Tensor Window::gathered(const Tensor& grad) const {
    const Tensor wide = widened(grad);
    Tensor flat = fresh(wide);
    put(part(flat), wide, view_);
    return shared_out(flat, flat_dtype(grad));
}

Tensor Window::seen(const Tensor& flat, const Geometry& g, bool as_complex) {
    Tensor t = ops::as_strided(flat, g.sizes, g.strides, g.offset);
    return as_complex ? ops::view_as_complex(t) : t;
}

void ViewOfRoot::apply(std::span<Tensor> grads, std::span<Tensor> out) {
    const Tensor& grad = grads[0];
    if (!grad.defined()) return;
    out[0] = window_.whole(window_.gathered(grad));
}

WriteThroughView::WriteThroughView(const Tensor& root, const Tensor& view, Ref<Node> write, uint32_t index)
    : Node("CopySlices", 1, static_cast<uint32_t>(write->edges().size()) + 1),
      window_(root, view),
      write_(std::move(write)),
      index_(index) {
    // Edge 0 leads to the old root. The other edges are the operator's edges, without its edge to the view's old value,
    // which is a part of the old root.
    edges()[0] = gradient_edge(root);
    for (uint32_t i = 0; i < write_->edges().size(); ++i)
        if (i != 0) edges()[i + 1] = write_->edges()[i];
}

void WriteThroughView::apply(std::span<Tensor> grads, std::span<Tensor> out) {
    const Tensor& grad = grads[0];
    if (!grad.defined()) return;
    Tensor flat = window_.fresh(grad);
    Tensor whole = window_.whole(flat);
    ops::copy_(whole, grad, false);
    Tensor part = window_.part(flat);
    std::vector<Tensor> given(write_->num_results()), got(write_->edges().size());
    given[index_] = ops::clone(part, std::nullopt);
    {
        // The edges of the operator have indices that are smaller by one than in this node. The gradient of the
        // view's old value is always needed.
        struct Restore {
            uint64_t idle = detail::idle_edges;
            WriteThroughView* before = running;
            ~Restore() {
                detail::idle_edges = idle;
                running = before;
            }
        } restore;
        detail::idle_edges = (restore.idle >> 1) & ~uint64_t{1};
        running = this;
        write_->apply(given, got);
    }
    if (got[0].defined()) ops::copy_(part, got[0], false);
    else ops::zero_(part);
    out[0] = whole;
    for (size_t i = 1; i < got.size(); ++i) out[i + 1] = std::move(got[i]);
}

constinit thread_local WriteThroughView* WriteThroughView::running = nullptr;

Ref<Node> WriteThroughView::history_of_result(const Node* write) {
    if (!running || running->write_.get() != write) return nullptr;
    auto view = Ref<Node>::adopt(new ViewOfRoot(running->window_));
    view->edges()[0] = {Ref<Node>::share(running), 0};
    return view;
}

void WriteThroughView::release_saved() {
    Node::release_saved();
    write_->release_saved();
}

}  // namespace rushlight::autograd
