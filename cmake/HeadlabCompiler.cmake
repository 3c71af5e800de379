# Flags private to headlab's own sources; a user's program inherits none of them.
add_library(headlab_flags INTERFACE)

# Every a*b+c is written out with fma() where it is meant: the same bits from every compiler need contraction off.
# NaN and infinity are part of the contract, so no -ffast-math, ever.
target_compile_options(headlab_flags INTERFACE -ffp-contract=off -fno-math-errno
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  -Woverloaded-virtual -Wdouble-promotion -Wimplicit-fallthrough -Wextra-semi)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(headlab_flags INTERFACE -Wduplicated-cond -Wlogical-op)
else()
  target_compile_options(headlab_flags INTERFACE -Wnull-dereference)  # g++ 12 sees them where there are none
endif()
if(HEADLAB_WERROR)
  target_compile_options(headlab_flags INTERFACE -Werror)
endif()

if(HEADLAB_MARCH)
  target_compile_options(headlab_flags INTERFACE -march=${HEADLAB_MARCH})
elseif(HEADLAB_NATIVE)
  target_compile_options(headlab_flags INTERFACE -march=native)
else()
  target_compile_options(headlab_flags INTERFACE -march=x86-64-v3)
endif()
if(HEADLAB_POISON)
  target_compile_definitions(headlab_flags INTERFACE HEADLAB_POISON)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
