// The tangents of custom Functions that do not define their own forward mode.
#pragma once

#include <string>
#include <vector>

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

/// Refuses to differentiate tangents in reverse mode. The forward of a custom Function runs without recording, so the
/// tangents that its operators compute have no history. Reverse mode would take them for constants. connect() gives them a
/// node that leads to the arguments, and whose backward raises NotImplementedError.
class RL_API UnrecordedTangents {
  public:
    /// Must be created before forward runs. Does nothing if no argument has a tangent, or if no argument or tangent of an
    /// argument requires grad.
    explicit UnrecordedTangents(TensorList arguments);
    /// Connects the tangents of results. `written` lists the arguments that forward has written in place.
    void connect(const std::string& function, TensorList results, TensorList written);
    /// Whether connect() does anything.
    explicit operator bool() const { return !edges_.empty(); }

  private:
    std::vector<Edge> edges_;
};

}  // namespace rushlight::autograd
