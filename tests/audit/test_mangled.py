import pytest

from builder.audit.mangled import torch_names


@pytest.mark.parametrize(
    ("symbol", "names"),
    [
        ("_ZN2at6TensorD1Ev", {"at::Tensor"}),
        ("_ZNK3c106Device3strEv", {"c10::Device"}),
        ("_ZTIN3c105ErrorE", {"c10::Error"}),
        ("_ZTVN5torch8autograd4NodeE", {"torch::autograd"}),
        ("_ZTSN3c105ErrorE", {"c10::Error"}),
        ("_ZGVZN3c108registryEvE1r", {"c10::registry"}),
        ("_ZZN2at3fooEvE1x", {"at::foo"}),
        ("_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_", {"at::Tensor"}),
        ("_ZSt4moveIRN3c104HalfEEONSt16remove_referenceIT_E4typeEOS4_", {"c10::Half"}),
        ("_ZN4mine3runERKN2at6TensorEN3c1010ScalarTypeE", {"at::Tensor", "c10::ScalarType"}),
        ("_ZN3c10eqERKNS_6DeviceES2_", {"c10::operator", "c10::Device"}),
        ("_ZN5torch6stable6TensorD1Ev", {"torch::stable"}),
        ("_ZN4mine3runILN3c1010ScalarTypeE6EEEvRKN2at6TensorE", {"c10::ScalarType", "at::Tensor"}),
        ("_ZN4mine3runILN4mine1EE12EEEvN2at6TensorE", {"at::Tensor"}),
        ("_ZThn16_N3c105Error3fooEv", {"c10::Error"}),
        ("_ZN4c10d4WorkC1Ev", {"c10d::Work"}),
    ],
)
def test_names_of_torch_are_found(symbol, names):
    assert {str(name) for name in torch_names(symbol)} == names


@pytest.mark.parametrize(
    "symbol",
    [
        "_ZN4mine2at3getEv",
        "_ZN4mine3c105ErrorC1Ev",
        "_ZNKSt6vectorIiSaIiEE2atEm",
        "_Z15xN2at6TensorxxEv",
        "_ZN15xN3c105ErrorxxE3runEv",
        "_ZN7torches3runEv",
        "_ZN3att3runEv",
        "torch_library_impl",
        "at",
        "",
    ],
)
def test_others_are_not(symbol):
    assert not list(torch_names(symbol))
