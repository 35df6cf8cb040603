// The sizes of a tensor. Up to two sizes are stored without an allocation.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "rushlight/tensor.h"

namespace rushlight::autograd {

class SavedSizes {
  public:
    SavedSizes() = default;
    SavedSizes(const SavedSizes& other) { assign(other.list()); }
    SavedSizes(SavedSizes&& other) noexcept : ndim_(std::exchange(other.ndim_, 0)), sizes_(other.sizes_) {}
    SavedSizes& operator=(SavedSizes other) noexcept {
        std::swap(ndim_, other.ndim_);
        std::swap(sizes_, other.sizes_);
        return *this;
    }
    ~SavedSizes() { release(); }

    void assign(IntList sizes) {
        release();
        ndim_ = 0;
        int64_t* to = sizes_.here;
        if (sizes.size() > kHere) to = sizes_.elsewhere = new int64_t[sizes.size()];
        std::copy(sizes.begin(), sizes.end(), to);
        ndim_ = sizes.size();
    }
    IntList list() const { return {ndim_ > kHere ? sizes_.elsewhere : sizes_.here, ndim_}; }

  private:
    // With this number of sizes stored in place, the object is as large as a std::vector.
    static constexpr size_t kHere = 2;
    union Sizes {
        int64_t here[kHere] = {};
        int64_t* elsewhere;
    };
    void release() {
        if (ndim_ > kHere) delete[] sizes_.elsewhere;
    }

    size_t ndim_ = 0;
    Sizes sizes_;
};

}  // namespace rushlight::autograd
