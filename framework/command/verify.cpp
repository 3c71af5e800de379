#include "framework/train/verify.h"

#include <nlohmann/json.hpp>

#include "framework/command/subcommands.h"

namespace headlab {

namespace {

// The whole program is built with the same options, the kernels too.
#if defined(__AVX512F__)
constexpr const char* instructions = "AVX-512";
#elif defined(__AVX2__)
constexpr const char* instructions = "AVX2 and FMA";
#else
constexpr const char* instructions = "x86-64";
#endif
#if defined(__clang__)
constexpr const char* compiler = "clang++";
#else
constexpr const char* compiler = "g++";
#endif

}  // namespace

int verify_command(const Session& session) {
  CommandLine line("verify", "check that this machine computes the same bits as others");
  CommonOptions common;
  common.add_threads(line.group("Options"));
  common.add_json(line);
  line.example("headlab verify", "trains three small models and compares the checksum of their losses")
      .example("headlab verify --threads 3", "the same checksum: results do not depend on threads");
  if (!ready(line, session, common)) return 0;

  const std::uint64_t checksum =
      verify_checksum([&](const Needs& needs) { return session.catalogue.build(needs); });
  const bool same = checksum == expected_checksum;
  const std::string text = fmt::format("{:016x}", checksum);
  if (common.json) {
    nlohmann::json json{{"checksum", text},
                        {"numbers_version", numbers_version},
                        {"matches", same},
                        {"instructions", instructions},
                        {"compiler", compiler}};
    print_json(json);
  } else {
    print_for_people(fmt::format(
        "checksum {} of numbers version {}{}\nbuilt for {} by {}\n", text, numbers_version,
        same ? ": as on every machine" : ": DIFFERS from other machines", instructions, compiler));
  }
  return same ? 0 : 1;
}

}  // namespace headlab
