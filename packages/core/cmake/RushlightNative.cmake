# How every native target of rushlight is compiled, linked and laid out. Installed with core's CMake config, so that
# autograd, the profiler and other extensions use the same rules.
include_guard(DIRECTORY)

set(RUSHLIGHT_ARCH "portable" CACHE STRING
    "CPU kernels to build: 'portable' (every capability, chosen at run time) or 'native' (this machine's only)")
set_property(CACHE RUSHLIGHT_ARCH PROPERTY STRINGS portable native)
if(NOT RUSHLIGHT_ARCH MATCHES "^(portable|native)$")
    message(FATAL_ERROR "RUSHLIGHT_ARCH is '${RUSHLIGHT_ARCH}': it must be 'portable' or 'native'")
endif()
set(RUSHLIGHT_SANITIZE "" CACHE STRING "Sanitizers to build with, as in -fsanitize=, for example 'address,undefined'")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# A changed library whose interface is the same relinks nothing else.
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)

# The oldest CPU that the wheels run on. Instructions above it stay inside the CPU kernels (see CpuKernels.cmake).
set(RUSHLIGHT_BASELINE "-march=x86-64-v3")
set(RUSHLIGHT_VERSION_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/rushlight.map")

# rushlight_native_target(<target>): language level, warnings, visibility, sanitizers.
#
# A source named *_baseline.cpp may run before the loader has looked at the CPU, so it is compiled for any x86-64.
function(rushlight_native_target target)
    target_compile_features(${target} PUBLIC cxx_std_20)
    set_target_properties(${target} PROPERTIES
        CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
        POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wno-unused-parameter -Werror=return-type -fno-gnu-unique -fno-semantic-interposition
        ${RUSHLIGHT_BASELINE})
    # -O2 also for Release, whose -O3 only grows code that is not a kernel.
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
    if(RUSHLIGHT_SANITIZE)
        target_compile_options(${target} PRIVATE
            -fsanitize=${RUSHLIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
        target_link_options(${target} PRIVATE -fsanitize=${RUSHLIGHT_SANITIZE})
    endif()
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "_baseline\\.cpp$")
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "-march=x86-64")
endfunction()

# rushlight_shared_library(<target> FOLDER <package> RPATH <paths>): a library without Python that leaves no symbol
# undefined and exports rushlight's symbols only. One file, no version links: wheels hold no symlinks.
# It stays loaded after a dlclose, because destructors of threads, threads of its own and registered functions use its code.
function(rushlight_shared_library target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;RPATH" "")
    set_target_properties(${target} PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${arg_FOLDER}/lib"
        INSTALL_RPATH "${arg_RPATH}" BUILD_WITH_INSTALL_RPATH ON
        LINK_DEPENDS "${RUSHLIGHT_VERSION_SCRIPT}")
    target_link_options(${target} PRIVATE
        -Wl,-z,defs -Wl,-z,nodelete -Wl,--exclude-libs,ALL "-Wl,--version-script=${RUSHLIGHT_VERSION_SCRIPT}")
endfunction()

# rushlight_python_extension(<target> FOLDER <package> RPATH <paths> SOURCES <sources>... [NAME <name>]): the module
# <package>._C, or <package>.<name>.
function(rushlight_python_extension target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;RPATH;NAME" "SOURCES")
    if(NOT arg_NAME)
        set(arg_NAME _C)
    endif()
    Python_add_library(${target} MODULE WITH_SOABI ${arg_SOURCES})
    rushlight_native_target(${target})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${arg_NAME} LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${arg_FOLDER}"
        INSTALL_RPATH "${arg_RPATH}" BUILD_WITH_INSTALL_RPATH ON)
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    install(TARGETS ${target} LIBRARY DESTINATION .)
endfunction()

# rushlight_generate(OUTPUT <folder> COMMAND <script> <arguments>... INPUTS <folders>...): runs a generator now, and again
# (by configuring again, since the list of its files may change) when a file of the input folders does.
#
# The generator gets `--out <folder>`, rewrites only what changed, and leaves <folder>/sources.cmake, which is included.
macro(rushlight_generate)
    cmake_parse_arguments(arg "" "OUTPUT" "COMMAND;INPUTS" ${ARGN})
    set(generator_inputs)
    foreach(folder IN LISTS arg_INPUTS)
        file(GLOB_RECURSE found CONFIGURE_DEPENDS "${folder}/*.yaml" "${folder}/*.py" "${folder}/*.tmpl")
        list(APPEND generator_inputs ${found})
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${generator_inputs})
    execute_process(
        COMMAND "${Python_EXECUTABLE}" ${arg_COMMAND} --out "${arg_OUTPUT}"
        COMMAND_ERROR_IS_FATAL ANY)
    include("${arg_OUTPUT}/sources.cmake")
endmacro()
