/*
** base.h: what every part of the encoder stands on. The map of this folder:
**
**   error.c     fill a bert_error
**   memory.c    allocation through the caller's allocator, growing arrays
**   sort.c      sorting without allocation and without a bad case
**   hash.c      a hash of bytes under a secret seed
**   digest.c    a hash of bytes that is the same on every machine
**   json.c      a strict JSON reader for files that may be hostile
**   json_get.c  reading a parsed document
**   decimal.c   decimal numbers to the nearest double, whatever the locale
**   words.c     words that stand for a choice
**   team.c      threads that run one function together
**   cores.c     how many cores there are for them
**
** Includes nothing of the project but bert.h.
*/
#ifndef BERT_BASE_H
#define BERT_BASE_H

#include <stdarg.h>

#include "../bert.h"

/* ---- error.c ----------------------------------------------------------- */

#if defined(__GNUC__)
#define BERT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define BERT_PRINTF(text, first)
#endif

/* Fills *error (which may be NULL) with a status and a printf-style text, and
** returns the status, so that `return error_set(...)` reads as one step. The
** text is cut at a whole UTF-8 character. */
bert_status error_set(bert_error *error, bert_status status, const char *format, ...)
    BERT_PRINTF(3, 4);

/* Puts a printf-style text and ": " before the text that is there already:
** how a caller says in which file or for which value something went wrong.
** Returns the status that is there. */
bert_status error_prefix(bert_error *error, const char *format, ...) BERT_PRINTF(2, 3);

/* "out of memory while <doing>", BERT_NOMEM. */
bert_status error_nomem(bert_error *error, const char *doing);

/* Text from a file as it may stand in an error: what is long is cut at a whole
** character, so that the rest of the message is not lost, and control
** characters become '?'. Use as error_quote(name).text. NULL is "". */
typedef struct quoted {
  char text[80];
} quoted;
quoted error_quote(const char *text);

/* ---- memory.c ---------------------------------------------------------- */

/* Every block is aligned to MEMORY_ALIGN bytes. NULL when there is no memory
** or `bytes` overflows; a block of 0 bytes is a block. */
#define MEMORY_ALIGN 64
void *memory_alloc(uint64_t bytes);
void *memory_zero(uint64_t bytes);                /* filled with zeros */
void *memory_resize(void *block, uint64_t bytes); /* NULL keeps the old block */
void memory_free(void *block);                    /* NULL is allowed */

/* Gives the system what the C library keeps of freed blocks, wherever they came from.
** Goes through its whole heap: for when many megabytes were freed. */
void memory_give_back(void);

/* count * size, or UINT64_MAX when that overflows (which no allocator has). */
uint64_t memory_product(uint64_t count, uint64_t size);

/* A NUL-terminated copy of text[size]. */
char *memory_copy_text(const char *text, size_t size);

/* Makes room for one more element of `size` bytes in *array, which holds
** `count` and has room for *capacity; grows by half. 0 when out of memory,
** the array then being as before. */
int memory_grow(void **array, size_t count, size_t *capacity, size_t size);

/* ---- sort.c ------------------------------------------------------------ */

/* Sorts items[count] by compare(a, b), which says less, equal or greater as
** strcmp does. In n log n steps whatever the order was; not stable. */
void sort_pointers(const void **items, size_t count, int (*compare)(const void *a, const void *b));

/* ---- hash.c ------------------------------------------------------------ */

/* A hash that nobody can make collisions for without the seed. Not the same on
** machines of other byte order: not for files. */
uint64_t hash_bytes(const uint64_t seed[2], const void *bytes, size_t size);
void hash_seed(uint64_t seed[2]); /* a random one; seed[0] is not 0 */

/* ---- digest.c ---------------------------------------------------------- */

/* XXH3 of 128 bits, big-endian as xxHash's canonical form: the same on every
** machine and in every version, so files may hold it; its name there is
** "xxh3-128". For finding what changed, not against those who choose the bytes. */
enum { DIGEST_BYTES = 16 };
void digest_bytes(const void *bytes, size_t size, unsigned char out[DIGEST_BYTES]);

/* The same in parts: what digest_end gives is digest_bytes of all that was added,
** joined. No part of it can fail; digest_end may be asked again later. */
typedef struct digest_stream {
  uint64_t state[88]; /* digest.c's own */
} digest_stream;
void digest_begin(digest_stream *d);
void digest_add(digest_stream *d, const void *bytes, size_t size);
void digest_end(const digest_stream *d, unsigned char out[DIGEST_BYTES]);

/* A digest in hexadecimal, with a NUL behind. */
enum { DIGEST_TEXT = 2 * DIGEST_BYTES + 1 };
void digest_text(const unsigned char digest[DIGEST_BYTES], char text[DIGEST_TEXT]);

/* ---- json.c ------------------------------------------------------------ */

/* A parsed document: a tree of values in few blocks. Strict RFC 8259: no
** comments, no trailing commas, no duplicate keys, no NUL inside a string,
** no lone surrogates, UTF-8 checked, depth at most JSON_MAX_DEPTH, numbers
** finite. Errors name the byte offset and what was expected there. */
#define JSON_MAX_DEPTH 64

typedef enum json_type {
  JSON_NULL,
  JSON_FALSE,
  JSON_TRUE,
  JSON_NUMBER,
  JSON_STRING,
  JSON_ARRAY,
  JSON_OBJECT
} json_type;

typedef struct json_value json_value;
struct json_value {
  json_type type;
  uint32_t key_size; /* of the member's key, when inside an object */
  const char *key;   /* NUL-terminated, unescaped; NULL in an array */
  double number;
  int64_t integer;         /* where is_integer */
  int is_integer;          /* written without fraction and exponent, fits int64 */
  size_t size;             /* bytes of a string; members of array or object */
  const char *string;      /* NUL-terminated, unescaped */
  const json_value *first; /* first member of an array or object, or NULL */
  const json_value *next;  /* next member of the same parent, or NULL */
};

typedef struct json_document json_document;

/* Parses text[size] and stores the document in *document, to be freed with
** json_free. BERT_INVALID with the offset, BERT_NOMEM. */
bert_status json_parse(const char *text, size_t size, json_document **document, bert_error *error);
void json_free(json_document *document); /* NULL is allowed */
const json_value *json_root(const json_document *document);

/* ---- json_get.c -------------------------------------------------------- */

/* The member `key` of an object; NULL when it is absent, or `object` is NULL
** or no object. A member that is null is returned as such. Linear in the
** number of members: not for vocabularies, which are walked. */
const json_value *json_get(const json_value *object, const char *key);

/* Typed reading: leave *out as it is when the member is absent or null;
** BERT_INVALID, naming the key and what it should be, when it is of another
** type or out of range. */
bert_status json_get_int(const json_value *object, const char *key, int64_t low, int64_t high,
                         int64_t *out, bert_error *error);
bert_status json_get_number(const json_value *object, const char *key, double low, double high,
                            double *out, bert_error *error);
bert_status json_get_bool(const json_value *object, const char *key, int *out, bert_error *error);
bert_status json_get_string(const json_value *object, const char *key, const char **out,
                            bert_error *error);

/* "null", "a number", "an object", … for error texts. */
const char *json_type_name(json_type type);

/* 1 when the value is the string `text`. NULL values are allowed: 0. */
int json_is(const json_value *value, const char *text);

/* ---- decimal.c --------------------------------------------------------- */

/* The double nearest to text[size], a number as JSON writes it (the caller has
** checked that); ties to even, infinity when it is too large. */
double decimal_to_double(const char *text, size_t size);

/* ---- words.c ----------------------------------------------------------- */

/* 1 when `word` is `name`, whichever letters of A to Z are capitals. For words that
** stand for a choice ("bf16", "mean"), whatever the locale; neither is NULL. */
int word_is(const char *word, const char *name);

/* ---- team.c ------------------------------------------------------------ */

/* A team is a number of threads, the caller among them, that run one function
** together. There is one pool of threads in a process, made when first
** needed, with all signals blocked; it serves one team at a time, and a caller
** that finds it busy runs alone: many connections at once do not multiply
** threads. Works in the child of a fork, which makes its own. */
typedef struct team team;

/* One thread's place in its team. Rank 0 is the caller. */
typedef struct team_member {
  team *team;
  int rank;
  int size;
} team_member;

/* Runs work(member, user) on at most `threads` threads (0: one per core) and
** returns when all have returned. Never fails: with no threads to be had the
** caller runs alone, with size 1. `work` must not call team_run. */
void team_run(int threads, void (*work)(team_member *member, void *user), void *user);

/* All members wait here for each other; what each wrote before is seen by all
** after. Costs about a microsecond when all arrive together. */
void team_barrier(team_member *member);

/* The same in two steps: says that this member has come and, with what that returned,
** waits for the others. In between it may do what needs none of them. */
unsigned team_arrive(team_member *member);
void team_wait(team_member *member, unsigned passed);

/* The part [*first, *last) of `count` items, in multiples of `grain`, that
** falls to this member. The parts of all members are disjoint and complete. */
void team_share(const team_member *member, size_t count, size_t grain, size_t *first, size_t *last);

/* Cores this process may run on: its affinity mask, and a cgroup's quota. */
int team_cores(void);

/* The quota of the cgroups this process is in, in cores rounded up; 0: none.
** `root` stands before /proc and /sys: "" but for tests. */
int cores_quota(const char *root);

#endif
