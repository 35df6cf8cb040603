// Lists as arguments: views of consecutive elements that the list does not own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>

namespace rushlight {

/// A std::span of constant elements that can also be written as a list in braces: `ops::randn({2, 3})`. Such a list is
/// valid until the end of the statement. Use an array or a vector if the list is needed longer.
template <class T>
class List : public std::span<const T> {
  public:
    using std::span<const T>::span;
    constexpr List() = default;
    constexpr List(std::span<const T> elements) : std::span<const T>(elements) {}
    constexpr List(std::initializer_list<T> elements)
        : std::span<const T>(elements.begin(), elements.size()) {}
};

using IntList = List<int64_t>;

}  // namespace rushlight

template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<rushlight::List<T>> = true;
template <class T>
inline constexpr bool std::ranges::enable_view<rushlight::List<T>> = true;
