#include <gtest/gtest.h>

// Tests of failing allocations need nullptr from the allocator, where sanitizers would end the process.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
// TBB's library is not instrumented, so its own hand-over of tasks looks like races. Only its frames are
// named: a race between two bodies of a loop has other frames on top and is reported.
extern "C" const char* __tsan_default_suppressions() {
  return "race_top:tbb::detail\n"
         "race:tbb::detail::d1::task::task\n"
         "race:tbb::detail::d1::node::node\n"
         "race:tbb::detail::d1::tree_node::tree_node\n"
         "race:tbb::detail::d1::fold_tree\n"
         "race:tbb::detail::d1::small_object_allocator\n";
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
