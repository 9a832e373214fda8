// glibc 2.30: waits on a clock of the caller's choice. Older ones wait on that of the wall, so the time that is left is
// counted from there, again until it has passed on the clock that was asked for.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

namespace {

const long SECOND = 1000000000;

bool left(clockid_t clock, const timespec* until, timespec* wall) {
  timespec now;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, wall) != 0) return false;
  time_t seconds = until->tv_sec - now.tv_sec;
  long nanoseconds = until->tv_nsec - now.tv_nsec;
  wall->tv_sec += seconds;
  wall->tv_nsec += nanoseconds;
  if (wall->tv_nsec < 0) wall->tv_nsec += SECOND, --wall->tv_sec;
  if (wall->tv_nsec >= SECOND) wall->tv_nsec -= SECOND, ++wall->tv_sec;
  return seconds > 0 || (seconds == 0 && nanoseconds > 0);
}

bool valid(clockid_t clock, const timespec* until) {
  return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && until->tv_nsec >= 0 && until->tv_nsec < SECOND;
}

template <typename Wait>
int wait(clockid_t clock, const timespec* until, Wait once) {
  if (!valid(clock, until)) return EINVAL;
  for (;;) {
    timespec wall;
    bool more = left(clock, until, &wall);
    int result = once(&wall);
    if (result != ETIMEDOUT || !more) return result;
  }
}

}  // namespace

extern "C" {
int cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until)
    asm("pthread_cond_clockwait");
int cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  return wait(clock, until, [=](timespec* wall) { return pthread_cond_timedwait(condition, mutex, wall); });
}

int mutex_lock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) asm("pthread_mutex_clocklock");
int mutex_lock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  return wait(clock, until, [=](timespec* wall) { return pthread_mutex_timedlock(mutex, wall); });
}

int read_lock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) asm("pthread_rwlock_clockrdlock");
int read_lock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  return wait(clock, until, [=](timespec* wall) { return pthread_rwlock_timedrdlock(lock, wall); });
}

int write_lock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) asm("pthread_rwlock_clockwrlock");
int write_lock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  return wait(clock, until, [=](timespec* wall) { return pthread_rwlock_timedwrlock(lock, wall); });
}

int semaphore_wait(sem_t* semaphore, clockid_t clock, const timespec* until) asm("sem_clockwait");
int semaphore_wait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  int result = wait(clock, until, [=](timespec* wall) { return sem_timedwait(semaphore, wall) == 0 ? 0 : errno; });
  if (result == 0) return 0;
  errno = result;
  return -1;
}
}
