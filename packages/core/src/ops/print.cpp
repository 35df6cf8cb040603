#include "rushlight/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "ops/copying.h"
#include "rushlight/batched.h"
#include "rushlight/complex.h"
#include "rushlight/float8.h"
#include "rushlight/half.h"

namespace rushlight {
namespace {

// The default print options in Python (set_printoptions).
constexpr int kPrecision = 4, kEdge = 3, kLineWidth = 80;
constexpr int64_t kThreshold = 1000;

// The notation and the width that all numbers of a printed tensor have.
class Notation {
  public:
    explicit Notation(const std::vector<double>& values) {
        double small = INFINITY, large = 0;
        bool whole = true;
        for (double v : values)
            if (v != 0 && std::isfinite(v)) {
                small = std::min(small, std::abs(v));
                large = std::max(large, std::abs(v));
                whole = whole && v == std::ceil(v);
            }
        if (large == 0) return;
        if (large / small > 1000 || large > 1e8 || small < 1e-4) style_ = Style::Scientific;
        else if (!whole) style_ = Style::Fixed;
        for (double v : values)
            if (v != 0 && std::isfinite(v)) width_ = std::max(width_, plain(v).size());
    }
    size_t width() const { return width_; }
    std::string operator()(double value) const { return padded(plain(value), width_); }
    static std::string padded(const std::string& text, size_t width) {
        return std::string(width - std::min(width, text.size()), ' ') + text;
    }

  private:
    std::string plain(double value) const {
        if (std::isnan(value)) return "nan";
        if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
        char text[400];  // 1e308 has 309 digits
        switch (style_) {
            case Style::Whole: std::snprintf(text, sizeof text, "%.0f.", value); break;
            case Style::Fixed: std::snprintf(text, sizeof text, "%.*f", kPrecision, value); break;
            case Style::Scientific: std::snprintf(text, sizeof text, "%.*e", kPrecision, value); break;
        }
        return text;
    }
    enum class Style { Whole, Fixed, Scientific };
    Style style_ = Style::Whole;
    size_t width_ = 1;
};

// The texts of the printed elements, in order, and their common width.
struct Elements {
    std::vector<std::string> texts;
    size_t width = 1;
};

// The positions that are printed along a dimension. -1 represents the omitted positions.
std::vector<int64_t> shown(int64_t size, bool summarize) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < size; ++i) {
        if (summarize && size > 2 * kEdge && i == kEdge) {
            positions.push_back(-1);
            i = size - kEdge;
        }
        positions.push_back(i);
    }
    return positions;
}

void visit(const Tensor& t, bool summarize, int64_t dim, int64_t offset, const auto& see) {
    if (dim == t.dim()) return see(offset);
    for (int64_t i : shown(t.size(dim), summarize))
        if (i >= 0) visit(t, summarize, dim + 1, offset + i * t.strides()[static_cast<size_t>(dim)], see);
}

template <class T>
void read(const Tensor& t, bool summarize, auto&& append) {
    const T* data = t.data<T>();
    visit(t, summarize, 0, 0, [&](int64_t offset) { append(data[offset]); });
}

Elements real_elements(const std::vector<double>& values) {
    const Notation notation(values);
    Elements made;
    made.width = notation.width();
    for (double v : values) made.texts.push_back(notation(v));
    return made;
}

template <class C>
Elements complex_elements(const Tensor& t, bool summarize) {
    std::vector<double> re, im;
    read<C>(t, summarize, [&](C z) {
        re.push_back(z.re);
        im.push_back(z.im);
    });
    const Notation real(re), imaginary(im);
    Elements made;
    made.width = real.width() + imaginary.width() + 1;
    for (size_t i = 0; i < re.size(); ++i) {
        std::string second = imaginary(im[i]);
        second = second.substr(second.find_first_not_of(' '));
        made.texts.push_back(real(re[i]) + (second[0] == '-' ? "" : "+") + second + "j");
    }
    return made;
}

Elements elements(const Tensor& t, bool summarize) {
    std::vector<double> reals;
    Elements made;
    const auto real = [&](auto v) { reals.push_back(static_cast<double>(v)); };
    const auto half = [&](auto v) { reals.push_back(static_cast<float>(v)); };
    const auto whole = [&](auto v) { made.texts.push_back(std::to_string(v)); };
    switch (t.dtype()) {
        case DType::Complex64: return complex_elements<Complex<float>>(t, summarize);
        case DType::Complex128: return complex_elements<Complex<double>>(t, summarize);
        case DType::Float16: read<Half>(t, summarize, half); return real_elements(reals);
        case DType::BFloat16: read<BFloat16>(t, summarize, half); return real_elements(reals);
        case DType::Float8E4M3FN: read<Float8E4M3FN>(t, summarize, half); return real_elements(reals);
        case DType::Float8E5M2: read<Float8E5M2>(t, summarize, half); return real_elements(reals);
        case DType::Float8E4M3FNUZ: read<Float8E4M3FNUZ>(t, summarize, half); return real_elements(reals);
        case DType::Float8E5M2FNUZ: read<Float8E5M2FNUZ>(t, summarize, half); return real_elements(reals);
        case DType::Float8E8M0FNU: read<Float8E8M0FNU>(t, summarize, half); return real_elements(reals);
        case DType::Float32: read<float>(t, summarize, real); return real_elements(reals);
        case DType::Float64: read<double>(t, summarize, real); return real_elements(reals);
        case DType::Bool:
            read<bool>(t, summarize, [&](bool v) { made.texts.push_back(v ? "True" : "False"); });
            break;
        case DType::UInt8: read<uint8_t>(t, summarize, whole); break;
        case DType::Int8: read<int8_t>(t, summarize, whole); break;
        case DType::Int16: read<int16_t>(t, summarize, whole); break;
        case DType::Int32: read<int32_t>(t, summarize, whole); break;
        case DType::Int64: read<int64_t>(t, summarize, whole); break;
        case DType::UInt16: read<uint16_t>(t, summarize, whole); break;
        case DType::UInt32: read<uint32_t>(t, summarize, whole); break;
        case DType::UInt64: read<uint64_t>(t, summarize, whole); break;
    }
    for (const std::string& text : made.texts) made.width = std::max(made.width, text.size());
    for (std::string& text : made.texts) text = Notation::padded(text, made.width);
    return made;
}

std::string layout(const Tensor& t, bool summarize, int64_t dim, size_t indent, const Elements& elements,
                   size_t& next) {
    if (t.dim() == 0) return elements.texts[next++];
    const std::vector<int64_t> positions = shown(t.size(dim), summarize);
    const bool last = dim + 1 == t.dim();
    const size_t per_line =
        last ? std::max<size_t>(1, (kLineWidth - std::min<size_t>(indent, kLineWidth)) / (elements.width + 2))
             : 1;
    std::string text = "[";
    for (size_t i = 0; i < positions.size(); ++i) {
        if (i && i % per_line == 0)
            text += "," + std::string(last ? 1 : static_cast<size_t>(t.dim() - dim - 1), '\n') +
                    std::string(indent + 1, ' ');
        else if (i) text += ", ";
        if (positions[i] < 0) text += last ? " ..." : "...";
        else
            text += last ? elements.texts[next++] : layout(t, summarize, dim + 1, indent + 1, elements, next);
    }
    return text + "]";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
    if (!tensor.defined()) return out << "tensor(undefined)";
    require_values("operator<<", tensor);
    const bool meta = tensor.device().type == DeviceType::Meta;
    std::string text = "tensor(";
    const size_t indent = text.size();
    if (meta) {
        text += "...";
    } else if (tensor.numel() == 0) {
        text += "[]";
    } else {
        Tensor host = tensor;
        if (tensor.device().type != DeviceType::CPU) {
            host = make_tensor(tensor.sizes(), tensor.dtype());
            copy_into(host, tensor);
        }
        const bool summarize = tensor.numel() > kThreshold;
        size_t next = 0;
        text += layout(host, summarize, 0, indent, elements(host, summarize), next);
    }
    std::vector<std::string> suffixes;
    const DType dtype = tensor.dtype(), usual = default_dtype();
    if (tensor.device().type != DeviceType::CPU) suffixes.push_back("device='" + name(tensor.device()) + "'");
    if (meta || (tensor.numel() == 0 && tensor.dim() != 1))
        suffixes.push_back("size=" + to_string(tensor.sizes()));
    const bool shows = !meta && tensor.numel() &&
                       (dtype == DType::Int64 || dtype == DType::Bool || dtype == complex_dtype(usual));
    if (dtype != usual && !shows) suffixes.push_back(std::string("dtype=torch.") + name(dtype));
    if (tensor.requires_grad()) suffixes.push_back("requires_grad=True");
    size_t column = text.size() - (text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1) + 2;
    for (const std::string& suffix : suffixes) {
        const bool breaks = column + suffix.size() + 2 > kLineWidth;
        text += breaks ? ",\n" + std::string(indent, ' ') + suffix : ", " + suffix;
        column = breaks ? indent + suffix.size() : column + suffix.size() + 2;
    }
    return out << text << ")";
}

}  // namespace rushlight
