#include "cpu/reduce_driver.h"

#include <algorithm>
#include <memory>

#include "cpu/cast.h"
#include "cpu/pointwise_driver.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Maximum number of results that are computed together, and maximum size of a partial result in bytes.
constexpr int64_t kTile = 256;
constexpr int64_t kMaxAcc = 32;

// Number of elements of a chunk, if the elements of few results are divided among threads.
constexpr int64_t kChunk = 65536;

// Drops dimensions of size 1, and merges neighbouring dimensions whose strides allow it. Returns the number of
// remaining dimensions.
int coalesce(int n, int64_t* sizes, int64_t* a, int64_t* b) {
    int kept = 0;
    for (int d = 0; d < n; ++d) {
        if (sizes[d] == 1) continue;
        bool merge = kept > 0 && a[kept - 1] == a[d] * sizes[d] && (!b || b[kept - 1] == b[d] * sizes[d]);
        int into = merge ? kept - 1 : kept++;
        sizes[into] = merge ? sizes[into] * sizes[d] : sizes[d];
        a[into] = a[d];
        if (b) b[into] = b[d];
    }
    return kept;
}

// Sorts the dimensions by their strides in `a`, largest first.
void sort(int n, int64_t* sizes, int64_t* a, int64_t* b) {
    for (int d = 1; d < n; ++d)
        for (int k = d; k > 0 && a[k - 1] < a[k]; --k) {
            std::swap(sizes[k - 1], sizes[k]);
            std::swap(a[k - 1], a[k]);
            if (b) std::swap(b[k - 1], b[k]);
        }
}

int64_t product(int n, const int64_t* sizes) {
    int64_t all = 1;
    for (int d = 0; d < n; ++d) all *= sizes[d];
    return all;
}

class Walk {
  public:
    explicit Walk(const ReducePlan& plan) : p_(plan), loops_(*plan.loops) {
        inner_ = p_.num_kept ? p_.kept[p_.num_kept - 1] : 1;
        inner_step_ = p_.num_kept ? p_.kept_stride[p_.num_kept - 1] : 0;
        inner_out_ = p_.num_kept ? p_.out_stride[p_.num_kept - 1] : 1;
        outer_ = p_.num_kept ? product(p_.num_kept - 1, p_.kept) : 1;
        elements_ = product(p_.num_reduced, p_.reduced);
        tiles_ = outer_ * ((inner_ + kTile - 1) / kTile);
        cast_ = loops_.wide == p_.out_dtype ? nullptr : cast_loop(p_.out_dtype, loops_.wide);
    }

    void run() {
        int64_t results = outer_ * inner_;
        if (results == 0) return;
        // The rows of a tile are reduced one by one, so smaller tiles are not slower. With smaller tiles, every thread gets
        // some rows, and each row is read from one end to the other.
        const bool by_rows = p_.num_reduced > 0 && inner_step_ > p_.reduced_stride[p_.num_reduced - 1];
        if (by_rows && results * elements_ >= 2 * kGrain && tiles_ < 16) {
            tile_ = std::clamp<int64_t>(results / 16, 1, kTile);
            tiles_ = outer_ * ((inner_ + tile_ - 1) / tile_);
        }
        if (results * elements_ > 2 * kChunk && tiles_ < 16) return run_in_chunks();
        int64_t grain = std::max<int64_t>(1, kGrain * tiles_ / std::max<int64_t>(results * elements_, 1));
        parallel_for(0, tiles_, grain, [this](int64_t begin, int64_t end) {
            alignas(64) char acc[kTile * kMaxAcc];
            for (int64_t i = begin; i < end; ++i) {
                Tile tile = at(i);
                loops_.start(acc, tile.count, p_.params);
                accumulate(tile, acc, 0, elements_);
                finish(tile, acc);
            }
        });
    }

  private:
    // A run of adjacent results along the innermost dimension that is kept.
    struct Tile {
        int64_t count;
        const char* in;
        int64_t out;  // in elements
    };

    Tile at(int64_t i) const {
        int64_t per_row = (inner_ + tile_ - 1) / tile_;
        int64_t first = i % per_row * tile_, rest = i / per_row;
        Tile tile{std::min(tile_, inner_ - first), p_.in + first * inner_step_, first * inner_out_};
        for (int d = p_.num_kept - 2; d >= 0; --d) {
            int64_t index = rest % p_.kept[d];
            rest /= p_.kept[d];
            tile.in += index * p_.kept_stride[d];
            tile.out += index * p_.out_stride[d];
        }
        return tile;
    }

    // Adds elements [begin, end) of each result of the tile to its partial result.
    void accumulate(const Tile& tile, char* acc, int64_t begin, int64_t end) const {
        if (begin == end) return;
        const int last = p_.num_reduced - 1;
        if (last < 1) {
            int64_t stride = last < 0 ? 0 : p_.reduced_stride[0];
            loops_.accumulate(acc, tile.in + begin * stride, tile.count, inner_step_, end - begin, stride,
                              begin, p_.params);
            return;
        }
        int64_t index[kMaxDims], rest = begin;
        const char* in = tile.in;
        for (int d = last; d >= 0; --d) {
            index[d] = rest % p_.reduced[d];
            rest /= p_.reduced[d];
            in += index[d] * p_.reduced_stride[d];
        }
        while (true) {
            int64_t n = std::min(p_.reduced[last] - index[last], end - begin);
            loops_.accumulate(acc, in, tile.count, inner_step_, n, p_.reduced_stride[last], begin, p_.params);
            begin += n;
            if (begin >= end) return;
            in -= index[last] * p_.reduced_stride[last];
            index[last] = 0;
            for (int d = last - 1; d >= 0; --d) {
                in += p_.reduced_stride[d];
                if (++index[d] < p_.reduced[d]) break;
                in -= p_.reduced[d] * p_.reduced_stride[d];
                index[d] = 0;
            }
        }
    }

    void finish(const Tile& tile, const char* acc) const {
        const auto wide = static_cast<int64_t>(itemsize(loops_.wide)),
                   size = static_cast<int64_t>(itemsize(p_.out_dtype));
        char* out = p_.out + tile.out * size;
        bool writes_output = !cast_ && (inner_out_ == 1 || tile.count == 1);
        alignas(64) char buffer[kTile * 16];
        alignas(64) int64_t indices[kTile];
        bool writes_second = inner_out_ == 1 || tile.count == 1;
        char* second = p_.second ? p_.second + tile.out * 8 : nullptr;
        loops_.finish(writes_output ? out : buffer,
                      second && !writes_second ? reinterpret_cast<char*>(indices) : second, acc, tile.count,
                      elements_, p_.params);
        if (!writes_output) {
            char* data[2] = {out, buffer};
            int64_t strides[2] = {inner_out_ * size, wide};
            run_row(cast_ ? cast_ : cast_loop(p_.out_dtype, loops_.wide), data, strides, tile.count);
        }
        if (second && !writes_second)
            for (int64_t i = 0; i < tile.count; ++i)
                *reinterpret_cast<int64_t*>(second + i * inner_out_ * 8) = indices[i];
    }

    // Computes few results of many elements: each chunk of elements gives partial results, which are joined in
    // order.
    void run_in_chunks() {
        int64_t per_tile = std::max<int64_t>(1, kChunk / std::min(inner_, tile_));
        int64_t chunks = (elements_ + per_tile - 1) / per_tile;
        int64_t tile_bytes = std::min(inner_, tile_) * loops_.acc_size;
        tile_bytes = (tile_bytes + 63) / 64 * 64;
        std::unique_ptr<char[]> partial(new char[static_cast<size_t>(tiles_ * chunks * tile_bytes)]);
        parallel_chunks(tiles_ * chunks, [&](int64_t i) {
            Tile tile = at(i / chunks);
            int64_t begin = i % chunks * per_tile;
            char* acc = partial.get() + i * tile_bytes;
            loops_.start(acc, tile.count, p_.params);
            accumulate(tile, acc, begin, std::min(begin + per_tile, elements_));
        });
        for (int64_t i = 0; i < tiles_; ++i) {
            Tile tile = at(i);
            char* acc = partial.get() + i * chunks * tile_bytes;
            for (int64_t c = 1; c < chunks; ++c)
                loops_.join(acc, acc + c * tile_bytes, tile.count, p_.params);
            finish(tile, acc);
        }
    }

    const ReducePlan& p_;
    const ReduceLoops& loops_;
    int64_t inner_, inner_step_, inner_out_, outer_, elements_, tiles_, tile_ = kTile;
    LoopFn cast_;
};

}  // namespace

void run(ReducePlan& plan) {
    if (!plan.loops->ordered) sort(plan.num_reduced, plan.reduced, plan.reduced_stride, nullptr);
    sort(plan.num_kept, plan.kept, plan.kept_stride, plan.out_stride);
    plan.num_reduced = coalesce(plan.num_reduced, plan.reduced, plan.reduced_stride, nullptr);
    plan.num_kept = coalesce(plan.num_kept, plan.kept, plan.kept_stride, plan.out_stride);
    Walk(plan).run();
}

}  // namespace rushlight::cpu
