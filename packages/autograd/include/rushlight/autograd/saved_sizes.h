// The sizes of a tensor, kept without an allocation where it has few dimensions.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "rushlight/tensor.h"

namespace rushlight::autograd {

class SavedSizes {
  public:
    SavedSizes() = default;
    SavedSizes(const SavedSizes& other) { assign(other.list()); }
    SavedSizes(SavedSizes&& other) noexcept { swap(other); }
    SavedSizes& operator=(SavedSizes other) noexcept {
        swap(other);
        return *this;
    }

    void assign(IntList sizes) {
        ndim_ = sizes.size();
        more_.reset(ndim_ > kInline ? new int64_t[ndim_] : nullptr);
        std::copy(sizes.begin(), sizes.end(), data());
    }
    IntList list() const { return {more_ ? more_.get() : inline_, ndim_}; }

  private:
    static constexpr size_t kInline = 4;
    void swap(SavedSizes& other) noexcept {
        std::swap(ndim_, other.ndim_);
        std::swap(inline_, other.inline_);
        std::swap(more_, other.more_);
    }
    int64_t* data() { return more_ ? more_.get() : inline_; }

    size_t ndim_ = 0;
    int64_t inline_[kInline] = {};
    std::unique_ptr<int64_t[]> more_;
};

}  // namespace rushlight::autograd
