# CPU kernels are compiled once per capability, with RUSHLIGHT_CPU naming the namespace that holds the copy.
# The sources learn what exists from RUSHLIGHT_HAVE_AVX2 and RUSHLIGHT_HAVE_AVX512, and choose at run time.
include_guard(GLOBAL)

# The thread sanitizer does not see kernels, which it would make several times slower: they share no state, count no references
# and write to the ranges that parallel.h gives them.
set(kernel_sanitizers "${RUSHLIGHT_SANITIZE}")
if(kernel_sanitizers STREQUAL "thread")
    set(kernel_sanitizers "")
endif()

# Kernels vectorise at -O3. No -ffast-math: it would switch the whole process to flush-to-zero when the library loads. What
# is given up by hand is errno and traps, which no kernel reads. Loops are aligned, because on some processors a short loop that
# crosses a boundary of 64 bytes takes up to 60 % more time.
set(kernel_options -fopenmp-simd -fno-math-errno -fno-trapping-math -falign-loops=32)
if(NOT kernel_sanitizers)
    list(APPEND kernel_options $<$<NOT:$<CONFIG:Debug>>:-O3>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The address sanitizer keeps frames after their end in memory that is not aligned to 64 bytes, and GCC stores whole vectors
    # there all the same (GCC bug 110027). Kernels give no address of a local to anybody.
    list(APPEND kernel_options --param=asan-use-after-return=0)
endif()
set(capability_avx2 -march=x86-64-v3)
set(capability_avx512 -march=x86-64-v4 -mprefer-vector-width=512)

if(RUSHLIGHT_ARCH STREQUAL "native")
    include(CheckCXXSourceRuns)
    check_cxx_source_runs(
        "int main() { __builtin_cpu_init(); return __builtin_cpu_supports(\"x86-64-v4\") ? 0 : 1; }" RUSHLIGHT_CPU_IS_V4)
    if(RUSHLIGHT_CPU_IS_V4)
        set(RUSHLIGHT_CAPABILITIES avx512)
    else()
        set(RUSHLIGHT_CAPABILITIES avx2)
    endif()
else()
    set(RUSHLIGHT_CAPABILITIES avx2 avx512)
endif()

# rushlight_cpu_kernels(<library> <sources>...)
#
# Note [Weak symbols of kernels]
# An inline function or template that a kernel file shares with the rest is a weak symbol, compiled once per capability under
# one name, and the linker keeps the first it meets. Were that the AVX-512 copy, baseline code would execute it on a CPU
# without AVX-512. So the capabilities are linked last, in rising order, and tools/check_symbols.py looks at the result.
function(rushlight_cpu_kernels library)
    list(TRANSFORM RUSHLIGHT_CAPABILITIES TOUPPER OUTPUT_VARIABLE exist)
    list(TRANSFORM exist PREPEND RUSHLIGHT_HAVE_)
    list(TRANSFORM exist APPEND =1)
    target_compile_definitions(${library} PRIVATE ${exist})
    set(RUSHLIGHT_SANITIZE "${kernel_sanitizers}")
    foreach(capability IN LISTS RUSHLIGHT_CAPABILITIES)
        set(objects ${library}_${capability})
        add_library(${objects} OBJECT ${ARGN})
        rushlight_native_target(${objects})
        target_compile_options(${objects} PRIVATE ${kernel_options} ${capability_${capability}})
        target_compile_definitions(${objects} PRIVATE ${exist} RUSHLIGHT_CPU=${capability})
        target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>)
        add_dependencies(${objects} ${library}_abi)
        # As a link item and not as a source, which would come before the library's own objects.
        target_link_libraries(${library} PRIVATE $<TARGET_OBJECTS:${objects}>)
    endforeach()
endfunction()
