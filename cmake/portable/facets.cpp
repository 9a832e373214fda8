// GCC 13. What tells facets apart stays in the shared library.
#if !defined(__GNUC__) || defined(__clang__) || __GNUC__ >= 13
#include <locale>
#endif

#if defined(__GLIBCXX__) && _GLIBCXX_RELEASE >= 13
#define FACETS(CHARACTER)                                                                                \
  template const std::ctype<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                    \
  template const std::codecvt<CHARACTER, char, mbstate_t>* std::__try_use_facet(const locale&) noexcept; \
  template const std::collate<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                  \
  template const std::numpunct<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                 \
  template const std::num_put<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                  \
  template const std::num_get<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                  \
  template const std::moneypunct<CHARACTER, false>* std::__try_use_facet(const locale&) noexcept;        \
  template const std::moneypunct<CHARACTER, true>* std::__try_use_facet(const locale&) noexcept;         \
  template const std::money_put<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                \
  template const std::money_get<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                \
  template const std::time_put<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                 \
  template const std::time_get<CHARACTER>* std::__try_use_facet(const locale&) noexcept;                 \
  template const std::messages<CHARACTER>* std::__try_use_facet(const locale&) noexcept;

FACETS(char)
FACETS(wchar_t)
#endif
