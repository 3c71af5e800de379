#include "framework/command/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "framework/core/check.h"
#include "framework/report/format.h"

namespace headlab {

MemoryEstimate& MemoryEstimate::add(std::initializer_list<std::int64_t> sizes, double copies,
                                    double bytes_each) {
  double bytes = copies * bytes_each;
  for (const std::int64_t size : sizes) {
    check(size >= 0, "memory", "negative size {}", size);
    bytes *= static_cast<double>(size);
  }
  bytes_ += bytes;
  return *this;
}

std::optional<double> peak_memory() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (double kibibytes = 0; word == "VmHWM:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

double machine_memory() {
  double memory = std::numeric_limits<double>::infinity();
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) memory = static_cast<double>(pages) * static_cast<double>(page);
  // The limit of the control group, version 2 and version 1; "max" is no number and leaves the stream failed.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    if (double limit = 0; file >> limit && limit > 0) memory = std::min(memory, limit);
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    memory = std::min(memory, static_cast<double>(limit.rlim_cur));
  return memory;
}

void check_fits(std::string_view where, const MemoryEstimate& estimate, double memory) {
  check(estimate.bytes() <= memory, where, "about {} of memory would be needed, this machine has {}",
        with_unit(estimate.bytes(), "B"), with_unit(memory, "B"));
}

}  // namespace headlab
