// rushlight-run: runs a program on files of NumPy arrays, without Python.
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "npy.h"
#include "rushlight/graph/program.h"

namespace rushlight::graph {
namespace {

constexpr const char* kUsage =
    "usage: rushlight-run MODEL.rl [--input FILE.npy]... [--output FILE.npy]... [--times N] [--save FILE.rl]\n"
    "       rushlight-run MODEL.rl --print\n"
    "       rushlight-run MODEL.rl --draw\n"
    "       rushlight-run --version\n"
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

struct WrongUsage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Arguments {
    std::string model, saved;
    size_t times = 1;
    std::vector<std::string> inputs, outputs;
    bool help = false, version = false, print = false, draw = false;
    bool runs = false;  // whether an option refers to a run of the program
};

/// Reads `--option VALUE` and `--option=VALUE`.
Arguments parse(int count, char** words) {
    Arguments read;
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        if (!word.starts_with('-')) {
            if (!read.model.empty()) throw WrongUsage("got a second model, '" + std::string(word) + "'");
            read.model = word;
            continue;
        }
        const size_t equals = word.find('=');
        const std::string_view option = word.substr(0, equals);
        const auto is_flag = [&](bool Arguments::* flag) {
            if (equals != word.npos) throw WrongUsage(std::string(option) + " takes no value");
            read.*flag = true;
        };
        const auto value = [&]() -> std::string {
            read.runs = true;
            if (equals == word.npos && ++i == count) throw WrongUsage(std::string(option) + " needs a value");
            std::string given = equals == word.npos ? words[i] : std::string(word.substr(equals + 1));
            if (given.empty()) throw WrongUsage(std::string(option) + " needs a value that is not empty");
            return given;
        };
        if (option == "--help" || option == "-h") is_flag(&Arguments::help);
        else if (option == "--version") is_flag(&Arguments::version);
        else if (option == "--print") is_flag(&Arguments::print);
        else if (option == "--draw") is_flag(&Arguments::draw);
        else if (option == "--input") read.inputs.push_back(value());
        else if (option == "--output") read.outputs.push_back(value());
        else if (option == "--save") read.saved = value();
        else if (option != "--times") throw WrongUsage("unknown argument '" + std::string(word) + "'");
        else if (!(read.times = count_of(value()))) throw WrongUsage("--times needs a positive number");
    }
    return read;
}

/// Writes a text to the standard output.
void show(const std::string& text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    RL_CHECK(written && std::fflush(stdout) == 0, throw_runtime, "cannot write to the standard output: %s",
             std::strerror(errno));
}

int run(const Arguments& given) {
    if (given.help || given.version) {
        show(given.help ? kUsage : "rushlight-run " RUSHLIGHT_GRAPH_VERSION "\n");
        return 0;
    }
    if (given.model.empty()) throw WrongUsage("needs a model");
    if (given.print && given.draw) throw WrongUsage("got both --print and --draw");
    if ((given.print || given.draw) && given.runs)
        throw WrongUsage(std::string(given.print ? "--print" : "--draw") + " does not run the program");
    const Program program = Program::load(given.model);
    if (given.print || given.draw) {
        show(given.draw ? to_svg(program.graph()) : to_text(program.graph()));
        return 0;
    }
    const size_t count = program.graph().outputs.size();
    RL_CHECK(given.outputs.size() <= count, throw_value,
             "got %zu --output files, but the program has %zu results", given.outputs.size(), count);
    std::vector<Tensor> inputs;
    for (const std::string& path : given.inputs) inputs.push_back(read_npy(path));
    std::vector<Tensor> results;
    for (size_t i = 0; i < given.times; ++i) results = program.run(inputs);
    for (size_t i = 0; i < given.outputs.size(); ++i) write_npy(given.outputs[i], results[i]);
    if (!given.saved.empty()) program.save(given.saved);
    return 0;
}

}  // namespace
}  // namespace rushlight::graph

int main(int count, char** words) {
    using namespace rushlight::graph;
    try {
        return run(parse(count, words));
    } catch (const WrongUsage& error) {
        std::fprintf(stderr, "rushlight-run: %s\n%s", error.what(), kUsage);
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rushlight-run: %s\n", error.what());
        return 1;
    }
}
