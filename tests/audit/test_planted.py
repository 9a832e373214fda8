"""Each rule is proved by a violation that a real compiler made, and that only that rule finds."""

import pytest

from builder import audit
from builder.wheel.archive import Wheel
from tests import needs
from tests.given.audits import calls

pytestmark = pytest.mark.cmake


PLANTED = {
    "a glibc newer than the tag": ("manylinux", "arc4random@GLIBC_2.36", calls("arc4random"), ()),
    "the symbol that keeps g++ 12 from 2_28": (
        "manylinux",
        "__libc_single_threaded@GLIBC_2.32",
        'extern "C" char __libc_single_threaded; char copy() { return __libc_single_threaded; }',
        (),
    ),
    "a library that no system has": ("manylinux", "libmissing.so.1", "", ("-Wl,--no-as-needed", "-l:libmissing.so.1")),
    "an RPATH of the build machine": ("manylinux", "/home/me/lib", "", ("-Wl,-rpath,/home/me/lib",)),
    "a RUNPATH that leaves the package": (
        "manylinux",
        "$ORIGIN/../torch/lib",
        "",
        ("-Wl,--enable-new-dtags,-rpath,$ORIGIN/../torch/lib",),
    ),
    "an RPATH with an empty entry": ("manylinux", "(empty)", "", ("-Wl,--disable-new-dtags,-rpath,$ORIGIN:",)),
    "code that must be relocated": (
        "manylinux",
        "DT_TEXTREL",
        'int pointed; asm(".pushsection .text\\n.quad pointed\\n.popsection");',
        ("-Wl,-z,notext",),
    ),
    "an executable stack": ("manylinux", "PT_GNU_STACK", "", ("-Wl,-z,execstack",)),
    "a CPython function that is not stable": ("abi3", "_PyDict_NewPresized", calls("_PyDict_NewPresized"), ()),
    "a CPython function of 3.11": ("abi3", "PyType_GetName", calls("PyType_GetName"), ()),
    "a shim function newer than the target": (
        "torch-stable-abi",
        "torch_from_blob",
        calls("torch_from_blob"),
        (),
    ),
    "a shim function that torch never had": (
        "torch-stable-abi",
        "aoti_torch_of_my_own",
        calls("aoti_torch_of_my_own"),
        (),
    ),
    "a shim function of libtorch_cuda in a CPU wheel": (
        "torch-stable-abi",
        "aoti_torch_get_current_cuda_stream",
        calls("aoti_torch_get_current_cuda_stream"),
        (),
    ),
    "a registration as before 2.10": (
        "torch-stable-abi",
        "aoti_torch_library_impl",
        calls("aoti_torch_library_impl"),
        (),
    ),
    "a function of at": (
        "torch-stable-abi",
        "_ZN2at4_ops5empty4callEv",
        calls("_ZN2at4_ops5empty4callEv"),
        (),
    ),
    "a function of c10": (
        "torch-stable-abi",
        "_ZN3c1014torchCheckFailEPKcS1_jS1_",
        """namespace c10 { void torchCheckFail(const char *, const char *, unsigned, const char *); }
        void use() { c10::torchCheckFail("", "", 1, ""); }""",
        (),
    ),
    "a typeinfo of c10": (
        "torch-stable-abi",
        "_ZTIN3c105ErrorE",
        """namespace c10 { struct Error { virtual ~Error(); }; }
        void use() { try { PyModule_Create2(nullptr, 0); } catch (c10::Error &) {} }""",
        (),
    ),
    "a vtable of torch": (
        "torch-stable-abi",
        "_ZTVN5torch6ThingyE",
        "namespace torch { struct Thingy { Thingy() {} virtual ~Thingy(); }; } void use() { torch::Thingy thingy; }",
        (),
    ),
    "a guard variable of c10, in the library itself": (
        "torch-stable-abi",
        "_ZGVZN3c108registryEvE1r",
        """namespace c10 { inline int &registry() { static int r = *(volatile int *)0; return r; } }
        int &use() { return c10::registry(); }""",
        (),
    ),
    "a template of std over a type of at": (
        "torch-stable-abi",
        "_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_",
        calls("_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_"),
        (),
    ),
    "a unique symbol": (
        "unique-symbols",
        "_ZZ7countervE1n",
        "inline int &counter() { static int n; return n; } int &use() { return counter(); }",
        ("-fgnu-unique",),
    ),
}


every_linker = pytest.mark.parametrize(
    "link",
    [
        pytest.param((), id="bfd"),
        pytest.param(("-fuse-ld=lld",), id="lld", marks=needs.only_with("ld.lld")),
        pytest.param(("-fuse-ld=mold",), id="mold", marks=needs.only_with("ld.mold")),
    ],
)


@every_linker
@pytest.mark.parametrize("strip", [False, True], ids=["whole", "stripped"])
def test_a_right_library_has_no_finding(compiler, make_wheel, link, strip):
    report = audit.run(Wheel.read(make_wheel(library=compiler.library("", *link, strip=strip))))
    assert report.findings == ()
    assert report.ok


@every_linker
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_only_its_rule_finds(compiler, make_wheel, planted, link):
    rule, symbol, code, flags = planted
    report = audit.run(Wheel.read(make_wheel(library=compiler.library(code, *flags, *link, strip=True))))
    assert {finding.rule for finding in report.findings} == {rule}
    assert symbol in {finding.symbol for finding in report.findings}
    assert not report.ok


def test_a_compilation_that_fails_leaves_the_next_one_alone(compiler):
    with pytest.raises(AssertionError, match=r"g\+\+"):
        compiler.library("this is no C++")
    assert compiler.library("int again();")


def test_headers_older_than_the_target_are_found(compiler, make_wheel):
    library = compiler.library(headers="0x020a010000000000")
    path = make_wheel(library=library, label="torch.stable211.cpu", requires="torch>=2.11")
    assert [finding.symbol for finding in audit.run(Wheel.read(path)).findings] == ["TORCH_ABI_VERSION=2.10"]


def test_a_target_below_the_name_is_found_where_the_headers_differ_by_it(compiler, make_wheel):
    library = compiler.library(headers="0x020e000000000000")
    path = make_wheel(library=library, label="torch.stable213.cpu", requires="torch>=2.13")
    assert [finding.symbol for finding in audit.run(Wheel.read(path)).findings] == ["torch_exception_get_what"]


def test_a_shim_function_of_libtorch_xpu_is_refused_and_not_said_to_be_nowhere(compiler, make_wheel):
    library = compiler.library(calls("aoti_torch_get_current_xpu_stream"))
    path = make_wheel(library=library, label="torch.stable210.xpu20253", backend="xpu")
    finding = next(
        each for each in audit.run(Wheel.read(path)).findings if each.symbol == "aoti_torch_get_current_xpu_stream"
    )
    assert finding.rule == "torch-stable-abi"
    assert "no table here says which torch brought the functions of libtorch_xpu" in finding.why


def test_a_library_that_does_not_name_libtorch_is_found(compiler, make_wheel):
    report = audit.run(Wheel.read(make_wheel(library=compiler.library(link=()))))
    assert [(finding.rule, finding.symbol) for finding in report.findings] == [("torch-stable-abi", "libtorch_cpu.so")]


def test_a_classic_library_that_names_no_library_of_torch_is_found(compiler, make_wheel):
    code = calls("_ZN2at4_ops5empty4callEv", "_ZN3c1014torchCheckFailEPKcS1_jS1_", "_ZN3c104cuda9SomethingEv")
    classic = {"label": "torch213.cxx11.cpu", "requires": "torch==2.13.*"}
    alone = audit.run(Wheel.read(make_wheel(library=compiler.library(code, link=()), **classic)))
    assert {finding.rule for finding in alone.findings} == {"torch-libraries"}
    assert len(alone.findings) == 3
    linked = audit.run(Wheel.read(make_wheel(library=compiler.library(code), **classic)))
    assert [finding.symbol for finding in linked.findings] == ["_ZN3c104cuda9SomethingEv"]


def test_a_tvm_ffi_library_that_uses_torch_is_found(compiler, make_wheel):
    library = compiler.library(calls("_ZN2at4_ops5empty4callEv"), link=())
    path = make_wheel(library=library, label="tvmffi01.cpu", requires="apache-tvm-ffi>=0.1.3,<0.2")
    assert {finding.rule for finding in audit.run(Wheel.read(path)).findings} == {"torch-libraries"}


@pytest.mark.parametrize(
    ("label", "requires", "right"),
    [
        pytest.param("torch213.cxx11.cpu", "torch==2.13.*", True, id="classic"),
        pytest.param("torch213.cxx11.cpu", "torch>=2.13,<2.14", True, id="classic, spelled otherwise"),
        pytest.param("torch213.cxx11.cpu", "torch>=2.13", False, id="classic for later ones"),
        pytest.param("torch213.cxx11.cpu", "torch", False, id="classic for any"),
        pytest.param("torch213.cxx11.cpu", "numpy", False, id="classic for none"),
        pytest.param("torch213.cxx11.cpu", "torch==2.12.*", False, id="classic for another"),
        pytest.param("torch.stable210.cpu", "torch>=2.10", True, id="stable"),
        pytest.param("torch.stable210.cpu", "torch>=2.9", False, id="stable for an earlier one"),
        pytest.param("torch.stable210.cpu", "torch==2.10.*", False, id="stable for one"),
    ],
)
def test_the_requirement_must_fit_the_label(compiler, make_wheel, label, requires, right):
    path = make_wheel(library=compiler.library(), label=label, requires=requires)
    found = {(finding.rule, finding.symbol) for finding in audit.run(Wheel.read(path)).findings}
    assert found == (set() if right else {("layout", "Requires-Dist")})
