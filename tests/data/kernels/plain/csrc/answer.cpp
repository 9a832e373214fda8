#include <string>
#include <vector>

std::string spelled() {
  const std::vector<std::string> digits{"4", "2"};
  return digits[0] + digits[1];
}

extern "C" int answer() { return spelled() == "42" ? ANSWER : 0; }
