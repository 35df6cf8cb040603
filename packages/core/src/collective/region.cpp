#include "collective/region.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace rushlight {

uint64_t start_of_process(int process) {
    char path[40], text[1024];
    std::snprintf(path, sizeof(path), "/proc/%d/stat", process);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    // The process's name is in parentheses and may contain any character. After it come field 3, the state, and field
    // 22, the start time.
    const char* at = std::strrchr(text, ')');
    if (!at || !at[1]) return 0;
    at += 2;
    if (*at == 'Z' || *at == 'X') return 0;
    for (int field = 3; field < 22; ++field) {
        at = std::strchr(at, ' ');
        if (!at) return 0;
        ++at;
    }
    return std::strtoull(at, nullptr, 10);
}

void copy_text(char* to, size_t room, const std::string& text) {
    const size_t n = std::min(room - 1, text.size());
    std::memcpy(to, text.data(), n);
    to[n] = 0;
}

// The word is shared between processes, so the private variants of futex calls cannot be used.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds) {
    timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace rushlight
