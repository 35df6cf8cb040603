// Forward mode: the tangents of dual tensors.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "rushlight/dispatch.h"

namespace rushlight::autograd {

// Note [Levels of forward mode]
// Every derivative in forward mode opens a level. The number of a level is greater than the numbers of the levels
// that enclose it. A tensor may have a tangent for each level. An operator is differentiated for the innermost level
// first. While it is differentiated for a level, only tangents of outer levels are visible. So the operator itself and
// the operators of its formula are then differentiated for the outer levels. So levels interact only through the
// formulas, and perturbations are never confused. Numbers are unique in a process, so threads do not share levels.
using Level = uint64_t;

/// A tensor's tangents. Tangents are in a separate object, so that an alias of the tensor can share them even if the alias
/// is created before the tensor gets a tangent: see share_tangent.
class Tangent {
  public:
    /// Returns the tangent at a level; undefined if there is none.
    const Tensor& at(Level level) const {
        static const Tensor none;
        if (first_.level == level) [[likely]]
            return first_.value;
        for (const One& one : more_)
            if (one.level == level) return one.value;
        return none;
    }
    /// Returns the tangent at a level, and adds an undefined one if there is none.
    Tensor& entry(Level level) {
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
    /// Calls f(level, value) for each tangent.
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

/// A scope in which an operator is differentiated for a level.
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
    /// Returns the mask of the remaining stages of the operator. The mask includes the Dual stage if there may be
    /// outer levels.
    StageMask rest(StageMask stages) const { return nest_ ? stages : stages & ~bit(Stage::Dual); }

  private:
    Level saved_;
    StageMask off_;
    bool nest_;
};

/// A scope in which the open levels from `level` inwards are hidden. Levels that are opened in the scope are visible, in
/// contrast to an AtLevel. Used for methods of custom Functions, which may differentiate in forward mode themselves.
class RL_API HideLevels {
  public:
    explicit HideLevels(Level level);
    ~HideLevels();
    HideLevels(const HideLevels&) = delete;

  private:
    Level saved_;
    StageMask off_;
};

/// Returns the tangent of a dual tensor at a level, by default the level of the current AtLevel. Undefined for
/// tensors without a tangent at that level.
RL_API Tensor tangent(const Tensor& t, Level level);
inline Tensor tangent(const Tensor& t) { return tangent(t, detail::current_level); }
inline Tensor tangent(const TensorOrScalar& t) { return t.is_tensor() ? tangent(t.tensor()) : Tensor(); }
/// Attaches a tangent; an undefined tangent removes it. Does nothing for tensors of integers and bools, which
/// have no tangents.
RL_API void set_tangent(const Tensor& t, Tensor tangent, Level level);
inline void set_tangent(const Tensor& t, Tensor tangent) {
    set_tangent(t, std::move(tangent), detail::current_level);
}

// Note [Roots of tangents]
// The tangent of a view is a part of its root's tangent, so that a write to one of them is visible in the other. A view
// that is made while gradients are disabled does not store its root. While a level is open, its Meta therefore stores the
// root instead. Forward mode does not depend on whether gradients are enabled: a backward pass that records no graph runs
// with gradients disabled, and may be differentiated in forward mode.

/// Returns the tensor whose tangent contains the tangent of `t`: the root of a view, or `t` itself.
RL_API Tensor tangent_root(const Tensor& t);
/// Makes a view independent of its root, also in forward mode.
RL_API void leave_root(const Tensor& view);

/// Lets `to` share the object that holds the tangents of `from`. A node saves an alias of a result before the result
/// gets its tangent, so the alias must share tangents that are attached later.
RL_API void share_tangent(const Tensor& from, const Tensor& to);
/// Attaches the tangents of `from` to `to`.
RL_API void copy_tangent(const Tensor& from, const Tensor& to);
/// Attaches copies of the tangents of `from` to `to`.
RL_API void clone_tangent(const Tensor& from, const Tensor& to);
/// Whether a tangent of the tensor requires grad.
RL_API bool tangent_needs_grad(const Tensor& t);

}  // namespace rushlight::autograd
