#include "models/build.h"

#include "models/decoder.h"
#include "models/encoder_decoder.h"

namespace headlab {

std::unique_ptr<Model> build_model(const Needs& needs) {
  if (needs.architecture == Architecture::encoder_decoder) return std::make_unique<EncoderDecoder>(needs);
  return std::make_unique<Decoder>(needs);
}

}  // namespace headlab
