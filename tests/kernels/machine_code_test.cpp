// What the compiler made of the kernels whose speed the others are measured by: fused multiply-adds, and
// several chains of them. A figure of speed means nothing where either is missing.
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "framework/kernels/peak.h"

namespace headlab::kernels {
namespace {

struct Multiplications {
  int fused = 0;
  std::set<std::string> sums;  // the registers that they add to
};

/// Of one object in the library. objdump is where the compiler is.
Multiplications multiplications_of(const std::string& object) {
  const std::string command = "cd '" HEADLAB_BINARY "' && ar p libheadlab.a " + object + " > " + object +
                              ".$$ && objdump -d --no-show-raw-insn " + object + ".$$; rm -f " + object +
                              ".$$";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  Multiplications result;
  std::array<char, 512> line{};
  while (pipe && std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) != nullptr) {
    const std::string text = line.data();
    const std::size_t at = text.find("vfmadd");
    if (at == std::string::npos || text.find("ps ", at) == std::string::npos) continue;
    ++result.fused;
    const std::size_t last = text.rfind('%');  // AT&T: the destination comes last
    if (last != std::string::npos)
      result.sums.insert(text.substr(last, text.find_last_not_of(" \n") + 1 - last));
  }
  return result;
}

TEST(MachineCode, ThePeakIsMeasuredWithSeveralChainsOfFusedMultiplyAdds) {
  const Multiplications peak = multiplications_of("peak.cpp.o");
  EXPECT_GE(peak.fused, peak_chains_at_least);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_GE(static_cast<std::int64_t>(peak.sums.size()), peak_chains_at_least);
#endif
}

TEST(MachineCode, ProductsOfMatricesAreFused) {
  const Multiplications gemm = multiplications_of("gemm_multiply.cpp.o");
  EXPECT_GE(gemm.fused, 100);
}

TEST(Peak, EveryChainCounts) {
  // Chain c starts from c + 1 in each of its lanes, lane l of it gains summand·(l + 1) a round.
  const auto vectors = static_cast<double>(peak_flops_of_round()) / 32;
  const double start = 16 * vectors * (vectors + 1) / 2;
  EXPECT_EQ(peak_rounds(0, 1, 1), static_cast<float>(start));
  EXPECT_EQ(peak_rounds(7, 1, 0.5F), static_cast<float>(start + 7 * 0.5 * vectors * 136));
  EXPECT_EQ(peak_rounds(1, 2, 0), static_cast<float>(2 * start));
}

}  // namespace
}  // namespace headlab::kernels
