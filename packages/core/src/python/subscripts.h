// The items of an index expression, parsed once for reading and writing.
#pragma once

#include <vector>

#include "ops/views.h"
#include "python/python.h"

namespace rushlight::python {

struct IndexItem {
    enum class Kind : uint8_t { Int, Slice, None, Ellipsis, Bool, Tensor };
    Kind kind;
    int64_t value;     // Int: the number; Bool: 0 or 1; Tensor: its position in IndexExpression::tensors
    PyObject* object;  // Slice: borrowed from the caller
};

/// The parsed items of tensor[a, b, ...]. Memory is allocated only if there are tensors among the indices.
class IndexExpression {
  public:
    static constexpr int kMaxItems = 2 * kMaxDims;

    explicit IndexExpression(PyObject* index);

    int size() const { return size_; }
    const IndexItem& operator[](int i) const { return items_[i]; }
    const Tensor& tensor(const IndexItem& item) const { return tensors_[static_cast<size_t>(item.value)]; }
    /// Whether there are bools or tensors among the indices, which select individual elements.
    bool advanced() const { return advanced_; }
    /// The number of dimensions that are indexed by item `first` and all later items.
    int64_t consumed(int first) const;

  private:
    void add(PyObject* o);
    void add_tensor(Tensor t);
    void push(IndexItem::Kind kind, int64_t value, PyObject* object);

    IndexItem items_[kMaxItems];
    int size_ = 0;
    bool advanced_ = false;
    std::vector<Tensor> tensors_;
};

}  // namespace rushlight::python
