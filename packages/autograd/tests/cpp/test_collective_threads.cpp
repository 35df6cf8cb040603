// sources: core/src/collective/*.cpp core/src/tensor/*.cpp core/src/sparse/tensors.cpp core/src/dispatch/dispatch.cpp
// sources: core/src/dispatch/kernel_owners.cpp core/src/runtime/*.cpp core/src/ops/memory_format.cpp
//
// Collectives and messages of two processes with several threads each, for the thread sanitizer. The sanitizer checks
// each process separately. It does not check memory that both processes map.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "check.h"
#include "dispatch/float8.h"
#include "dispatch/shared_kernel.h"
#include "rushlight/collective.h"
#include "sparse/stage.h"

namespace {
rushlight::Tensor add_values(const rushlight::TensorOrScalar& input, const rushlight::TensorOrScalar& other,
                             rushlight::Scalar, const rushlight::Tensor& out) {
    for (int64_t i = 0; i < out.numel(); ++i)
        out.data<float>()[i] = input.tensor().data<float>()[i] + other.tensor().data<float>()[i];
    return out;
}
}  // namespace

namespace rushlight {
Operator op_add_out{"add.out", "",      0,       Form::Out, false, reinterpret_cast<void*>(add_values),
                    nullptr,   nullptr, nullptr, {}};
void install_sparse_stage() {}  // this program makes no sparse tensors
void compute_float8(const Operator&, StageMask, Stack&) {}  // this program makes no float8 tensors
std::span<Operator* const> operator_table() { return {}; }  // this program looks up no operators by name
std::span<SharedKernel* const> shared_kernels() { return {}; }
}  // namespace rushlight

using namespace rushlight;

namespace {

constexpr int kRounds = 200;
constexpr int64_t kShape[] = {3000};

Tensor filled(float value) {
    Tensor t = make_tensor(kShape, DType::Float32);
    for (int64_t i = 0; i < kShape[0]; ++i) t.data<float>()[i] = value;
    return t;
}
void check_filled(const Tensor& t, float value) {
    for (int64_t i = 0; i < kShape[0]; ++i) CHECK_EQUAL(t.data<float>()[i], value);
}

Collective sum_of(const Tensor& t) {
    Collective what;
    what.kind = CollectiveKind::AllReduce;
    what.inputs = {t};
    what.where = "test_collective_threads.cpp";
    return what;
}

void run_rank(const int* files, int rank) {
    ProcessGroup first(files[0], rank, 2, 60), second(files[1], rank, 2, 60);
    std::vector<std::shared_ptr<CollectiveWork>> shared;
    std::mutex mutex;
    std::atomic<bool> stop{false};
    std::thread watches([&] {  // waits for collectives that other threads have started
        for (size_t seen = 0; !stop;) {
            std::shared_ptr<CollectiveWork> work;
            {
                std::lock_guard lock(mutex);
                if (seen < shared.size()) work = shared[seen++];
            }
            first.set_timeout(60);
            while (work && !work->done()) std::this_thread::yield();
            CHECK(!work || work->wait(60));
        }
    });
    std::thread sends([&] {  // sends messages during collectives of the same group
        for (int i = 0; i < kRounds; ++i) {
            Tensor sent = filled(static_cast<float>(i + rank)), got = filled(-1);
            auto out = first.send(sent, 1 - rank, i % 3, "here"),
                 in = first.receive(got, 1 - rank, i % 3, "there");
            CHECK(out->wait(60) && in->wait(60));
            check_filled(got, static_cast<float>(i + 1 - rank));
        }
    });
    std::thread reduces([&] {  // runs collectives of another group
        for (int i = 0; i < kRounds; ++i) {
            Tensor t = filled(static_cast<float>(i + rank));
            second.submit(sum_of(t), false);
            check_filled(t, static_cast<float>(2 * i + 1));
        }
    });
    std::vector<Tensor> tensors;
    for (int i = 0; i < kRounds; ++i) {
        tensors.push_back(filled(static_cast<float>(i * rank)));
        auto work = first.submit(sum_of(tensors.back()), i % 4 != 0);
        std::lock_guard lock(mutex);
        shared.push_back(std::move(work));
    }
    for (int i = 0; i < kRounds; ++i) {
        CHECK(shared[static_cast<size_t>(i)]->wait(60));
        check_filled(tensors[static_cast<size_t>(i)], static_cast<float>(i));
    }
    sends.join();
    reduces.join();
    stop = true;
    watches.join();
    first.close();
    second.close();
}

}  // namespace

TEST(two_processes_with_threads) {
    int files[2];
    for (int& file : files) {
        file = memfd_create("collectives", MFD_CLOEXEC);
        CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(ProcessGroup::file_bytes(2))) == 0);
    }
    pid_t children[2];
    for (int rank = 0; rank < 2; ++rank) {
        children[rank] = fork();
        if (children[rank] == 0) {
            try {
                run_rank(files, rank);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
                _exit(1);
            }
            _exit(check::failures == 0 ? 0 : 2);
        }
    }
    for (pid_t child : children) {
        int status = -1;
        waitpid(child, &status, 0);
        CHECK_EQUAL(status, 0);
    }
}
