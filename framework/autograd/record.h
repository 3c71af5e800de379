// What a Tensor handle points at. Private to the autograd room.
#pragma once

#include "framework/autograd/node.h"

namespace headlab::detail {

struct Record : Counted {
  Record();
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  Array value;
  bool requires_grad = false;  // leaves only
  Ref<Node> node;              // computed tensors only
  int output = 0;
  Ref<Version> version;  // made when first saved, viewed or changed
  Slot gradient;         // leaves only

  static Record& of(const Tensor& tensor) { return *tensor.record_; }
  static void share_version(Tensor& view, const Tensor& whole);
  Ref<Version>& shared_version() {
    if (!version) version = Ref<Version>(new Version);
    return version;
  }
};

}  // namespace headlab::detail
