// rushlight-run: runs a program on files of NumPy arrays, without Python.
#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>

#include "npy.h"
#include "rushlight/graph/program.h"

namespace rushlight::graph {
namespace {

constexpr const char* kUsage =
    "usage: rushlight-run MODEL.rl [--input FILE.npy]... [--output FILE.npy]... [--times N] [--save FILE.rl]\n"
    "       rushlight-run MODEL.rl --print\n"
    "       rushlight-run MODEL.rl --draw\n"
    "\n"
    "Runs a program that export.save wrote. The first --input file is the program's first input, and so on;\n"
    "the first result is written to the first --output file, and so on. --times runs the program N times,\n"
    "which trains the model if each run takes a training step. --save writes the program with the tensors after\n"
    "the last run. --print writes the operators as text, and --draw writes a drawing of them as SVG.\n";

// Returns the positive number that a text represents, or 0 if it is not a positive number.
size_t count_of(std::string_view text) {
    size_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    return error == std::errc() && end == text.data() + text.size() ? count : 0;
}

int run(int count, char** words) {
    std::string model, saved;
    size_t times = 1;
    std::vector<std::string> inputs, outputs;
    bool print = false, draw = false;
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        if (word == "--help" || word == "-h") {
            std::fputs(kUsage, stdout);
            return 0;
        }
        if (word == "--print") {
            print = true;
        } else if (word == "--draw") {
            draw = true;
        } else if (word == "--times" && i + 1 < count && count_of(words[i + 1])) {
            times = count_of(words[++i]);
        } else if (word == "--save" && i + 1 < count) {
            saved = words[++i];
        } else if ((word == "--input" || word == "--output") && i + 1 < count) {
            (word == "--input" ? inputs : outputs).emplace_back(words[++i]);
        } else if (!word.starts_with('-') && model.empty()) {
            model = word;
        } else {
            std::fprintf(stderr, "rushlight-run: unknown argument '%s'\n%s", words[i], kUsage);
            return 2;
        }
    }
    if (model.empty()) {
        std::fputs(kUsage, stderr);
        return 2;
    }
    const Program program = Program::load(model);
    if (print || draw) {
        std::fputs((draw ? to_svg(program.graph()) : to_text(program.graph())).c_str(), stdout);
        return 0;
    }
    std::vector<Tensor> given;
    for (const std::string& path : inputs) given.push_back(read_npy(path));
    std::vector<Tensor> results;
    for (size_t i = 0; i < times; ++i) results = program.run(given);
    RL_CHECK(outputs.size() <= results.size(), throw_value,
             "got %zu --output files, but the program has %zu results", outputs.size(), results.size());
    for (size_t i = 0; i < outputs.size(); ++i) write_npy(outputs[i], results[i]);
    if (!saved.empty()) program.save(saved);
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
