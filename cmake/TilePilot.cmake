# Targets made from folders: a new source file needs no line here.

set(TILEPILOT_WARNINGS -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers)
# What GCC warns of falsely since version 13: references into what an argument refers to, and arrays of fmt's.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND TILEPILOT_WARNINGS -Wno-dangling-reference -Wno-array-bounds -Wno-stringop-overflow)
endif()

function(tilepilot_sources out)
  cmake_parse_arguments(arg "" "" "FOLDERS;FILES" ${ARGN})
  set(sources)
  foreach(folder IN LISTS arg_FOLDERS)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  foreach(pattern IN LISTS arg_FILES)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${pattern})
    list(APPEND sources ${found})
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# The headers that nearly every file includes, read once for a target. Files still name what they use.
option(TILEPILOT_PRECOMPILE "Precompile standard headers" ON)
set(TILEPILOT_COMMON_HEADERS <algorithm> <functional> <map> <memory> <optional> <string> <unordered_map> <unordered_set>
  <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

# What is left out would take a third of a sanitized build, and is seen without: null and wild pointers fault, and
# AddressSanitizer says where; pointers that are not aligned, and functions called as if of another type, come from casts
# of bytes, and tensors are read and written through memcpy.
set(TILEPILOT_SANITIZERS -fsanitize=address,undefined -fno-sanitize=null,alignment,function)

function(tilepilot_configure target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE ${TILEPILOT_WARNINGS})
  if(TILEPILOT_SANITIZE)
    target_compile_definitions(${target} PUBLIC TILEPILOT_SANITIZED)
    target_compile_options(${target} PUBLIC ${TILEPILOT_SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

function(tilepilot_hot_objects name depends)
  tilepilot_sources(sources FOLDERS ${ARGN})
  add_library(tilepilot_${name}_hot OBJECT ${sources})
  set_target_properties(tilepilot_${name}_hot PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(tilepilot_${name}_hot PUBLIC ${depends})
  target_compile_options(tilepilot_${name}_hot PRIVATE -O1)
  tilepilot_configure(tilepilot_${name}_hot)
endfunction()

# tilepilot_library(NAME FOLDERS ... FILES ... DEPENDS ... HOT ...): the static library tilepilot_NAME. Under the sanitizers
# only the folders HOT, where tests spend their time, are optimised: the object library tilepilot_NAME_hot, a part of it.
function(tilepilot_library name)
  cmake_parse_arguments(arg "" "" "FOLDERS;FILES;DEPENDS;HOT" ${ARGN})
  tilepilot_sources(sources FOLDERS ${arg_FOLDERS} FILES ${arg_FILES})
  if(NOT sources)
    add_library(tilepilot_${name} INTERFACE)
    target_include_directories(tilepilot_${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(tilepilot_${name} INTERFACE ${arg_DEPENDS})
    return()
  endif()
  if(TILEPILOT_SANITIZE)
    # CMake names the hot objects first, and of inline functions that are in others too the linker keeps the first.
    set(hot_objects)
    if(arg_HOT)
      tilepilot_hot_objects(${name} "${arg_DEPENDS}" ${arg_HOT})
      get_target_property(hot tilepilot_${name}_hot SOURCES)
      list(REMOVE_ITEM sources ${hot})
      set(hot_objects $<TARGET_OBJECTS:tilepilot_${name}_hot>)
    endif()
    # Instrumented, they are a hundred megabytes: linked into every test, that takes longer than compiling the tests.
    add_library(tilepilot_${name} SHARED ${hot_objects} ${sources})
    target_link_options(tilepilot_${name} PRIVATE -Wl,-Bsymbolic-functions)
  else()
    add_library(tilepilot_${name} STATIC ${sources})
  endif()
  target_link_libraries(tilepilot_${name} PUBLIC ${arg_DEPENDS})
  tilepilot_configure(tilepilot_${name})
endfunction()

function(tilepilot_executable name)
  cmake_parse_arguments(arg "" "" "FOLDERS;FILES;DEPENDS" ${ARGN})
  tilepilot_sources(sources FOLDERS ${arg_FOLDERS} FILES ${arg_FILES})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  tilepilot_configure(${name})
endfunction()

# tilepilot_unity(TARGET FILES): compiles that many source files as one, where they all parse the same large headers.
function(tilepilot_unity target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  # What GCC warns of matters in headers only, for which it takes all files but the outermost.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# tilepilot_embed(LIBRARY SYMBOL FILE): `extern const char SYMBOL[]` in namespace tilepilot::embedded holds the text of FILE.
function(tilepilot_embed library symbol file)
  set(input ${CMAKE_SOURCE_DIR}/${file})
  if(NOT EXISTS ${input} OR NOT TARGET tilepilot_${library})
    return()
  endif()
  set(output ${CMAKE_BINARY_DIR}/embedded/${symbol}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${input} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(tilepilot_${library} PRIVATE ${output})
endfunction()
