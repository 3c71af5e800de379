#include "framework/train/catalogue.h"

#include "tests/support/training.h"

namespace headlab {
namespace {

class Named : public TinyTask {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }

 private:
  std::string name_;
};

TEST(Catalogue, FindsTasksAndListsThemInOrder) {
  Catalogue catalogue;
  catalogue.add(std::make_shared<Named>("second")).add(std::make_shared<Named>("first"));
  ASSERT_EQ(catalogue.tasks().size(), 2U);
  EXPECT_EQ(catalogue.tasks()[0]->name(), "second");
  EXPECT_EQ(catalogue.find("first")->name(), "first");
  EXPECT_EQ(catalogue.find("third"), nullptr);
}

TEST(Catalogue, RefusesNamesThatCannotBeTold) {
  Catalogue catalogue;
  catalogue.add(std::make_shared<Named>("one"));
  EXPECT_EQ(error_of([&] { catalogue.add(std::make_shared<Named>("one")); }),
            "catalogue: two tasks are named 'one'");
  EXPECT_EQ(error_of([&] { catalogue.add(std::make_shared<Named>("")); }),
            "catalogue: a task has an empty name");
  EXPECT_EQ(error_of([&] { catalogue.add(std::make_shared<Named>("data.txt")); }),
            "catalogue: the task's name 'data.txt' looks like a path: it must hold no '/', '\\' or '.'");
  EXPECT_EQ(error_of([&] { catalogue.add(nullptr); }), "catalogue: there is no task");
  EXPECT_EQ(catalogue.tasks().size(), 1U);
}

TEST(Catalogue, BuildsWithWhatItWasGiven) {
  Catalogue catalogue;
  const Needs needs = TinyTask().needs();
  EXPECT_EQ(error_of([&] { catalogue.build(needs); }),
            "catalogue: nobody said how models are built: call build_with()");
  catalogue.build_with(build_model);
  EXPECT_EQ(catalogue.build(needs)->needs().d_model, needs.d_model);
}

}  // namespace
}  // namespace headlab
