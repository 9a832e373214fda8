"""Mach-O libraries, made by the real linker for another system."""

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import audit
from builder.binary.extension import Extension, ExtensionError
from builder.wheel.archive import Wheel
from tests import needs

OPS = "_demo_cpu_0000001"
TAG = "cp39-abi3-macosx_15_0_arm64"
SOURCE = """
void *PyModule_Create2(void *, int);
int torch_library_impl(void);
void *PyInit_OPS(void) { torch_library_impl(); return PyModule_Create2(0, 3); }
""".replace("OPS", OPS)
STUB = """--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '{name}'
exports:
  - targets: [ arm64-macos ]
    symbols: [ _torch_library_impl ]
...
"""

SHIM = """
extern "C" int aoti_torch_library_init_fragment(const char *, const char *, unsigned, void **);
extern "C" int aoti_torch_library_def(void *, const char *);
extern "C" int torch_library_impl();
extern "C" void *PyInit_OPS() { return nullptr; }
struct Shape { virtual ~Shape() = default; virtual int size() const = 0; };
struct Square : Shape {
  int side;
  explicit Square(int s) : side(s) {}
  int size() const override { return side * side; }
};
__attribute__((noinline)) Shape *made(int side) { return new Square(side); }
struct Register {
  Register() {
    void *all;
    aoti_torch_library_init_fragment("demo", "a.cpp", 1, &all);
    aoti_torch_library_def(all, "f(Tensor x) -> Tensor");
  }
};
static Register registered;
extern "C" int area(int side) {
  torch_library_impl();
  Shape *one = made(side);
  int size = one->size();
  delete one;
  return size;
}
""".replace("OPS", OPS)
# What the libraries of the system have is known from what the compiler asks for: so little needs no SDK.
SYSTEM = {
    "/usr/lib/libSystem.B.dylib": ("___cxa_atexit", "dyld_stub_binder"),
    "/usr/lib/libc++.1.dylib": (
        *("__Znwm", "__ZdlPv", "___cxa_pure_virtual", "___gxx_personality_v0"),
        *("__ZTVN10__cxxabiv120__si_class_type_infoE", "__ZTVN10__cxxabiv117__class_type_infoE"),
    ),
    "@rpath/libtorch_cpu.dylib": (
        *("_aoti_torch_library_init_fragment", "_aoti_torch_library_def", "_torch_library_impl"),
    ),
}

pytestmark = pytest.mark.cmake


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    """Compile and link for macOS with clang and lld."""
    linker, clang = needs.program("ld64.lld"), needs.program("clang")

    def make(code="", *flags, oldest="15.0", torch="@rpath/libtorch_cpu.dylib"):
        place = tmp_path_factory.mktemp("macos")
        (place / "torch.tbd").write_text(STUB.format(name=torch))
        (place / "a.c").write_text(SOURCE + code)
        target = [clang, "--target=arm64-apple-macos15.0", "-c", str(place / "a.c"), "-o", str(place / "a.o")]
        system = ["-arch", "arm64", "-platform_version", "macos", oldest, oldest, "-undefined", "dynamic_lookup"]
        output = [str(place / "torch.tbd"), str(place / "a.o"), "-o", str(place / "a.so")]
        for command in (target, [linker, *system, "-dylib", "-install_name", "@rpath/a.so", *flags, *output]):
            subprocess.run(command, check=True, capture_output=True)
        return (place / "a.so").read_bytes()

    return make


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """A C++ library of the stable ABI's C shim, each symbol of which is bound to the library that has it."""
    linker, clang = needs.program("ld64.lld"), needs.program("clang")
    place = tmp_path_factory.mktemp("macos")
    stubs = []
    for number, (name, symbols) in enumerate(SYSTEM.items()):
        stubs.append(place / f"{number}.tbd")
        stubs[-1].write_text(STUB.format(name=name).replace("_torch_library_impl", ", ".join(symbols)))
    (place / "a.cpp").write_text(SHIM)
    options = ["--target=arm64-apple-macos15.0", "-std=c++20", "-O2", "-nostdinc++", "-fno-exceptions"]
    subprocess.run([clang, *options, "-c", place / "a.cpp", "-o", place / "a.o"], check=True, capture_output=True)
    system = ["-arch", "arm64", "-platform_version", "macos", "15.0", "15.0"]
    output = ["-dylib", "-install_name", "@rpath/a.so", *stubs, place / "a.o", "-o", place / "a.so"]
    subprocess.run([linker, *system, *output], check=True, capture_output=True)
    return (place / "a.so").read_bytes()


def test_a_library_of_cxx_is_linked_to_all_that_it_calls_and_right(shim, make_wheel):
    extension = Extension.read("a.so", shim)
    assert set(extension.needed) == set(SYSTEM)
    called = {symbol.name for symbol in extension.undefined}
    assert called >= {"aoti_torch_library_def", "_Znwm", "_ZTVN10__cxxabiv120__si_class_type_infoE"}
    assert extension.minimum == (15, 0)
    assert audit.run(Wheel.read(make_wheel(library=shim, tag=TAG))).findings == ()


@pytest.fixture(scope="module")
def whole(link):
    return link()


def test_it_is_read(link):
    extension = Extension.read("a.so", link("", "-rpath", "@loader_path"))
    assert extension.format == "Mach-O"
    assert extension.machine == "arm64"
    assert extension.needed == ("@rpath/libtorch_cpu.dylib",)
    assert extension.soname == "@rpath/a.so"
    assert extension.rpath == ("@loader_path",)
    assert extension.minimum == (15, 0)
    assert extension.modules == (OPS,)
    assert {symbol.name for symbol in extension.undefined} >= {"PyModule_Create2", "torch_library_impl"}
    assert len(extension.build_id) == 32


def test_a_right_library_has_no_finding(link, make_wheel):
    assert audit.run(Wheel.read(make_wheel(library=link(), tag=TAG))).findings == ()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param({"oldest": "26.0"}, {("macos", "LC_BUILD_VERSION")}, id="a newer system"),
        pytest.param({"flags": ("-rpath", "/opt/x")}, {("macos", "/opt/x")}, id="an rpath of the build machine"),
        pytest.param(
            {"torch": "/opt/libtorch_cpu.dylib"}, {("macos", "/opt/libtorch_cpu.dylib")}, id="a library of the machine"
        ),
        pytest.param(
            {"code": "void _PyDict_NewPresized(); void *f(void) { return _PyDict_NewPresized; }"},
            {("abi3", "_PyDict_NewPresized")},
            id="not the limited API",
        ),
        pytest.param(
            {"code": 'void c10(void) __asm("__ZTIN3c105ErrorE"); void *f(void) { return c10; }'},
            {("torch-stable-abi", "_ZTIN3c105ErrorE")},
            id="a typeinfo of c10",
        ),
    ],
)
def test_only_its_rule_finds(link, make_wheel, change, found):
    options = {name: value for name, value in change.items() if name in {"oldest", "torch"}}
    library = link(change.get("code", ""), *change.get("flags", ()), **options)
    findings = audit.run(Wheel.read(make_wheel(library=library, tag=TAG))).findings
    assert {(finding.rule, finding.symbol) for finding in findings} == found


def test_a_library_of_another_system_is_found(link, make_wheel, compiler):
    mac = audit.run(Wheel.read(make_wheel(library=link()))).findings
    assert ("manylinux", "arm64") in {(finding.rule, finding.symbol) for finding in mac}
    linux = audit.run(Wheel.read(make_wheel(library=compiler.library(), tag=TAG))).findings
    assert ("macos", "x86_64") in {(finding.rule, finding.symbol) for finding in linux}


@given(st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), max_size=10), st.integers(0, 3000))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_refused(whole, changes, cut):
    content = bytearray(whole)
    for position, value in changes:
        content[position % min(len(content), 2048)] = value
    try:
        Extension.read("a.so", bytes(content[: len(content) - cut]))
    except ExtensionError as error:
        assert error.help  # noqa: PT017  either is right; only another exception is not
