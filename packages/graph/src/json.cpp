#include "json.h"

#include <charconv>
#include <cmath>
#include <unordered_set>

#include "rushlight/error.h"

namespace rushlight::graph {
namespace {

constexpr int kDeepest = 64;

class Parser {
  public:
    Parser(std::string_view text, const char* what) : text_(text), what_(what) {}

    Json document() {
        Json value = read(0);
        skip_space();
        if (at_ != text_.size()) fail("text after the end");
        return value;
    }

  private:
    [[noreturn]] void fail(const char* why) const { throw_value("%s: %s, at byte %zu", what_, why, at_); }

    void skip_space() {
        while (at_ < text_.size() &&
               (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
            ++at_;
    }
    bool take(char c) {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void word(std::string_view w) {
        if (text_.substr(at_, w.size()) != w) fail("invalid JSON");
        at_ += w.size();
    }

    Json read(int depth) {
        if (depth > kDeepest) fail("nested too deeply");
        skip_space();
        if (at_ >= text_.size()) fail("ends too early");
        switch (text_[at_]) {
            case '{': return object(depth);
            case '[': return list(depth);
            case '"': return string();
            case 't': word("true"); return true;
            case 'f': word("false"); return false;
            case 'n': word("null"); return {};
            default: return number();
        }
    }

    Json object(int depth) {
        ++at_;
        Json::Object members;
        std::unordered_set<std::string> keys;
        if (take('}')) return members;
        do {
            skip_space();
            if (at_ >= text_.size() || text_[at_] != '"') fail("a key must be a string");
            std::string key = string();
            if (!keys.insert(key).second) fail("a key occurs twice");
            if (!take(':')) fail("':' is missing");
            members.emplace_back(std::move(key), read(depth + 1));
        } while (take(','));
        if (!take('}')) fail("'}' is missing");
        return members;
    }
    Json list(int depth) {
        ++at_;
        Json::List items;
        if (take(']')) return items;
        do items.push_back(read(depth + 1));
        while (take(','));
        if (!take(']')) fail("']' is missing");
        return items;
    }

    Json number() {
        const size_t begin = at_;
        const auto digits = [&] {
            const size_t first = at_;
            while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
            if (at_ == first) fail("invalid JSON");
            return text_[first] == '0' && at_ > first + 1;
        };
        if (text_[at_] == '-') ++at_;
        if (digits()) fail("a number begins with 0");
        bool whole = true;
        if (at_ < text_.size() && text_[at_] == '.') {
            whole = false;
            ++at_;
            digits();
        }
        if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
            whole = false;
            ++at_;
            if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
            digits();
        }
        const char *first = text_.data() + begin, *last = text_.data() + at_;
        if (whole) {
            int64_t value = 0;
            if (std::from_chars(first, last, value).ec != std::errc()) fail("an integer beyond int64");
            return value;
        }
        double value = 0;
        if (std::from_chars(first, last, value).ec != std::errc()) fail("a number beyond float64");
        return value;
    }

    unsigned hex4() {
        unsigned value = 0;
        if (text_.size() - at_ < 4) fail("ends too early");
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
        if (error != std::errc() || end != text_.data() + at_ + 4) fail("not four hexadecimal digits");
        at_ += 4;
        return value;
    }
    static void append_utf8(std::string& out, unsigned c) {
        const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
        if (c < 0x80) {
            out += static_cast<char>(c);
        } else if (c < 0x800) {
            out += static_cast<char>(0xc0 | c >> 6);
            tail(0);
        } else if (c < 0x10000) {
            out += static_cast<char>(0xe0 | c >> 12);
            tail(6), tail(0);
        } else {
            out += static_cast<char>(0xf0 | c >> 18);
            tail(12), tail(6), tail(0);
        }
    }
    std::string string() {
        ++at_;
        std::string out;
        for (;;) {
            if (at_ >= text_.size()) fail("a string does not end");
            const char c = text_[at_++];
            if (c == '"') return out;
            if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
            if (c != '\\') {
                out += c;
                continue;
            }
            if (at_ >= text_.size()) fail("a string does not end");
            switch (text_[at_++]) {
                case '"': out += '"'; break;
                case '\\': out += '\\'; break;
                case '/': out += '/'; break;
                case 'b': out += '\b'; break;
                case 'f': out += '\f'; break;
                case 'n': out += '\n'; break;
                case 'r': out += '\r'; break;
                case 't': out += '\t'; break;
                case 'u': {
                    unsigned code = hex4();
                    if (code >= 0xdc00 && code < 0xe000) fail("an unpaired surrogate");
                    if (code >= 0xd800 && code < 0xdc00) {
                        if (text_.substr(at_, 2) != "\\u") fail("an unpaired surrogate");
                        at_ += 2;
                        const unsigned low = hex4();
                        if (low < 0xdc00 || low >= 0xe000) fail("an unpaired surrogate");
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    }
                    append_utf8(out, code);
                    break;
                }
                default: fail("an unknown escape");
            }
        }
    }

    std::string_view text_;
    const char* what_;
    size_t at_ = 0;
};

class Writer {
  public:
    std::string out;

    void operator()(std::monostate) { out += "null"; }
    void operator()(bool v) { out += v ? "true" : "false"; }
    void operator()(int64_t v) { out += std::to_string(v); }
    void operator()(double v) {
        char text[40];
        const auto end = std::to_chars(text, text + sizeof text, v).ptr;
        const std::string_view shown(text, static_cast<size_t>(end - text));
        out += shown;
        // Write ".0" for a whole number, so that it is read as a double again.
        if (shown.find_first_of(".e") == shown.npos) out += ".0";
    }
    void operator()(const std::string& v) {
        out += '"';
        for (const char c : v) {
            if (c == '"' || c == '\\') {
                out += '\\';
                out += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                constexpr char kDigits[] = "0123456789abcdef";
                out += "\\u00";
                out += kDigits[c >> 4];
                out += kDigits[c & 15];
            } else {
                out += c;
            }
        }
        out += '"';
    }
    void operator()(const Json::List& v);
    void operator()(const Json::Object& v);
    void add(const Json& v);
};

void Writer::add(const Json& v) {
    if (auto* b = v.as<bool>()) (*this)(*b);
    else if (auto* i = v.as<int64_t>()) (*this)(*i);
    else if (auto* d = v.as<double>()) (*this)(*d);
    else if (auto* s = v.as<std::string>()) (*this)(*s);
    else if (auto* l = v.as<Json::List>()) (*this)(*l);
    else if (auto* o = v.as<Json::Object>()) (*this)(*o);
    else (*this)(std::monostate());
}
void Writer::operator()(const Json::List& v) {
    out += '[';
    for (size_t i = 0; i < v.size(); ++i) {
        if (i) out += ',';
        add(v[i]);
    }
    out += ']';
}
void Writer::operator()(const Json::Object& v) {
    out += '{';
    for (size_t i = 0; i < v.size(); ++i) {
        if (i) out += ',';
        (*this)(v[i].first);
        out += ':';
        add(v[i].second);
    }
    out += '}';
}

}  // namespace

Json Json::parse(std::string_view text, const char* what) { return Parser(text, what).document(); }

std::string Json::text() const {
    Writer writer;
    writer.add(*this);
    return std::move(writer.out);
}

const Json* Json::find(std::string_view key) const {
    if (auto* members = as<Object>())
        for (const auto& [name, value] : *members)
            if (name == key) return &value;
    return nullptr;
}

}  // namespace rushlight::graph
