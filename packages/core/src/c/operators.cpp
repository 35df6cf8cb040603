#include "c/operators.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "rushlight/c_support.h"
#include "rushlight/schema.h"

namespace rushlight::c {
namespace {

// Parses a default value as the schema writes it: None, True, 1, 1e-05, mean, (0, 1).
Value default_of(const SchemaArgument& argument) {
    std::string_view text = argument.default_value;
    const auto integer = [](std::string_view digits) {
        int64_t n = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), n);
        return n;
    };
    if (text == "None") return {};
    if (text == "True" || text == "False") return text == "True";
    if (argument.type.starts_with("str")) return std::string(text);
    if (argument.type.starts_with("int[]")) {
        if (!text.starts_with('('))
            return std::vector<int64_t>(static_cast<size_t>(std::max(argument.fill, 1)), integer(text));
        std::vector<int64_t> list;
        for (text = text.substr(1, text.size() - 2); !text.empty();) {
            list.push_back(integer(text));
            const size_t comma = text.find(", ");
            text = comma == text.npos ? std::string_view() : text.substr(comma + 2);
        }
        return list;
    }
    const bool is_real = argument.type.starts_with("float") || text.find_first_of(".en") != text.npos;
    if (!is_real) return integer(text);
    return std::strtod(std::string(text).c_str(), nullptr);  // parses "inf", too
}

ArgumentKind kind_of(std::string_view type) {
    if (type == "Tensor" || type == "Tensor?" || type.starts_with("TensorOrScalar"))
        return ArgumentKind::Tensor;
    if (type.starts_with("Tensor")) return ArgumentKind::TensorList;
    return type.starts_with("int[]") ? ArgumentKind::Integers : ArgumentKind::Other;
}

std::unique_ptr<const Signature> read_signature(const Operator& op) {
    const SchemaText schema(op);
    auto made = std::make_unique<Signature>();
    size_t required = schema.arguments.size();
    while (required && !schema.arguments[required - 1].default_value.empty()) --required;
    made->required = required;
    made->results = schema.returns.size();
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
        const SchemaArgument& a = schema.arguments[i];
        made->arguments.push_back({a.name, a.type, kind_of(a.type), a.type.find('?') != a.type.npos, a.fill});
        if (i >= required) made->defaults.push_back(default_of(a));
    }
    return made;
}

// Note [Operators by name]
// An open-addressed hash table of the positions of operators, made at the first lookup. A binary search in the sorted
// names would take longer than the rest of the overhead of a boxed call. Signatures are parsed when they are first
// used, and kept.
class Names {
  public:
    Names() : signatures_(operators().size()) {
        const auto all = operators();
        while (slots_.size() < 2 * all.size()) slots_.resize(std::max<size_t>(2 * slots_.size(), 64));
        for (uint16_t i = 0; i < all.size(); ++i) {
            size_t slot = hash(all[i]->name);
            while (slots_[slot & mask()]) ++slot;
            slots_[slot & mask()] = static_cast<uint16_t>(i + 1);
        }
    }

    /// The position of an operator in the list operators(), or -1 if there is no operator of that name.
    int find(const char* name) const {
        const auto all = operators();
        for (size_t slot = hash(name); const uint16_t position = slots_[slot & mask()]; ++slot)
            if (std::strcmp(all[position - 1u]->name, name) == 0) return position - 1;
        return -1;
    }
    const Signature* signature(size_t index) {
        if (const Signature* known = signatures_[index].load(std::memory_order_acquire)) return known;
        std::unique_ptr<const Signature> made = read_signature(*operators()[index]);
        const Signature* expected = nullptr;
        if (!signatures_[index].compare_exchange_strong(expected, made.get())) return expected;
        return made.release();
    }

  private:
    static size_t hash(const char* name) {  // FNV-1a
        uint64_t h = 0xcbf29ce484222325;
        for (; *name; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
        return h ^ (h >> 32);
    }
    size_t mask() const { return slots_.size() - 1; }

    std::vector<uint16_t> slots_;  // 0 if free, else the position plus one
    std::vector<std::atomic<const Signature*>> signatures_;
};

Names& names() {
    static Names& table = *new Names;  // never destroyed, because C may call this while the process ends
    return table;
}

// The edit distance: the number of characters that must be changed, inserted or deleted.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 0; i < a.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i + 1);
        for (size_t j = 0; j < b.size(); ++j) {
            const size_t change = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({change, diagonal + 1, row[j] + 1});
        }
    }
    return row[b.size()];
}

// Returns "Did you mean 'sum.dim' or 'sum.all'?". The names are the overloads of `name`, or else the most similar
// names.
std::string suggestion(std::string_view name) {
    std::vector<std::string_view> found;
    for (const Operator* op : operators())
        if (std::string_view other = op->name; other.starts_with(name) && other[name.size()] == '.')
            found.push_back(other);
    if (found.empty() && name.size() < 100) {
        size_t nearest = std::max<size_t>(1, name.size() / 3) + 1;
        for (const Operator* op : operators()) {
            const size_t d = distance(name, op->name);
            if (d < nearest) found.clear();
            if (d <= nearest && (d < nearest || !found.empty())) found.push_back(op->name);
            nearest = std::min(nearest, d);
        }
    }
    std::string text;
    for (size_t i = 0; i < std::min<size_t>(found.size(), 4); ++i)
        text += (i ? " or '" : "\nhint: did you mean '") + std::string(found[i]) + "'";
    return text.empty() ? text : text + "?";
}

}  // namespace

NamedOperator operator_named(const char* name) {
    Names& table = names();
    const int position = table.find(name);
    RL_CHECK(position >= 0, throw_runtime, "there is no operator '%.100s'%s", name, suggestion(name).c_str());
    const auto index = static_cast<size_t>(position);
    return {operators()[index], table.signature(index)};
}

const Signature& signature_of(size_t index) { return *names().signature(index); }

namespace {

void describe(const Operator& op, const Signature& signature, rl_operator_info* info, const char* function) {
    RL_CHECK(info->struct_size >= sizeof(rl_operator_info), throw_value,
             "%s(info.struct_size): must be at least %zu, got %zu", function, sizeof(rl_operator_info),
             info->struct_size);
    *info = {info->struct_size,  op.name,          op.schema, op.hash, signature.arguments.size(),
             signature.required, signature.results};
}

}  // namespace
}  // namespace rushlight::c

using namespace rushlight;
using namespace rushlight::c;

extern "C" {

RL_API size_t rl_operator_count(void) { return operators().size(); }

RL_API rl_status rl_operator_at(size_t index, rl_operator_info* info) {
    empty_sized(info);
    return guarded([&] {
        require(info, "rl_operator_at", "info");
        RL_CHECK(index < operators().size(), throw_index,
                 "rl_operator_at(index): %zu is out of range for %zu operators", index, operators().size());
        describe(*operators()[index], signature_of(index), info, "rl_operator_at");
    });
}

RL_API rl_status rl_operator_find(const char* name, rl_operator_info* info) {
    empty_sized(info);
    return guarded([&] {
        require(name, "rl_operator_find", "name");
        require(info, "rl_operator_find", "info");
        const NamedOperator found = operator_named(name);
        describe(*found.op, *found.signature, info, "rl_operator_find");
    });
}

}  // extern "C"
