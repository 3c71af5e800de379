"""Holds the source tree to its own rules: who may include whom, and where a library may be seen. Usage: layout_test.py SOURCE"""
import pathlib
import re
import sys
import unittest

source = pathlib.Path(sys.argv.pop(1))

# A room includes from itself and from rooms above it; some from fewer.
rooms = ["core", "files", "kernels", "autograd", "ops", "nn", "optim", "data", "train", "heads", "sweep", "report", "command"]
above = {room: set(rooms[: i + 1]) for i, room in enumerate(rooms)}
for room in ("files", "kernels", "data"):
    above[room] = {"core", room}
above["autograd"] = {"core", "kernels", "autograd"}


def sources(*folders):
    for folder in folders:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield path, re.findall(r'^#include [<"]([^>"]+)[>"]', path.read_text(), re.M)


class Layout(unittest.TestCase):
    def test_rooms_include_only_from_rooms_above(self):
        for path, includes in sources("framework", "models"):
            parts = path.relative_to(source).parts
            for name in includes:
                if name.startswith("models/"):
                    self.assertEqual(parts[0], "models", f"{path} includes {name}")
                if name.startswith("framework/") and parts[0] == "framework":
                    self.assertIn(name.split("/")[1], above[parts[1]], f"{path} includes {name}")

    def test_libraries_stay_where_they_belong(self):
        users = {"tbb": set(), "CLI": set(), "Eigen": set(), "immintrin.h": set()}
        for path, includes in sources("framework", "models"):
            for name in includes:
                for library in users:
                    if library in name.split("/") or name == library:
                        users[library].add(path.relative_to(source).as_posix())
                if path.suffix == ".h" and name.startswith("nlohmann/"):
                    self.assertEqual(name, "nlohmann/json_fwd.hpp", path)
        self.assertEqual(users["tbb"], {"framework/core/team.cpp"})
        self.assertLessEqual(len(users["CLI"]), 2)
        self.assertLessEqual(len(users["Eigen"]), 4)
        # parallel.cpp sets flush-to-zero; everything else goes through simd.h.
        self.assertEqual(users["immintrin.h"], {"framework/core/parallel.cpp", "framework/kernels/simd.h"})

    def test_simd_is_included_by_sources_and_kernels_only(self):
        for path, includes in sources("framework", "models", "examples"):
            if "framework/kernels/simd.h" in includes:
                self.assertEqual(path.parent.name, "kernels", path)


if __name__ == "__main__":
    unittest.main()
