# Kernels as a part of a build:
#
#   normc_add_package(norms OUTPUT norms.npk COMPILE layer_norm my.norm --features 1024 --target x86-64-v3,x86-64-v4)
#
# makes a target `norms` that runs `normc compile` with what stands behind COMPILE, in the folder of the CMakeLists.txt,
# when the package is missing or older than a file that is named there. OUTPUT lies in the build folder of that
# directory; the target's property NORMC_PACKAGE has the whole path.
function(normc_add_package target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT" "COMPILE")
  if(NOT arg_OUTPUT OR NOT arg_COMPILE OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "normc_add_package(TARGET OUTPUT FILE.npk COMPILE NORM... [FLAG...]) needs an OUTPUT, a COMPILE, "
      "and nothing else: see normc compile --help")
  endif()
  if(NOT TARGET normc::normc)
    message(FATAL_ERROR "normc_add_package needs the compiler, and this installation of normc is one of the runtime alone: "
      "compile packages where the compiler is, and ship them")
  endif()
  get_filename_component(output ${arg_OUTPUT} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_BINARY_DIR})
  set(read)
  foreach(argument ${arg_COMPILE})
    get_filename_component(file ${argument} ABSOLUTE)
    if(EXISTS ${file} AND NOT IS_DIRECTORY ${file})
      list(APPEND read ${file})
    endif()
  endforeach()
  get_filename_component(folder ${output} DIRECTORY)  # of OUTPUT kernels/norms.npk, which not every generator makes
  add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -E make_directory ${folder} COMMAND normc::normc compile ${arg_COMPILE} -o ${output}
    DEPENDS normc::normc ${read} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} COMMENT "Compiling kernels to ${arg_OUTPUT}"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${output})
  set_target_properties(${target} PROPERTIES NORMC_PACKAGE ${output})
endfunction()
