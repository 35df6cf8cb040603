// A test program in one header: TEST defines a test, CHECK checks a condition, and main runs all tests and
// returns 1 if any failed.
#pragma once

#include <atomic>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "rushlight/error.h"

namespace check {

struct Test {
    const char* name;
    void (*run)();
};
inline std::vector<Test> tests;
inline std::atomic<int> failures = 0;

struct Register {
    Register(const char* name, void (*run)()) { tests.push_back({name, run}); }
};

inline void fail(const char* file, int line, const std::string& text) {
    if (++failures <= 20) std::fprintf(stderr, "%s:%d: %s\n", file, line, text.c_str());
}

template <class A, class B>
void equal(const char* file, int line, const char* expression, const A& got, const B& expected) {
    if (got == expected) return;
    std::ostringstream text;
    text << expression << ": got " << got << ", expected " << expected;
    fail(file, line, text.str());
}

/// Runs `f`, and checks that it raises an Error of this kind whose text contains `part`.
template <class F>
void raises(const char* file, int line, rushlight::ErrorKind kind, const std::string& part, F&& f) {
    try {
        f();
        fail(file, line, "nothing was raised, expected: " + part);
    } catch (const rushlight::Error& error) {
        if (error.kind() != kind) fail(file, line, std::string("wrong kind of error: ") + error.what());
        if (std::string(error.what()).find(part) == std::string::npos)
            fail(file, line, "the error says '" + std::string(error.what()) + "', expected: " + part);
    }
}

}  // namespace check

#define TEST(name)                                              \
    static void test_##name();                                  \
    static check::Register register_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) check::fail(__FILE__, __LINE__, "not true: " #condition); \
    } while (0)
#define CHECK_EQUAL(got, expected) check::equal(__FILE__, __LINE__, #got, got, expected)
#define CHECK_RAISES(kind, part, ...) \
    check::raises(__FILE__, __LINE__, rushlight::ErrorKind::kind, part, [&] { __VA_ARGS__; })

int main() {
    for (const check::Test& test : check::tests) {
        int before = check::failures;
        try {
            test.run();
        } catch (const std::exception& error) { check::fail(test.name, 0, error.what()); }
        std::printf("%s %s\n", check::failures == before ? "ok  " : "FAIL", test.name);
        std::fflush(stdout);
    }
    if (check::tests.empty()) check::fail(__FILE__, __LINE__, "no tests");
    return check::failures != 0;
}
