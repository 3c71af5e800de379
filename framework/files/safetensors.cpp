#include "framework/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "framework/core/check.h"
#include "framework/files/atomic_file.h"
#include "framework/files/safetensors_header.h"

namespace headlab {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian");
constexpr std::int64_t length_bytes = 8;

using Item = std::pair<const std::string, Array>;

std::vector<const Item*> in_file_order(const NamedArrays& arrays) {
  std::vector<const Item*> order;
  for (const Item& item : arrays) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
    return bytes_of(a->second.dtype()) > bytes_of(b->second.dtype());
  });
  return order;
}

std::string header_of(const std::vector<const Item*>& order, const Metadata& metadata,
                      const std::string& where) {
  std::string text = "{";
  const auto separate = [&] {
    if (text.size() > 1) text += ',';
  };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : metadata) {
      text += first ? "" : ",";
      first = false;
      text += json_string(key, where) + ":" + json_string(value, where);
    }
    text += '}';
  }
  std::int64_t offset = 0;
  for (const Item* item : order) {
    const Array& array = item->second;
    separate();
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[", json_string(item->first, where),
                        safetensors_name_of(array.dtype()));
    for (int axis = 0; axis < array.rank(); ++axis) {
      text += fmt::format("{}{}", axis > 0 ? "," : "", array.shape()[axis]);
    }
    text += fmt::format("],\"data_offsets\":[{},{}]}}", offset, offset + array.bytes());
    offset += array.bytes();
  }
  text += '}';
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  check(static_cast<std::int64_t>(text.size()) <= safetensors_header_limit, where,
        "the header would have {} bytes, at most {} are allowed", text.size(), safetensors_header_limit);
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedArrays& arrays,
                       const Metadata& metadata) {
  const std::string where = path.string();
  for (const auto& [name, array] : arrays) {
    check(static_cast<bool>(array), where, "cannot write: the array {} is absent", name);
    check(name != "__metadata__", where, "cannot write: the name {} is the format's own", name);
  }
  const std::vector<const Item*> order = in_file_order(arrays);
  const std::string header = header_of(order, metadata, where);
  const std::uint64_t length = header.size();
  AtomicFile file(path);
  file.write(&length, length_bytes);
  file.write(header);
  for (const Item* item : order) file.write(item->second.raw(), item->second.bytes());
  file.commit();
}

SafetensorsReader::SafetensorsReader(std::filesystem::path path)
    : path_(std::move(path)), file_(open_file(path_, O_RDONLY | O_NONBLOCK)) {
  const std::string where = path_.string();
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0) fail_with_reason(path_, "read");
  check(S_ISREG(status.st_mode), where, "cannot read: not a regular file");
  const std::int64_t size = status.st_size;
  check(size >= length_bytes, where, "has {} bytes, too few for a safetensors file", size);
  std::uint64_t length = 0;
  read_exactly(file_, &length, length_bytes, 0, path_);
  check(length <= static_cast<std::uint64_t>(size - length_bytes), where,
        "header: its length is {}, the file has {} bytes", length, size);
  check(length <= static_cast<std::uint64_t>(safetensors_header_limit), where,
        "header: its length is {}, at most {} are allowed", length, safetensors_header_limit);
  data_ = length_bytes + static_cast<std::int64_t>(length);
  std::string text(length, '\0');
  read_exactly(file_, text.data(), data_ - length_bytes, length_bytes, path_);
  SafetensorsHeader header = parse_safetensors_header(text, size - data_, where);
  metadata_ = std::move(header.metadata);
  entries_ = std::move(header.entries);
}

Array SafetensorsReader::read(const std::string& name) const {
  const auto found = entries_.find(name);
  check(found != entries_.end(), path_.string(), "has no tensor {}", name);
  const Entry& entry = found->second;
  Array array(entry.shape, entry.dtype);
  read_exactly(file_, array.raw(), array.bytes(), data_ + entry.begin, path_);
  return array;
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  Safetensors result{{}, reader.metadata()};
  for (const auto& [name, entry] : reader.entries()) result.arrays[name] = reader.read(name);
  return result;
}

}  // namespace headlab
