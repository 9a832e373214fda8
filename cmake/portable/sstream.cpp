// GCC 9 and, in C++20, GCC 11: what is asked for most often of what a static libstdc++ has, for where there is none.
#include <sstream>

#if defined(__GLIBCXX__) && _GLIBCXX_USE_CXX11_ABI
template std::ostringstream::basic_ostringstream();
template std::istringstream::basic_istringstream();
template std::stringstream::basic_stringstream();
#if __cplusplus > 201703L && _GLIBCXX_RELEASE >= 11
template std::string std::stringbuf::str() const&;
template std::string std::stringbuf::str() &&;
#endif
#endif
