// Uses what glibc 2.29 to 2.38 gave a newer version, and the headers for which libstdc++ has more than GLIBCXX_3.4.24. everything()
// returns 0, or the line of what came out wrong.
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <cinttypes>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#include <atomic>
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif
#if __has_include(<format>)
#include <format>
#endif
#if __has_include(<latch>)
#include <latch>
#include <semaphore>
#include <stop_token>
#include <barrier>
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <csignal>
#include <sys/stat.h>
#include <unistd.h>
#include <semaphore.h>
#include <aio.h>
#include <time.h>

static int failed(int line) { std::fprintf(stderr, "line %d\n", line); return line; }
#define CHECK(...) do { if (!(__VA_ARGS__)) return failed(__LINE__); } while (0)
static volatile double two = 2.0;
static std::once_flag once;
static thread_local int tls = 3;
static void* start(void* p) { *static_cast<int*>(p) += tls; return p; }

static int math() {
  CHECK(std::exp(two) > 7.38 && std::exp2(two) == 4.0 && std::log(two) < 0.7 && std::log2(two) == 1.0 && std::pow(two, two) == 4.0);
  CHECK(std::fmod(two + 3, two) == 1.0 && fmodf(float(two) + 3, 2) == 1.0f && expf(float(two)) > 7 && powf(float(two), 2) == 4.0f && log2f(float(two)) == 1 && logf(float(two)) > 0 && exp2f(float(two)) == 4);
  CHECK(std::hypot(two, two) > 2.8 && std::tgamma(two) == 1.0 && std::lgamma(two) == 0.0);
  return 0;
}
static int files() {
  struct stat s, l; struct stat f;
  CHECK(stat("/", &s) == 0 && S_ISDIR(s.st_mode) && lstat("/", &l) == 0 && l.st_ino == s.st_ino);
  int fd = open("/", O_RDONLY);
  CHECK(fd >= 0 && fstat(fd, &f) == 0 && f.st_ino == s.st_ino && fstatat(AT_FDCWD, "/", &f, 0) == 0 && f.st_ino == s.st_ino);
  close(fd);
  CHECK(mknod("/nowhere/x", S_IFREG, 0) == -1);
  return 0;
}
static int threads() {
  int x = 1; pthread_t t; void* r;
  CHECK(pthread_create(&t, nullptr, start, &x) == 0 && pthread_join(t, &r) == 0 && x == 4);
  pthread_key_t k; CHECK(pthread_key_create(&k, nullptr) == 0 && pthread_setspecific(k, &x) == 0 && pthread_getspecific(k) == &x && pthread_key_delete(k) == 0);
  pthread_attr_t a; size_t size; CHECK(pthread_attr_init(&a) == 0 && pthread_attr_setstacksize(&a, 1 << 20) == 0 && pthread_attr_getstacksize(&a, &size) == 0); pthread_attr_destroy(&a);
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; CHECK(pthread_mutex_trylock(&m) == 0 && pthread_mutex_unlock(&m) == 0);
  pthread_rwlock_t w = PTHREAD_RWLOCK_INITIALIZER; CHECK(pthread_rwlock_rdlock(&w) == 0 && pthread_rwlock_unlock(&w) == 0);
  sem_t s; CHECK(sem_init(&s, 0, 1) == 0 && sem_wait(&s) == 0 && sem_post(&s) == 0 && sem_destroy(&s) == 0);
  cpu_set_t c; CHECK(pthread_getaffinity_np(pthread_self(), sizeof c, &c) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, nullptr, nullptr) == 0);
  std::call_once(once, [&] { x = 9; }); CHECK(x == 9);
  std::mutex mu; std::condition_variable cv; bool ready = false;
  std::thread th([&] { std::lock_guard l(mu); ready = true; cv.notify_all(); });
  { std::unique_lock l(mu); cv.wait(l, [&] { return ready; }); } th.join();
  auto fu = std::async(std::launch::async, [] { return 5; }); CHECK(fu.get() == 5);
  std::shared_mutex sm; { std::shared_lock sl(sm); }
  CHECK(std::thread::hardware_concurrency() > 0);
  std::condition_variable_any any; { std::unique_lock l(mu); any.wait_for(l, std::chrono::milliseconds(1)); }
#if __cplusplus > 201703L && __has_include(<latch>)
  std::jthread j([](std::stop_token st) { while (!st.stop_requested()) std::this_thread::yield(); }); j.request_stop(); j.join();
  std::latch la(1); la.count_down(); la.wait(); std::counting_semaphore<4> cs(1); cs.acquire(); cs.release(); std::barrier ba(1); ba.arrive_and_wait();
  std::atomic<int> at{1}; at.notify_all(); at.wait(0);
#endif
  return 0;
}
static int dynamic() {
  void* h = dlopen(nullptr, RTLD_NOW); CHECK(h && dlsym(h, "malloc") && !dlsym(h, "no such")); CHECK(dlerror());
  Dl_info i; CHECK(dladdr(reinterpret_cast<void*>(&dynamic), &i)); dlclose(h);
  return 0;
}
static int numbers() {
  char* e; CHECK(strtol("42", &e, 10) == 42 && strtoul("42", &e, 10) == 42 && strtoll("-42", &e, 0) == -42 && strtoull("42", &e, 16) == 66);
  CHECK(atoi("7") == 7 && strtod("1.5", &e) == 1.5 && strtoimax("7", &e, 10) == 7 && strtoumax("7", &e, 10) == 7 && wcstol(L"42", nullptr, 10) == 42);
  int n = 0; char word[8]; CHECK(sscanf("12 ab", "%d %7s", &n, word) == 2 && n == 12 && !strcmp(word, "ab"));
  CHECK(std::stoi("17") == 17 && std::stod("2.5") == 2.5 && std::to_string(4.5).size() == 8);
  double d = 0; const char t[] = "3.25"; auto r = std::from_chars(t, t + 4, d); CHECK(r.ec == std::errc() && d == 3.25);
  char b[64]; auto q = std::to_chars(b, b + 64, 0.1); CHECK(std::string(b, q.ptr) == "0.1");
  float f; auto r2 = std::from_chars(t, t + 4, f); CHECK(r2.ec == std::errc() && f == 3.25f);
  long double ld; auto r3 = std::from_chars(t, t + 4, ld); CHECK(r3.ec == std::errc()); q = std::to_chars(b, b + 64, ld, std::chars_format::scientific, 3); CHECK(q.ec == std::errc());
  int v; auto r4 = std::from_chars("99", "99" + 2, v); CHECK(r4.ec == std::errc());
  return 0;
}
static int streams() {
  std::ostringstream o; o << 1 << ' ' << 2.5 << ' ' << std::hex << 255 << std::boolalpha << true; CHECK(o.str() == "1 2.5 fftrue");
  std::istringstream i("12 abc 3.5"); int n; std::string w; double d; i >> n >> w >> d; CHECK(n == 12 && w == "abc" && d == 3.5);
  std::stringstream s; s << std::string(100, 'x'); CHECK(std::move(s).str().size() == 100);
  std::wostringstream wo; wo << L"abc" << 4; CHECK(wo.str() == L"abc4");
  std::stringbuf sb("abc"); CHECK(sb.str() == "abc");
  std::ofstream nowhere("/nowhere/x"); CHECK(!nowhere);
  std::ifstream self("/proc/self/comm"); std::string line; CHECK(std::getline(self, line));
  std::cout << "cout " << 3.5 << std::endl; std::cerr << "cerr" << '\n'; std::clog << "clog\n"; std::wcout << L"";
  std::ostringstream date; std::tm tm{}; tm.tm_year = 100; tm.tm_mday = 1; date << std::put_time(&tm, "%Y-%m-%d"); CHECK(date.str() == "2000-01-01");
  std::istringstream g("a,b"); std::getline(g, line, ','); CHECK(line == "a");
  std::locale l; CHECK(std::use_facet<std::ctype<char>>(l).toupper('a') == 'A' && std::has_facet<std::numpunct<char>>(l) && std::use_facet<std::ctype<wchar_t>>(l).toupper(L'a') == L'A');
  CHECK(std::use_facet<std::collate<char>>(l).hash("a", "a" + 1) >= 0 || true);
  try { i.exceptions(std::ios::failbit); i >> n; return failed(__LINE__); } catch (const std::ios_base::failure&) {}
  return 0;
}
static int text() {
  std::regex re("([a-z]+)([0-9]+)", std::regex::icase); std::smatch m; std::string s = "abc123"; CHECK(std::regex_match(s, m, re) && m[2] == "123");
  CHECK(std::regex_replace(s, std::regex("[[:digit:]]+"), "-") == "abc-");
  try { std::regex bad("("); return failed(__LINE__); } catch (const std::regex_error&) {}
  std::wregex wr(L"[a-c]+"); CHECK(std::regex_match(L"abc", wr));
  std::string big; big.reserve(100); for (int i = 0; i < 100; i++) big += char('a' + i % 26); big.replace(3, 5, "xyz").insert(0, "q").erase(2, 1).shrink_to_fit(); big.resize(200, 'c'); CHECK(big.size() == 200);
  std::u16string u(4, u'x'); u += u"y"; std::wstring w(L"abc"); w.append(L"d").replace(0, 1, L"zz"); CHECK(u.size() == 5 && w.size() == 5);
  try { (void)std::string("a").at(5); return failed(__LINE__); } catch (const std::out_of_range&) {}
  try { std::vector<int> v; v.reserve(size_t(-1)); return failed(__LINE__); } catch (const std::length_error&) {}
  try { volatile long n = -1; int* volatile p = new int[n]; delete[] p; return failed(__LINE__); } catch (const std::bad_alloc&) {}
  return 0;
}
static int paths() {
  namespace fs = std::filesystem;
  fs::path p = "/tmp/../etc/./passwd"; CHECK(p.filename() == "passwd" && p.lexically_normal() == "/etc/passwd" && p.extension().empty() && (p / "x").parent_path() == p);
  CHECK(fs::exists("/") && fs::is_directory("/") && !fs::exists("/nowhere") && fs::current_path().is_absolute() && fs::canonical("/.") == "/" && fs::temp_directory_path().is_absolute());
  int n = 0; for (auto& e : fs::directory_iterator("/")) n += e.is_directory(); CHECK(n > 1);
  n = 0; for (auto& e : fs::recursive_directory_iterator("/proc/self/net", fs::directory_options::skip_permission_denied)) { n += e.path().string().size(); if (n > 100) break; }
  try { (void)fs::file_size("/nowhere"); return failed(__LINE__); } catch (const fs::filesystem_error& e) { CHECK(e.code() == std::errc::no_such_file_or_directory); CHECK(std::string(e.what()).size() > 3); }
  std::error_code ec; fs::create_directories("/proc/nowhere/x", ec); CHECK(ec); fs::remove_all("/nowhere", ec); (void)fs::last_write_time("/", ec); fs::copy("/nowhere", "/nowhere2", ec); CHECK(ec);
  CHECK(ec.message().size() > 1 && fs::space("/").capacity > 0); (void)fs::status("/").permissions(); (void)fs::weakly_canonical("/x/y"); (void)fs::relative("/a/b", "/a");
  return 0;
}
static int others() {
  std::random_device rd; (void)rd(); std::mt19937_64 g(rd()); CHECK(std::normal_distribution<double>(0, 1)(g) < 100);
  std::unordered_map<std::string, int> m; for (int i = 0; i < 1000; i++) m[std::to_string(i)] = i; CHECK(m["999"] == 999);
  std::pmr::monotonic_buffer_resource r; std::pmr::vector<int> v(&r); v.resize(1000); std::pmr::unsynchronized_pool_resource pool; std::pmr::string ps("abc", &pool); CHECK(std::pmr::get_default_resource()->is_equal(*std::pmr::new_delete_resource()));
  std::pmr::synchronized_pool_resource sp; std::pmr::map<int,int> pm(&sp); pm[1] = 2;
  auto sh = std::make_shared<int>(4); std::weak_ptr<int> wp = sh; CHECK(wp.lock()); std::enable_shared_from_this<int>* none = nullptr; CHECK(!none);
  std::function<int()> f; try { f(); return failed(__LINE__); } catch (const std::bad_function_call&) {}
  auto ep = std::make_exception_ptr(std::runtime_error("x")); try { std::rethrow_exception(ep); } catch (const std::exception& e) { CHECK(!strcmp(e.what(), "x")); }
  try { std::throw_with_nested(std::logic_error("y")); } catch (const std::exception& e) {}
  auto now = std::chrono::system_clock::now(); (void)now; std::this_thread::sleep_for(std::chrono::microseconds(1));
  struct timespec ts; CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
  void* al = std::aligned_alloc(64, 64); CHECK(al); free(al); int* an = new (std::align_val_t(64)) int; ::operator delete(an, std::align_val_t(64));
  timer_t timer; (void)timer_create(CLOCK_MONOTONIC, nullptr, &timer); struct aiocb cb{}; (void)aio_error(&cb);
#if defined(__cpp_lib_format)
  CHECK(std::format("{:>5} {:.2f} {}", 42, 1.5, "x") == "   42 1.50 x");
  try { (void)std::vformat("{", std::make_format_args()); return failed(__LINE__); } catch (const std::format_error&) {}
  CHECK(std::format("{:%Y}", std::chrono::sys_days(std::chrono::year(2020) / 1 / 1)) == "2020");
  CHECK(std::format("{}", 0.1L) == "0.1" && std::format(L"{}", 3) == L"3");
#endif
  return 0;
}
static void quiet() noexcept { std::string s(100, 'x'); (void)s; }
extern "C" __attribute__((visibility("default"))) int everything() {
  quiet();
  for (auto part : {math, files, threads, dynamic, numbers, streams, text, paths, others})
    if (int line = part()) return line;
  return 0;
}
