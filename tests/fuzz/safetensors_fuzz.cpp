// The safetensors reader under arbitrary bytes. Anything but Error ends the program. mutation_test.cpp runs
// it on mutations of valid files; for a longer search, with clang++ from the top folder:
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -DFMT_HEADER_ONLY
//     tests/fuzz/safetensors_fuzz.cpp
//     framework/files/{safetensors,safetensors_header,atomic_file,descriptor}.cpp
//     framework/core/{array,shape,pool,check}.cpp -o safetensors_fuzz && ./safetensors_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "framework/core/check.h"
#include "framework/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headlab;
  // A file in memory, so that the whole reader runs, system calls included.
  static const int file = ::memfd_create("safetensors", 0);
  if (file < 0 || ::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  try {
    const Safetensors content = read_safetensors(fmt::format("/proc/self/fd/{}", file));
    std::int64_t bytes = 0;
    for (const auto& [name, array] : content.arrays) bytes += array.bytes();
    if (bytes > static_cast<std::int64_t>(size)) std::abort();
    return 0;
  } catch (const Error&) {
    return 0;
  }
}
