// Forward mode: the tangents of dual tensors.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "rushlight/dispatch.h"

namespace rushlight::autograd {

// Note [Levels of forward mode]
// Every derivative in forward mode opens a level, and a level's number is greater than those of the levels it is nested in.
// A tensor may have a tangent for each level. An operator is differentiated for the innermost level first: while that
// happens only tangents of levels further out are visible, so that the same operator, and those of its formula, are
// differentiated for them in turn. So levels interact only through the formulas, and perturbations are never confused.
// Numbers are unique in a process, so threads do not see each other's levels.
using Level = uint64_t;

/// A tensor's tangents. They are a separate object, so that an alias that is made before the tensor is dual finds them:
/// see share_tangent.
class Tangent {
  public:
    /// Undefined if there is no tangent.
    const Tensor& at(Level level) const {
        static const Tensor none;
        if (first_.level == level) [[likely]]
            return first_.value;
        for (const One& one : more_)
            if (one.level == level) return one.value;
        return none;
    }
    Tensor& place(Level level) {
        if (first_.level == level) return first_.value;
        for (One& one : more_)
            if (one.level == level) return one.value;
        if (!first_.value.defined()) {
            first_.level = level;
            return first_.value;
        }
        std::erase_if(more_, [](const One& one) { return !one.value.defined(); });
        return more_.emplace_back(One{level, {}}).value;
    }
    /// Returns the innermost level below `limit` with a tangent; 0 if there is none.
    Level innermost(Level limit) const {
        Level found = first_.value.defined() && first_.level < limit ? first_.level : 0;
        for (const One& one : more_)
            if (one.value.defined() && one.level < limit) found = std::max(found, one.level);
        return found;
    }
    /// Calls f(level, value) for each.
    template <class F>
    void each(F&& f) const {
        if (first_.value.defined()) f(first_.level, first_.value);
        for (const One& one : more_)
            if (one.value.defined()) f(one.level, one.value);
    }

  private:
    struct One {
        Level level = 0;
        Tensor value;
    };
    One first_;
    std::vector<One> more_;
};

/// Opens a level. When the level ends, its tangents are removed, which also breaks cycles of tangents and
/// graphs.
RL_API Level enter_forward_mode();
RL_API void leave_forward_mode(Level level);
/// Whether any level is open.
RL_API bool forward_mode_is_on();

namespace detail {
// The level for which this thread differentiates an operator; 0 if there is none, so that all levels are
// visible.
extern RL_API thread_local Level current_level;
RL_API bool levels_nest();
RL_API Level innermost_level(const Tensor& t);
}  // namespace detail

/// Returns the innermost visible level at which an argument has a tangent; 0 if there is none.
inline Level innermost_level(const Tensor& t) { return t.defined() ? detail::innermost_level(t) : 0; }
inline Level innermost_level(const TensorOrScalar& t) {
    return t.is_tensor() ? detail::innermost_level(t.tensor()) : 0;
}
inline Level innermost_level(const std::optional<TensorOrScalar>& t) { return t ? innermost_level(*t) : 0; }
inline Level innermost_level(TensorList list) {
    Level level = 0;
    for (const Tensor& t : list) level = std::max(level, innermost_level(t));
    return level;
}
template <class A, class B, class... More>
Level innermost_level(const A& a, const B& b, const More&... more) {
    return std::max(innermost_level(a), innermost_level(b, more...));
}

/// While an operator is differentiated for a level.
class AtLevel {
  public:
    explicit AtLevel(Level level)
        : saved_(detail::current_level), off_(dispatch_state.off), nest_(detail::levels_nest()) {
        detail::current_level = level;
        if (!nest_) dispatch_state.off |= bit(Stage::Dual);
    }
    ~AtLevel() {
        detail::current_level = saved_;
        dispatch_state.off = off_;
    }
    AtLevel(const AtLevel&) = delete;
    /// The mask for the further stages of the operator: it includes this stage if there may be outer levels.
    StageMask rest(StageMask stages) const { return nest_ ? stages : stages & ~bit(Stage::Dual); }

  private:
    Level saved_;
    StageMask off_;
    bool nest_;
};

/// Returns the tangent of a dual tensor at a level, by default that of the current AtLevel; undefined for
/// other tensors.
RL_API Tensor tangent(const Tensor& t, Level level);
inline Tensor tangent(const Tensor& t) { return tangent(t, detail::current_level); }
inline Tensor tangent(const TensorOrScalar& t) { return t.is_tensor() ? tangent(t.tensor()) : Tensor(); }
/// Attaches a tangent; an undefined tangent removes it. Does nothing for tensors of integers and bools, which
/// have no tangents.
RL_API void set_tangent(const Tensor& t, Tensor tangent, Level level);
inline void set_tangent(const Tensor& t, Tensor tangent) {
    set_tangent(t, std::move(tangent), detail::current_level);
}

/// A node saves a result before the result gets its tangent: the alias that it keeps shares the object of later tangents.
RL_API void share_tangent(const Tensor& from, const Tensor& to);
/// Attaches the tangents of `from`.
RL_API void copy_tangent(const Tensor& from, const Tensor& to);

}  // namespace rushlight::autograd
