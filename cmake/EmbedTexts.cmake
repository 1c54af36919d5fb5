# Text files become part of a library.

# normc_embed(TARGET FILE.inc PATTERN): writes FILE.inc, which sources of the target include, with one `{name, text},` for
# each file that the pattern finds, by name. A file that is added or changed configures again. A text holds no `)text"`.
function(normc_embed target output pattern)
  file(GLOB files CONFIGURE_DEPENDS ${pattern})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(embedded "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND embedded "{\"${name}\", R\"text(${text})text\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT generated/${output} CONTENT "${embedded}" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
endfunction()
