// rushlight-run: a program on arrays of NumPy's format, without Python.
#include <cstdio>
#include <exception>
#include <string_view>

#include "npy.h"
#include "rushlight/graph/program.h"

namespace rushlight::graph {
namespace {

constexpr const char* kUsage =
    "usage: rushlight-run MODEL.rl [--input FILE.npy]... [--output FILE.npy]...\n"
    "       rushlight-run MODEL.rl --print\n"
    "\n"
    "Runs a program that export.save wrote. Inputs are taken in its order; results are written to the outputs\n"
    "that are given, the first to the first. --print shows its operators.\n";

int run(int count, char** words) {
    std::string model;
    std::vector<std::string> inputs, outputs;
    bool print = false;
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        if (word == "--help" || word == "-h") {
            std::fputs(kUsage, stdout);
            return 0;
        }
        if (word == "--print") {
            print = true;
        } else if ((word == "--input" || word == "--output") && i + 1 < count) {
            (word == "--input" ? inputs : outputs).emplace_back(words[++i]);
        } else if (!word.starts_with('-') && model.empty()) {
            model = word;
        } else {
            std::fprintf(stderr, "rushlight-run: what is '%s'?\n%s", words[i], kUsage);
            return 2;
        }
    }
    if (model.empty()) {
        std::fputs(kUsage, stderr);
        return 2;
    }
    const Program program = Program::load(model);
    if (print) {
        std::fputs(to_text(program.graph()).c_str(), stdout);
        return 0;
    }
    std::vector<Tensor> given;
    for (const std::string& path : inputs) given.push_back(read_npy(path));
    const std::vector<Tensor> results = program.run(given);
    RL_CHECK(outputs.size() <= results.size(), throw_value,
             "%zu outputs are named, the program has %zu results", outputs.size(), results.size());
    for (size_t i = 0; i < outputs.size(); ++i) write_npy(outputs[i], results[i]);
    return 0;
}

}  // namespace
}  // namespace rushlight::graph

int main(int count, char** words) {
    try {
        return rushlight::graph::run(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rushlight-run: %s\n", error.what());
        return 1;
    }
}
