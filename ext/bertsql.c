/*
** bertsql.c: the entry point; what bertsql keeps for a connection.
**
** A connection object is owned by the functions and modules registered with
** it. SQLite calls an xDestroy for each when it goes: when the connection
** closes, when another registration takes its name, and when registering it
** fails. The last one frees the object and gives its models back.
*/
#define BERTSQL_ENTRY
#include "ext.h"

#include "attention/attention.h"
#include "tasks/tasks.h"
#include "vtab/vtab.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

SQLITE_EXTENSION_INIT1

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "vectors are little-endian float32 and are read in place"
#endif

/* The oldest SQLite this is written for, and those that brought what is asked
** for at run time. */
enum { HOST_OLDEST = 3038000, HOST_IS_INTERRUPTED = 3041000, HOST_RESULT_SUBTYPE = 3045000 };

/* SQLITE_RESULT_SUBTYPE, which headers before 3.45 lack. */
#define FUNCTION_GIVES_SUBTYPE 0x001000000

struct connection {
  sqlite3 *db;
  int owners;
  int complete; /* every function and table is registered */
  settings settings;
  loaded_model *models;        /* in the order of loading */
  struct kept_pass *kept_pass; /* the last one looked into */
  struct vtab *tables;         /* the virtual tables that are connected */
  int64_t polled_at;           /* nanoseconds, when `interrupted` was last asked */
  connection *next;            /* in process.connections */
};

/* What all connections of the process share, behind `lock`. */
static struct {
  pthread_mutex_t lock;
  connection *connections;
  int started;
  char library[PATH_MAX];
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A fork while another thread loads bertsql or lets go of a connection must leave the child a
** lock that it can take. */
static void before_fork(void) {
  pthread_mutex_lock(&process.lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&process.lock);
}
static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- The host ---------------------------------------------------------- */

int host_has(int version) {
  return sqlite3_libversion_number() >= version;
}

static void *host_allocate(void *user, uint64_t bytes) {
  (void)user;
  return sqlite3_malloc64(bytes);
}

static void host_release(void *user, void *block) {
  (void)user;
  sqlite3_free(block);
}

const char *library_path(void) {
  return process.library;
}

/* A relative path means something only until the process changes its folder,
** so it is made absolute at the first load. A name without folder is that of
** a program that bertsql is linked into. */
static void find_library(void) {
  Dl_info info;
  char folder[PATH_MAX];
  const char *name = NULL;
  if (dladdr(&process, &info) != 0) name = info.dli_fname;
  if (name == NULL || strchr(name, '/') == NULL) {
    if (realpath("/proc/self/exe", process.library) == NULL) process.library[0] = 0;
  } else if (name[0] == '/' || getcwd(folder, sizeof folder) != NULL) {
    const char *before = name[0] == '/' ? "" : folder, *slash = name[0] == '/' ? "" : "/";
    while (strncmp(name, "./", 2) == 0) name += 2;
    int size = snprintf(process.library, PATH_MAX, "%s%s%s", before, slash, name);
    if (size >= PATH_MAX) process.library[0] = 0; /* half a path is none */
  }
}

/* SQLite unloads a library whose entry point fails, when it may have registered
** functions already, so it is made to stay before the first of them. */
static void stay_loaded(void) {
#ifndef SQLITE_CORE
  Dl_info info;
  if (dladdr(&process, &info) != 0) dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

/* Once a process. The encoder's memory comes from SQLite too, so that its
** limits and statistics hold for all of bertsql; but not from an SQLite built
** without mutexes, whose allocator the encoder's threads would break. */
static void start_process(void) {
  static const bert_allocator allocator = {host_allocate, host_release, NULL};
  if (process.started) return;
  if (sqlite3_threadsafe()) bert_set_allocator(&allocator);
  find_library();
  stay_loaded();
  process.started = 1;
}

/* Takes the host's API table. Memory from one copy of SQLite must not be freed
** by another, so the first copy in the process to load this library keeps it.
** The tables of old versions are short: only their first entries are touched
** before the version is known. `message` may be NULL. */
#ifndef SQLITE_CORE
static int adopt_host(const sqlite3_api_routines *api, char **message) {
  char *text = NULL;
  if (api->libversion_number() < HOST_OLDEST)
    text = api->mprintf("bertsql needs SQLite 3.38 or later; this is %s", api->libversion());
  else if (sqlite3_api == NULL || sqlite3_api == api) {
    if (sqlite3_api == NULL) sqlite3_api = api;
    return SQLITE_OK;
  } else
    text = api->mprintf("another copy of SQLite in this process (%s) uses this bertsql already; "
                        "to use bertsql from this one (%s) too, load a copy of the library file "
                        "under another path",
                        sqlite3_api->libversion(), api->libversion());
  if (message != NULL)
    *message = text;
  else
    api->free(text);
  return SQLITE_ERROR;
}
#else
static int adopt_host(const sqlite3_api_routines *api, char **message) {
  (void)api;
  if (host_has(HOST_OLDEST)) return SQLITE_OK;
  if (message != NULL)
    *message =
        sqlite3_mprintf("bertsql needs SQLite 3.38 or later; this is %s", sqlite3_libversion());
  return SQLITE_ERROR;
}
#endif

/* ---- Interrupts -------------------------------------------------------- */

typedef int (*interrupt_call)(sqlite3 *);

/* sqlite3_is_interrupted, or NULL where there is none. Headers of 3.40 do not
** know it, but theirs end with value_encoding, the table only ever grows at its
** end, and in a later host this entry comes next. */
static interrupt_call host_is_interrupted(void) {
  interrupt_call call = NULL;
  if (!host_has(HOST_IS_INTERRUPTED)) return NULL;
#if SQLITE_VERSION_NUMBER >= 3041000
  call = sqlite3_is_interrupted;
#elif SQLITE_VERSION_NUMBER >= 3040000 && !defined(SQLITE_CORE)
  _Static_assert(offsetof(sqlite3_api_routines, value_encoding) + sizeof(call) ==
                     sizeof(sqlite3_api_routines),
                 "value_encoding is the last entry of the table of 3.40");
  memcpy(&call, (const char *)sqlite3_api + sizeof(sqlite3_api_routines), sizeof call);
#endif
  return call;
}

const char *interrupt_method(void) {
  return host_is_interrupted() != NULL ? "sqlite3_is_interrupted" : "statement";
}

/* A statement that starts while the connection is interrupted ends at once
** with SQLITE_INTERRUPT, as long as another one is running, and here one is.
** It is made for each question, since one left open would keep the connection
** from closing; it reads no table, so it cannot lead back into bertsql. */
static int ask_statement(sqlite3 *db) {
  sqlite3_stmt *statement = NULL;
  int rc = sqlite3_prepare_v2(db, "SELECT 1", -1, &statement, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  sqlite3_finalize(statement);
  return rc == SQLITE_INTERRUPT;
}

/* A statement takes a few microseconds, a layer of a short text a hundred:
** asking at most every 5 milliseconds costs nothing and nobody waits longer. */
static int statement_is_due(connection *c) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
  if (now - c->polled_at < 5000000) return 0;
  c->polled_at = now;
  return 1;
}

int connection_interrupted(void *user) {
  connection *c = user;
  interrupt_call ask = host_is_interrupted();
  if (ask != NULL) return ask(c->db);
  return statement_is_due(c) && ask_statement(c->db);
}

/* ---- Connections ------------------------------------------------------- */

sqlite3 *connection_db(const connection *c) {
  return c->db;
}

settings *connection_settings(connection *c) {
  return &c->settings;
}

loaded_model **connection_models(connection *c) {
  return &c->models;
}

struct kept_pass **connection_kept_pass(connection *c) {
  return &c->kept_pass;
}

struct vtab **connection_tables(connection *c) {
  return &c->tables;
}

connection *function_connection(sqlite3_context *context) {
  return sqlite3_user_data(context);
}

connection *connection_hold(connection *c) {
  c->owners++;
  return c;
}

static void forget(connection *c) {
  pthread_mutex_lock(&process.lock);
  connection **link = &process.connections;
  while (*link != c) link = &(*link)->next;
  *link = c->next;
  pthread_mutex_unlock(&process.lock);
}

void connection_drop(void *user) {
  connection *c = user;
  if (--c->owners > 0) return;
  forget(c);
  connection_forget_pass(c);
  registry_clear(c);
  sqlite3_free(c);
}

/* The connection object of `db`, held: the one there is when bertsql is loaded
** a second time, so that the models stay. Called under the lock. */
static connection *connection_of(sqlite3 *db) {
  connection *c = process.connections;
  while (c != NULL && c->db != db) c = c->next;
  if (c != NULL) return connection_hold(c);
  c = sqlite3_malloc64(sizeof *c);
  if (c == NULL) return NULL;
  memset(c, 0, sizeof *c);
  c->db = db;
  c->owners = 1;
  c->settings.search_cache = SEARCH_CACHE;
  c->next = process.connections;
  process.connections = c;
  return c;
}

/* ---- Registering ------------------------------------------------------- */

static int register_functions(connection *c, const function_entry *f, const char **failed) {
  for (; f->name != NULL; f++) {
    int flags = SQLITE_UTF8 | f->flags;
    if (f->gives_subtype && host_has(HOST_RESULT_SUBTYPE)) flags |= FUNCTION_GIVES_SUBTYPE;
    for (int args = f->min_args; args <= f->max_args; args++) {
      int rc = sqlite3_create_function_v2(c->db, f->name, args, flags, connection_hold(c), f->call,
                                          NULL, NULL, connection_drop);
      if (rc != SQLITE_OK) {
        *failed = f->name;
        return rc;
      }
    }
  }
  return SQLITE_OK;
}

static int register_everything(connection *c, const char **failed) {
  static const function_entry *const functions[] = {
      functions_model,     functions_settings, functions_embed, functions_vector,
      functions_attention, functions_pictures, functions_html,  functions_tasks};
  static const table_function *const tables[] = {
      &table_models,       &table_tokens,       &table_chunks,     &table_hidden,
      &table_embed_rows,   &table_attn_weights, &table_attn_heads, &table_attn_rollout,
      &table_attn_neurons, &table_status,       &table_classify,   &table_entities,
      &table_fill,
  };
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    int rc = register_functions(c, functions[i], failed);
    if (rc != SQLITE_OK) return rc;
  }
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    int rc = table_register(c, tables[i]);
    if (rc != SQLITE_OK) {
      *failed = tables[i]->name;
      return rc;
    }
  }
  *failed = "the virtual table bertsql";
  return vtab_register(c);
}

static int register_on(connection *c, char **message) {
  const char *failed = "";
  if (c->complete) return SQLITE_OK;
  int rc = register_everything(c, &failed);
  if (rc == SQLITE_OK)
    c->complete = 1;
  else if (rc != SQLITE_NOMEM && message != NULL)
    *message = sqlite3_mprintf("bertsql could not register %s: %s", failed, sqlite3_errmsg(c->db));
  return rc;
}

/* ---- Entry ------------------------------------------------------------- */

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int sqlite3_bertsql_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);

int sqlite3_bertsql_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  connection *c = NULL;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&process.lock);
  int rc = adopt_host(api, message);
  if (rc == SQLITE_OK) {
    start_process();
    c = connection_of(db);
    if (c == NULL) rc = SQLITE_NOMEM;
  }
  pthread_mutex_unlock(&process.lock);
  if (rc != SQLITE_OK) return rc;
  rc = register_on(c, message);
  connection_drop(c);
#ifndef SQLITE_CORE
  if (rc == SQLITE_OK) rc = SQLITE_OK_LOAD_PERMANENTLY;
#endif
  return rc;
}
