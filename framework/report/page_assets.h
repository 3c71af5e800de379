// The style sheets and the script of a report, from the files beside this one.
#pragma once

#include <string_view>

namespace headlab {

std::string_view page_style();
/// Of pictures alone.
std::string_view picture_style();
std::string_view page_script();

}  // namespace headlab
