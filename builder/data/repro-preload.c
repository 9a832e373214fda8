/* What a build under `builder repro` sees instead of the clock and of the order in which folders list their files. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void shift(struct timespec *now) {
  const char *offset = getenv("BUILDER_REPRO_OFFSET");
  const char *frozen = getenv("BUILDER_REPRO_FROZEN");
  if (frozen != NULL) {
    now->tv_sec = atol(frozen);
    now->tv_nsec = 0;
  } else if (offset != NULL) {
    now->tv_sec += atol(offset);
  }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    shift(now);
  }
  return (int)result;
}

time_t time(time_t *out) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now = {0, 0};
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

/* An open folder whose entries were all read, to be given from the last to the first. */
struct listing {
  DIR *folder;
  struct dirent **entries;
  size_t left;
  struct listing *next;
};

static struct listing *listings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct dirent *(*reader)(DIR *);

static struct listing **find(DIR *folder) {
  struct listing **at = &listings;
  while (*at != NULL && (*at)->folder != folder) {
    at = &(*at)->next;
  }
  return at;
}

static void forget(DIR *folder) {
  pthread_mutex_lock(&lock);
  struct listing **at = find(folder);
  if (*at != NULL) {
    struct listing *old = *at;
    *at = old->next;
    /* An entry may still be held by the caller until here, and no longer. */
    free(old->entries);
    free(old);
  }
  pthread_mutex_unlock(&lock);
}

static struct listing *all_of(DIR *folder, reader real) {
  struct listing *made = calloc(1, sizeof *made);
  struct dirent *entry = NULL;
  made->folder = folder;
  while ((entry = real(folder)) != NULL) {
    struct dirent *copy = malloc(sizeof *copy + entry->d_reclen);
    memcpy(copy, entry, entry->d_reclen);
    made->entries = realloc(made->entries, (made->left + 1) * sizeof *made->entries);
    made->entries[made->left++] = copy;
  }
  return made;
}

static struct dirent *next(DIR *folder, const char *name) {
  reader real = (reader)dlsym(RTLD_NEXT, name);
  if (getenv("BUILDER_REPRO_REVERSED") == NULL) {
    return real(folder);
  }
  pthread_mutex_lock(&lock);
  struct listing **at = find(folder);
  if (*at == NULL) {
    *at = all_of(folder, real);
  }
  struct dirent *result = (*at)->left == 0 ? NULL : (*at)->entries[--(*at)->left];
  pthread_mutex_unlock(&lock);
  return result;
}

struct dirent *readdir(DIR *folder) { return next(folder, "readdir"); }

struct dirent64 *readdir64(DIR *folder) { return (struct dirent64 *)next(folder, "readdir64"); }

int closedir(DIR *folder) {
  int (*real)(DIR *) = (int (*)(DIR *))dlsym(RTLD_NEXT, "closedir");
  forget(folder);
  return real(folder);
}

void rewinddir(DIR *folder) {
  void (*real)(DIR *) = (void (*)(DIR *))dlsym(RTLD_NEXT, "rewinddir");
  forget(folder);
  real(folder);
}
