# cmake -DFORMAT=clang-format -DSOURCE=FOLDER -P format.cmake
#
# Fails if a source in FOLDER is not laid out by its .clang-format, and names the first lines that are not.
set(sources)
foreach(folder autotune bench codegen dsl examples runtime tests tools)
  file(GLOB_RECURSE found ${SOURCE}/${folder}/*.cpp ${SOURCE}/${folder}/*.h ${SOURCE}/${folder}/*.hpp)
  list(APPEND sources ${found})
endforeach()
list(LENGTH sources count)
if(count EQUAL 0)
  message(FATAL_ERROR "no sources in ${SOURCE}")
endif()
execute_process(COMMAND ${FORMAT} --dry-run -Werror --ferror-limit=10 ${sources}
  WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE result ERROR_VARIABLE errors)
if(result)
  string(SUBSTRING "${errors}" 0 4000 errors)
  message(FATAL_ERROR "${errors}\nLay them out: ${FORMAT} -i FILE...")
endif()
message(STATUS "${count} sources are laid out by .clang-format")
