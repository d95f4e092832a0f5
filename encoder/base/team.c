/*
** team.c: threads that run one function together.
**
** Everything waits on one primitive, the gate: a number that changes, watched
** first by spinning (work arrives every few microseconds while a model runs),
** then by yielding, then asleep on a condition variable, so that an idle or
** oversubscribed machine burns nothing. A worker waits at its own gate for its
** next job; a barrier is a gate for all; the caller waits at a gate for the
** last worker to finish.
**
** fork: the child has none of the threads and may inherit locks that they
** held, so its handler makes every gate anew and starts with an empty pool.
*/
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base.h"

enum {
  MAX_THREADS = 256,
  STACK_BYTES = 1 << 20,
  SPIN_NS = 100000,   /* a barrier opens in less, mostly, and so does the next text come;
                         waking a thread takes a virtual machine as long */
  PAUSES_A_LOOK = 32, /* pauses between two looks at the clock */
  YIELDS = 16
};

/* ---- Gates ------------------------------------------------------------- */

typedef struct gate {
  _Alignas(64) atomic_uint value; /* a cache line of its own */
  atomic_int sleepers;
  pthread_mutex_t lock;
  pthread_cond_t changed;
} gate;

static void gate_init(gate *g) {
  atomic_init(&g->value, 0);
  atomic_init(&g->sleepers, 0);
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, NULL);
}

/* Sequentially consistent on both sides: either the sleeper sees the new value
** before it sleeps, or the opener sees the sleeper; taking the lock then makes
** sure that the sleeper is really waiting when it is woken. */
static void gate_set(gate *g, unsigned value) {
  atomic_store(&g->value, value);
  if (atomic_load(&g->sleepers) == 0) return;
  pthread_mutex_lock(&g->lock);
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

static void processor_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void gate_sleep(gate *g, unsigned old) {
  pthread_mutex_lock(&g->lock);
  atomic_fetch_add(&g->sleepers, 1);
  while (atomic_load(&g->value) == old) pthread_cond_wait(&g->changed, &g->lock);
  atomic_fetch_sub(&g->sleepers, 1);
  pthread_mutex_unlock(&g->lock);
}

/* Waits until the value is other than `old`. `spin` 0: where more threads than
** cores run, spinning would only keep the awaited one from running. */
static void gate_wait(gate *g, unsigned old, int spin) {
  if (atomic_load_explicit(&g->value, memory_order_acquire) != old) return;
  int64_t until = spin ? now_ns() + SPIN_NS : 0;
  while (spin) {
    for (int i = 0; i < PAUSES_A_LOOK; i++) {
      if (atomic_load_explicit(&g->value, memory_order_acquire) != old) return;
      processor_pause();
    }
    if (now_ns() >= until) break;
  }
  for (int i = 0; i < YIELDS; i++) {
    if (atomic_load_explicit(&g->value, memory_order_acquire) != old) return;
    sched_yield();
  }
  gate_sleep(g, old);
}

/* ---- The pool ---------------------------------------------------------- */

struct team {
  gate barrier; /* its value: how many barriers have been passed */
  _Alignas(64) atomic_int arrived;
  int size, spin;
};

typedef struct worker {
  gate job;      /* its value: how many jobs it was given */
  unsigned jobs; /* the same, as its owner counts */
  pthread_t thread;
} worker;

/* Whoever sets `busy` owns everything else here until it clears it. */
static struct {
  atomic_int busy;
  int workers; /* threads that exist: workers[1 .. workers] */
  atomic_int stop;
  team team;
  void (*work)(team_member *member, void *user);
  void *user;
  _Alignas(64) atomic_int running; /* workers still in `work` */
  gate done;                       /* its value: how many jobs are over */
  worker worker[MAX_THREADS];      /* by rank; 0 is the caller's, unused */
} pool;

static void pool_reset(void) {
  gate_init(&pool.team.barrier);
  gate_init(&pool.done);
  for (int rank = 0; rank < MAX_THREADS; rank++) {
    gate_init(&pool.worker[rank].job);
    pool.worker[rank].jobs = 0;
  }
  pool.workers = 0;
  atomic_init(&pool.stop, 0);
  atomic_init(&pool.busy, 0);
}

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static atomic_int pool_ready; /* 0: not made, or fork could not be provided for */

static void pool_start(void) {
  pool_reset();
  atomic_store(&pool_ready, pthread_atfork(NULL, NULL, pool_reset) == 0);
}

static void *worker_main(void *argument) {
  worker *self = argument;
  int rank = (int)(self - pool.worker);
  for (unsigned seen = 0;; seen++) {
    gate_wait(&self->job, seen, 1);
    if (atomic_load(&pool.stop)) return NULL;
    team_member member = {&pool.team, rank, pool.team.size};
    pool.work(&member, pool.user);
    unsigned over = atomic_load(&pool.done.value) + 1;
    if (atomic_fetch_sub(&pool.running, 1) == 1) gate_set(&pool.done, over);
  }
}

/* Signals belong to the threads of the host, never to ours. */
static int worker_create(worker *w) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return 0;
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&w->thread, &attributes, worker_main, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return failed == 0;
}

static void worker_give(worker *w) {
  gate_set(&w->job, ++w->jobs);
}

/* Makes the pool large enough for a team of `size`, or as large as it can. */
static int pool_grow(int size) {
  while (pool.workers + 1 < size && worker_create(&pool.worker[pool.workers + 1])) pool.workers++;
  return pool.workers + 1 < size ? pool.workers + 1 : size;
}

static int pool_enter(void) {
  int idle = 0;
  return atomic_load(&pool_ready) && atomic_compare_exchange_strong(&pool.busy, &idle, 1);
}

static void pool_leave(void) {
  atomic_store(&pool.busy, 0);
}

/* At exit and when the library is unloaded no thread of ours may be left in
** its code. Where a team is still at work, waiting for it could last for ever. */
__attribute__((destructor)) static void pool_stop(void) {
  if (!pool_enter()) return;
  atomic_store(&pool.stop, 1);
  for (int rank = 1; rank <= pool.workers; rank++) worker_give(&pool.worker[rank]);
  for (int rank = 1; rank <= pool.workers; rank++) pthread_join(pool.worker[rank].thread, NULL);
  pool.workers = 0;
}

/* ---- Teams ------------------------------------------------------------- */

static void run_together(int size, void (*work)(team_member *member, void *user), void *user) {
  unsigned over = atomic_load(&pool.done.value);
  pool.team.size = size;
  pool.team.spin = size <= team_cores();
  atomic_store(&pool.team.arrived, 0);
  atomic_store(&pool.running, size - 1);
  pool.work = work;
  pool.user = user;
  for (int rank = 1; rank < size; rank++) worker_give(&pool.worker[rank]);
  team_member caller = {&pool.team, 0, size};
  work(&caller, user);
  gate_wait(&pool.done, over, pool.team.spin);
}

void team_run(int threads, void (*work)(team_member *member, void *user), void *user) {
  int size = threads > 0 ? threads : team_cores();
  if (size > MAX_THREADS) size = MAX_THREADS;
  if (size > 1) pthread_once(&pool_once, pool_start);
  if (size > 1 && pool_enter()) {
    size = pool_grow(size);
    if (size > 1) run_together(size, work, user);
    pool_leave();
    if (size > 1) return;
  }
  team_member alone = {NULL, 0, 1};
  work(&alone, user);
}

unsigned team_arrive(team_member *member) {
  if (member->size <= 1) return 0;
  team *t = member->team;
  /* Cannot change before this member has arrived. */
  unsigned passed = atomic_load_explicit(&t->barrier.value, memory_order_relaxed);
  if (atomic_fetch_add(&t->arrived, 1) == member->size - 1) {
    atomic_store(&t->arrived, 0);
    gate_set(&t->barrier, passed + 1);
  }
  return passed;
}

void team_wait(team_member *member, unsigned passed) {
  if (member->size <= 1) return;
  gate_wait(&member->team->barrier, passed, member->team->spin);
}

void team_barrier(team_member *member) {
  team_wait(member, team_arrive(member));
}

void team_share(const team_member *member, size_t count, size_t grain, size_t *first,
                size_t *last) {
  if (grain == 0) grain = 1;
  size_t units = count / grain + (count % grain != 0);
  size_t size = (size_t)member->size, rank = (size_t)member->rank;
  size_t each = units / size, more = units % size; /* the first `more` get one unit more */
  size_t from = rank * each + (rank < more ? rank : more);
  size_t to = from + each + (rank < more);
  *first = from < units ? from * grain : count;
  *last = to < units ? to * grain : count;
}
