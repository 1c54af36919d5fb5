# normc_group_tests(PROGRAM): ctest runs the cases of a GoogleTest program a group at a time.
#
# To start a program that loads LLVM takes longer than most cases do, so a case of its own process each costs
# more than it tests. A group is some cases of one suite that follow each other; it is called
# FOLDER/SUITE, with .1, .2, ... behind it where a suite has several. GoogleTest says which case failed, and
# scripts/count-tests counts cases, also those that a crash kept from running.
#
# Suites called RestOf... hold what a sample leaves out (tests/Sample.h): their groups have the label `rest`, and
# `scripts/test --all` runs them.
#
# Included it defines the function; run after a program is built (cmake -P) it writes the program's groups.
set(normc_largest_group 16)

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(normc_group_tests_file ${CMAKE_CURRENT_LIST_FILE})
  function(normc_group_tests program)
    set(groups ${CMAKE_CURRENT_BINARY_DIR}/${program}_groups.cmake)
    add_custom_command(TARGET ${program} POST_BUILD VERBATIM BYPRODUCTS ${groups}
      COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DGROUPS=${groups} -P ${normc_group_tests_file})
    file(CONFIGURE OUTPUT ${program}_tests.cmake @ONLY CONTENT
"if(EXISTS \"@groups@\")
  include(\"@groups@\")
else()
  add_test(@program@_IS_NOT_BUILT @program@_IS_NOT_BUILT)
endif()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${program}_tests.cmake)
  endfunction()
  return()
endif()

cmake_policy(VERSION 3.25)
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE result TIMEOUT 60)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${result}")
endif()
get_filename_component(folder ${PROGRAM} NAME_WE)
string(REGEX REPLACE "^normc_(.*)_tests$" "\\1" folder ${folder})
string(REGEX REPLACE "^Running main[^\n]*\n" "" listed "${listed}")
string(REGEX REPLACE " +#[^\n]*" "" listed "${listed}")  # what a parameter is
string(REPLACE "\n" ";" listed "${listed}")

set(text "")
set(suite "")
set(cases "")
function(write_groups)
  list(LENGTH cases left)
  set(part "")
  if(left GREATER normc_largest_group)
    set(part 1)
  endif()
  while(left GREATER 0)
    list(SUBLIST cases 0 ${normc_largest_group} group)
    list(TRANSFORM group PREPEND "${suite}.")
    list(JOIN group ":" filter)
    set(name ${folder}/${suite})
    if(part)
      set(name ${name}.${part})
      math(EXPR part "${part} + 1")
    endif()
    string(APPEND text "add_test(\"${name}\" \"${PROGRAM}\" \"--gtest_filter=${filter}\")\n")
    if(suite MATCHES "^RestOf")
      string(APPEND text "set_tests_properties(\"${name}\" PROPERTIES LABELS rest)\n")
    endif()
    if(left GREATER normc_largest_group)
      list(SUBLIST cases ${normc_largest_group} -1 cases)
    else()
      set(cases "")
    endif()
    list(LENGTH cases left)
  endwhile()
  set(text "${text}" PARENT_SCOPE)
endfunction()
foreach(line ${listed})
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.$")
    write_groups()
    set(suite ${CMAKE_MATCH_1})
    set(cases "")
  elseif(suite AND line MATCHES "^  ([A-Za-z0-9_/]+)$")
    list(APPEND cases ${CMAKE_MATCH_1})
  else()
    message(FATAL_ERROR "${PROGRAM} lists '${line}', which is neither a suite nor a case")
  endif()
endforeach()
write_groups()
file(WRITE ${GROUPS} "${text}")
