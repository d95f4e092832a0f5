/*
** test_safetensors.c: mapped files, small files, and every rule of the
** safetensors format with a file that breaks it.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "encoder/files/files.h"
#include "faults.h"
#include "scratch.h"

static const char minilm[] = "models/all-MiniLM-L6-v2";
static const char family[] = "tests/golden/families/bert-mean";

static void expect(bert_status status, bert_status expected, const bert_error *error,
                   const char *part) {
  if (status != expected || error->status != expected)
    fail_msg("status %d, expected %d: %s", (int)status, (int)expected, error->text);
  if (strstr(error->text, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", error->text, part);
}

static void expect_ok(bert_status status, const bert_error *error) {
  if (status != BERT_OK) fail_msg("status %d: %s", (int)status, error->text);
}

/* ---- mapping.c --------------------------------------------------------- */

static void test_mapping_content(void **state) {
  char *directory = scratch_new();
  char *path = path_join(directory, "file");
  for (int copy = 0; copy < 2; copy++) {
    scratch_write(directory, "file", "hello", 5);
    mapping m = {0};
    assert_int_equal(mapping_open(path, copy, &m, NULL), BERT_OK);
    assert_int_equal(m.size, 5);
    assert_memory_equal(m.data, "hello", 5);
    assert_int_equal(m.copied, copy);
    assert_int_equal((uintptr_t)m.data % 64, 0);
    assert_int_equal(mapping_check(&m, path, NULL), BERT_OK);
    if (!copy)
      assert_true(fcntl(m.descriptor, F_GETFD) & FD_CLOEXEC);
    else
      assert_int_equal(m.descriptor, -1);
    mapping_close(&m);
    assert_null(m.data);
    mapping_close(&m);
    scratch_write(directory, "file", "", 0);
    assert_int_equal(mapping_open(path, copy, &m, NULL), BERT_OK);
    assert_null(m.data);
    assert_int_equal(m.size, 0);
    assert_int_equal(mapping_check(&m, path, NULL), BERT_OK);
    mapping_close(&m);
  }
  mapping zeroed = {0};
  mapping_close(&zeroed);
  assert_true(fcntl(0, F_GETFD) != -1); /* closed nothing of ours */
  memory_free(path);
  scratch_free(directory);
}

static void test_mapping_refuses(void **state) {
  char *directory = scratch_new();
  char *fifo = path_join(directory, "fifo"), *missing = path_join(directory, "missing");
  bert_error error = {0};
  mapping m = {0};
  assert_int_equal(mkfifo(fifo, 0600), 0);
  expect(mapping_open(directory, 0, &m, &error), BERT_IO, &error, "a directory, not a regular");
  expect(mapping_open(fifo, 0, &m, &error), BERT_IO, &error, "a device or a pipe");
  expect(mapping_open(fifo, 1, &m, &error), BERT_IO, &error, fifo);
  expect(mapping_open("/dev/zero", 1, &m, &error), BERT_IO, &error, "a device or a pipe");
  expect(mapping_open(missing, 0, &m, &error), BERT_IO, &error, "No such file");
  expect(mapping_open(missing, 1, &m, &error), BERT_IO, &error, missing);
  assert_null(m.data);
  memory_free(fifo);
  memory_free(missing);
  scratch_free(directory);
}

static void test_mapping_changes(void **state) {
  char *directory = scratch_new();
  char *path = path_join(directory, "file"), *other = path_join(directory, "other");
  bert_error error = {0};
  mapping m = {0};
  scratch_write(directory, "file", "hello", 5);
  assert_int_equal(mapping_open(path, 0, &m, &error), BERT_OK);
  /* replaced by rename: the mapped file lives on */
  scratch_write(directory, "other", "a longer text", 13);
  assert_int_equal(rename(other, path), 0);
  assert_int_equal(mapping_check(&m, path, &error), BERT_OK);
  assert_memory_equal(m.data, "hello", 5);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mapping_check(&m, path, &error), BERT_OK);
  mapping_close(&m);
  /* written in place, same size */
  scratch_write(directory, "file", "hello", 5);
  assert_int_equal(mapping_open(path, 0, &m, &error), BERT_OK);
  usleep(20000);
  scratch_write(directory, "file", "HELLO", 5);
  expect(mapping_check(&m, path, &error), BERT_CHANGED, &error, "changed on disk");
  mapping_close(&m);
  /* cut short, with the old time put back */
  struct stat before;
  assert_int_equal(stat(path, &before), 0);
  assert_int_equal(mapping_open(path, 0, &m, &error), BERT_OK);
  assert_int_equal(truncate(path, 2), 0);
  struct timespec times[2] = {before.st_atim, before.st_mtim};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  expect(mapping_check(&m, path, &error), BERT_CHANGED, &error, path);
  mapping_close(&m);
  /* a copy does not care */
  scratch_write(directory, "file", "hello", 5);
  assert_int_equal(mapping_open(path, 1, &m, &error), BERT_OK);
  assert_int_equal(truncate(path, 0), 0);
  assert_int_equal(mapping_check(&m, path, &error), BERT_OK);
  assert_memory_equal(m.data, "hello", 5);
  mapping_close(&m);
  memory_free(path);
  memory_free(other);
  scratch_free(directory);
}

/* What the kernel has noted about the mapping at `address`; "" if it says nothing. */
static void mapping_flags(const void *address, char flags[512]) {
  FILE *maps = fopen("/proc/self/smaps", "r");
  char line[512];
  int here = 0;
  flags[0] = 0;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    char *end;
    uintptr_t first = (uintptr_t)strtoull(line, &end, 16); /* first-last in hexadecimal */
    if (end > line && *end == '-')
      here = (uintptr_t)address >= first &&
             (uintptr_t)address < (uintptr_t)strtoull(end + 1, NULL, 16);
    if (here && strncmp(line, "VmFlags:", 8) == 0) memcpy(flags, line, sizeof line);
  }
  if (maps != NULL) fclose(maps);
}

static void test_mapping_asks_for_huge_pages(void **state) {
  if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
    print_message("huge pages: skipped, this kernel has none\n");
    return;
  }
  char flags[512], *path = path_join(minilm, "model.safetensors");
  mapping m = {0};
  assert_int_equal(mapping_open(path, 0, &m, NULL), BERT_OK);
  mapping_flags(m.data, flags);
  if (strstr(flags, " hg ") == NULL) fail_msg("not advised: \"%s\"", flags);
  mapping_close(&m);
  memory_free(path);
}

static void test_small_files(void **state) {
  char *directory = scratch_new(), *text = NULL;
  bert_error error = {0};
  size_t size = 0;
  scratch_write(directory, "file", "a\0b", 3);
  assert_int_equal(file_read(directory, "file", 3, 0, &text, &size, NULL), BERT_OK);
  assert_int_equal(size, 3);
  assert_memory_equal(text, "a\0b", 4);
  memory_free(text);
  expect(file_read(directory, "file", 2, 0, &text, &size, &error), BERT_INVALID, &error,
         "has 3 bytes, more than the 2");
  expect(file_read(directory, "none", 9, 0, &text, &size, &error), BERT_IO, &error, "/none");
  assert_int_equal(file_read(directory, "none", 9, 1, &text, &size, NULL), BERT_OK);
  assert_null(text);
  assert_int_equal(file_read(directory, "file/below", 9, 1, &text, &size, NULL), BERT_OK);
  assert_null(text);
  expect(file_read(directory, "", 9, 1, &text, &size, &error), BERT_IO, &error, "a directory");
  assert_true(path_exists(directory, "file"));
  assert_false(path_exists(directory, "none"));
  json_document *document = NULL;
  scratch_write(directory, "file", "[1,", 3);
  expect(file_read_json(directory, "file", 0, JSON_ARRAY, &document, &error), BERT_INVALID, &error,
         "/file: byte 3 (line 1): expected a value");
  scratch_write(directory, "file", "[1]", 3);
  expect(file_read_json(directory, "file", 0, JSON_OBJECT, &document, &error), BERT_INVALID, &error,
         "/file: expected an object, not an array");
  assert_int_equal(file_read_json(directory, "none", 1, JSON_OBJECT, &document, &error), BERT_OK);
  assert_null(document);
  assert_int_equal(file_read_json(directory, "file", 1, JSON_ARRAY, &document, &error), BERT_OK);
  assert_int_equal(json_root(document)->size, 1);
  json_free(document);
  scratch_free(directory);
}

static void check_join(const char *directory, const char *name, const char *expected) {
  char *path = path_join(directory, name);
  assert_string_equal(path, expected);
  memory_free(path);
}

static void test_path_join(void **state) {
  check_join("a", "b", "a/b");
  check_join("a/", "b", "a/b");
  check_join("/", "b", "/b");
  check_join("a", "", "a");
  check_join("", "b", "b");
  check_join("", "", "");
}

/* ---- Files of the format ----------------------------------------------- */

/* Writes directory/name: the length of `header`, or `length` where that is not
** negative, the header, and `data` bytes that count up. */
static void write_tensors(const char *directory, const char *name, const char *header,
                          int64_t length, size_t data) {
  size_t size = strlen(header);
  unsigned char *bytes = malloc(8 + size + data);
  uint64_t stated = length < 0 ? size : (uint64_t)length;
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(stated >> (8 * i));
  memcpy(bytes + 8, header, size);
  for (size_t i = 0; i < data; i++) bytes[8 + size + i] = (unsigned char)i;
  scratch_write(directory, name, bytes, 8 + size + data);
  free(bytes);
}

static bert_status open_model(const char *directory, int copy, tensor_file **f, bert_error *error) {
  *f = NULL;
  return tensors_open(directory, "model.safetensors", copy, f, error);
}

#define ONE "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}"

static void test_reads(void **state) {
  static const char header[] =
      "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"},"
      "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[24,30]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
      "\"scalar\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[30,38]},"
      "\"empty\":{\"dtype\":\"F16\",\"shape\":[4,0,9],\"data_offsets\":[38,38]},"
      "\"none\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[0,0]},"
      "\"half\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[38,39]},"
      "\"new\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[39,40],\"more\":null}}   ";
  char *directory = scratch_new();
  write_tensors(directory, "model.safetensors", header, -1, 40);
  for (int copy = 0; copy < 2; copy++) {
    tensor_file *f;
    bert_error error = {0};
    expect_ok(open_model(directory, copy, &f, &error), &error);
    assert_int_equal(tensors_count(f), 7);
    const tensor *a = tensors_find(f, "a");
    assert_true(a->type == TENSOR_F32 && a->rank == 2 && a->shape[0] == 2 && a->shape[1] == 3);
    assert_int_equal(a->size, 24);
    assert_string_equal(a->name, "a");
    for (int i = 0; i < 24; i++) assert_int_equal(((const unsigned char *)a->data)[i], i);
    const tensor *b = tensors_find(f, "b");
    assert_true(b->type == TENSOR_BF16 && b->rank == 1 && b->size == 6);
    assert_int_equal(*(const unsigned char *)b->data, 24);
    assert_true(tensors_find(f, "scalar")->rank == 0 && tensors_find(f, "scalar")->size == 8);
    assert_int_equal(tensors_find(f, "empty")->size, 0);
    assert_int_equal(tensors_find(f, "new")->type, TENSOR_OTHER);
    assert_null(tensors_find(f, "__metadata__"));
    assert_null(tensors_find(f, ""));
    assert_null(tensors_find(f, "zzz"));
    assert_string_equal(tensors_at(f, 0)->name, "b");
    assert_null(tensors_at(f, 7));
    uint64_t size = 8 + strlen(header) + 40;
    assert_int_equal(tensors_mapped_bytes(f), copy ? 0 : size);
    assert_int_equal(tensors_private_bytes(f), copy ? size : 0);
    assert_int_equal(tensors_check(f, NULL), BERT_OK);
    tensors_close(f);
  }
  tensors_close(NULL);
  scratch_free(directory);
}

static void test_reads_every_dtype(void **state) {
  static const struct {
    const char *name;
    tensor_type type;
    int bits;
  } types[] = {
      {"F64", TENSOR_F64, 64},      {"F32", TENSOR_F32, 32},      {"F16", TENSOR_F16, 16},
      {"BF16", TENSOR_BF16, 16},    {"I64", TENSOR_I64, 64},      {"I32", TENSOR_I32, 32},
      {"I16", TENSOR_I16, 16},      {"I8", TENSOR_I8, 8},         {"U8", TENSOR_U8, 8},
      {"BOOL", TENSOR_BOOL, 8},     {"U64", TENSOR_OTHER, 64},    {"U32", TENSOR_OTHER, 32},
      {"U16", TENSOR_OTHER, 16},    {"C64", TENSOR_OTHER, 64},    {"F8_E5M2", TENSOR_OTHER, 8},
      {"F8_E8M0", TENSOR_OTHER, 8}, {"F6_E2M3", TENSOR_OTHER, 6}, {"F4", TENSOR_OTHER, 4}};
  char *directory = scratch_new(), header[200];
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    int bytes = types[i].bits; /* 8 elements */
    snprintf(header, sizeof header,
             "{\"t\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}", types[i].name,
             bytes);
    write_tensors(directory, "model.safetensors", header, -1, (size_t)bytes);
    tensor_file *f;
    bert_error error = {0};
    expect_ok(open_model(directory, 0, &f, &error), &error);
    assert_int_equal(tensors_find(f, "t")->type, types[i].type);
    tensors_close(f);
  }
  scratch_free(directory);
}

typedef struct bad_file {
  const char *header;
  int64_t length; /* the stated one, or -1 */
  size_t data;
  bert_status status;
  const char *part;
} bad_file;

#define T(dtype, shape, offsets)                                                                   \
  "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const bad_file bad_files[] = {
    {ONE, 0, 24, BERT_INVALID, "does not begin with '{'"},
    {ONE, 1000, 24, BERT_INVALID, "a header of 1000 bytes does not fit the file of"},
    {ONE, INT64_MAX, 24, BERT_INVALID, "is more than the 100000000 allowed"},
    {ONE, 100000001, 24, BERT_INVALID, "a header of 100000001 bytes is more than"},
    {ONE, 100000000, 24, BERT_INVALID, "does not fit"},
    {ONE, 20, 24, BERT_INVALID, "header: byte"},
    {" " ONE, -1, 24, BERT_INVALID, "does not begin with '{'"},
    {"[]", -1, 0, BERT_INVALID, "does not begin with '{'"},
    {ONE "x", -1, 24, BERT_INVALID, "nothing more"},
    {"{", -1, 0, BERT_INVALID, "header: byte 1"},
    {ONE, -1, 23, BERT_INVALID,
     "tensor \"a\": it ends at byte 24 of the data, but the file has only 23: it was cut off; "
     "fetch it anew"},
    {ONE, -1, 25, BERT_INVALID, "end at byte 24 of the data, but the file has 25"},
    {"{}", -1, 1, BERT_INVALID, "end at byte 0"},
    {"{\"__metadata__\":{\"a\":1}}", -1, 0, BERT_INVALID, "must map strings to strings"},
    {"{\"__metadata__\":[]}", -1, 0, BERT_INVALID, "must map strings to strings"},
    {"{\"__metadata__\":null}", -1, 0, BERT_INVALID, "must map strings to strings"},
    {"{\"a\":1}", -1, 0, BERT_INVALID, "tensor \"a\": its entry is no object"},
    {"{\"a\":{}}", -1, 0, BERT_INVALID, "dtype is missing"},
    {"{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,0]}}", -1, 0, BERT_INVALID,
     "dtype is missing"},
    {"{\"a\":" T("F31", "[1]", "[0,4]") "}", -1, 4, BERT_UNSUPPORTED, "unknown dtype \"F31\""},
    {"{\"a\":" T("f32", "[1]", "[0,4]") "}", -1, 4, BERT_UNSUPPORTED, "unknown dtype \"f32\""},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", -1, 4, BERT_INVALID, "shape is missing"},
    {"{\"a\":" T("F32", "4", "[0,4]") "}", -1, 4, BERT_INVALID, "shape is missing or no array"},
    {"{\"a\":" T("F32", "[-1]", "[0,4]") "}", -1, 4, BERT_INVALID, "something other than a size"},
    {"{\"a\":" T("F32", "[1.0]", "[0,4]") "}", -1, 4, BERT_INVALID, "something other than a size"},
    {"{\"a\":" T("F32", "[\"1\"]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "something other than a size"},
    {"{\"a\":" T("F32", "[18446744073709551616]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "other than a size"},
    {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", -1, 4, BERT_UNSUPPORTED,
     "it has 9 dimensions"},
    {"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "beyond 64 bits"},
    {"{\"a\":" T("F32", "[9223372036854775807,3]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "beyond 64 bits"},
    {"{\"a\":" T("F32", "[4611686018427387905]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "no whole number"},
    {"{\"a\":" T("F4", "[3]", "[0,1]") "}", -1, 1, BERT_INVALID, "no whole number of bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", -1, 4, BERT_INVALID, "data_offsets are missing"},
    {"{\"a\":" T("F32", "[1]", "[0]") "}", -1, 4, BERT_INVALID, "data_offsets are missing"},
    {"{\"a\":" T("F32", "[1]", "[0,4,8]") "}", -1, 4, BERT_INVALID, "data_offsets are missing"},
    {"{\"a\":" T("F32", "[1]", "{\"0\":4}") "}", -1, 4, BERT_INVALID, "data_offsets are missing"},
    {"{\"a\":" T("F32", "[1]", "[0,4.0]") "}", -1, 4, BERT_INVALID,
     "something other than an offset"},
    {"{\"a\":" T("F32", "[1]", "[-4,0]") "}", -1, 4, BERT_INVALID,
     "something other than an offset"},
    {"{\"a\":" T("F32", "[1]", "[4,0]") "}", -1, 4, BERT_INVALID, "end before they begin"},
    {"{\"a\":" T("F32", "[2]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "need 8 bytes, its data_offsets give 4"},
    {"{\"a\":" T("F64", "[1]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "need 8 bytes, its data_offsets give 4"},
    {"{\"a\":" T("F32", "[0]", "[0,4]") "}", -1, 4, BERT_INVALID, "need 0 bytes"},
    {"{\"a\":" T("F32", "[1]", "[9223372036854775800,9223372036854775804]") "}", -1, 4,
     BERT_INVALID, "it ends at byte 9223372036854775804"},
    {"{\"a\":" T("F32", "[1]", "[4,8]") "}", -1, 8, BERT_INVALID, "a hole before it"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[8,12]") "}", -1, 12,
     BERT_INVALID,
     "tensor \"b\": it begins at byte 8 of the data, where 4 was expected: a hole before it"},
    {"{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[2]", "[4,12]") "}", -1, 12,
     BERT_INVALID,
     "tensor \"b\": it begins at byte 4 of the data, where 8 was expected: tensors overlap"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}", -1, 4, BERT_INVALID,
     "tensors overlap"},
    {"{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[0]", "[4,4]") "}", -1, 8, BERT_INVALID,
     "tensors overlap"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", -1, 8, BERT_INVALID,
     "\"a\" stands twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", -1, 4,
     BERT_INVALID, "\"dtype\" stands twice"},
};

static void test_refuses(void **state) {
  char *directory = scratch_new();
  for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
    const bad_file *b = &bad_files[i];
    write_tensors(directory, "model.safetensors", b->header, b->length, b->data);
    for (int copy = 0; copy < 2; copy++) {
      tensor_file *f;
      bert_error error = {0};
      bert_status status = open_model(directory, copy, &f, &error);
      assert_null(f);
      expect(status, b->status, &error, b->part);
      expect(status, b->status, &error, "/model.safetensors: ");
    }
  }
  scratch_free(directory);
}

static void test_refuses_high_bit_length(void **state) {
  char *directory = scratch_new();
  tensor_file *f;
  bert_error error = {0};
  unsigned char bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0x80, '{', '}'}; /* 2^63 */
  scratch_write(directory, "model.safetensors", bytes, sizeof bytes);
  expect(open_model(directory, 0, &f, &error), BERT_INVALID, &error, "9223372036854775808 bytes");
  memset(bytes, 0xFF, 8);
  scratch_write(directory, "model.safetensors", bytes, sizeof bytes);
  expect(open_model(directory, 0, &f, &error), BERT_INVALID, &error, "18446744073709551615 bytes");
  for (size_t size = 0; size < 8; size++) {
    scratch_write(directory, "model.safetensors", bytes, size);
    expect(open_model(directory, 0, &f, &error), BERT_INVALID, &error, "too few for a header");
  }
  scratch_free(directory);
}

/* Cut at every byte, a file is no longer one. */
static void test_refuses_cut(void **state) {
  char *directory = scratch_new();
  write_tensors(directory, "model.safetensors", ONE, -1, 24);
  size_t size;
  char *bytes = scratch_read(directory, "model.safetensors", &size);
  for (size_t cut = 0; cut < size; cut++) {
    tensor_file *f;
    bert_error error = {0};
    scratch_write(directory, "model.safetensors", bytes, cut);
    assert_int_equal(open_model(directory, cut % 2 != 0, &f, &error), BERT_INVALID);
    assert_null(f);
  }
  free(bytes);
  scratch_free(directory);
}

/* ---- Shards ------------------------------------------------------------ */

#define A "{\"a\":" T("F32", "[1]", "[0,4]") "}"
#define B "{\"b\":" T("F32", "[1]", "[0,4]") "}"
#define INDEX(map) "{\"metadata\":{\"total_size\":8},\"weight_map\":" map "}"

static void write_index(const char *directory, const char *text) {
  scratch_write(directory, "model.safetensors.index.json", text, strlen(text));
}

static char *sharded_directory(void) {
  char *directory = scratch_new();
  write_tensors(directory, "one.safetensors", A, -1, 4);
  write_tensors(directory, "two.safetensors", B, -1, 4);
  write_index(directory, INDEX("{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}"));
  return directory;
}

static void test_shards(void **state) {
  char *directory = sharded_directory();
  tensor_file *f;
  bert_error error = {0};
  expect_ok(open_model(directory, 0, &f, &error), &error);
  assert_int_equal(tensors_count(f), 2);
  assert_int_equal(tensors_find(f, "a")->size, 4);
  assert_int_equal(tensors_find(f, "b")->size, 4);
  assert_int_equal(tensors_mapped_bytes(f), 2 * (8 + strlen(A) + 4));
  assert_int_equal(tensors_check(f, &error), BERT_OK);
  usleep(20000);
  write_tensors(directory, "two.safetensors", B, -1, 4);
  expect(tensors_check(f, &error), BERT_CHANGED, &error, "two.safetensors changed");
  tensors_close(f);
  /* one whole file counts more than an index */
  write_tensors(directory, "model.safetensors", A, -1, 4);
  expect_ok(open_model(directory, 0, &f, &error), &error);
  assert_int_equal(tensors_count(f), 1);
  tensors_close(f);
  scratch_free(directory);
}

static void test_shards_refused(void **state) {
  static const struct {
    const char *index;
    bert_status status;
    const char *part;
  } cases[] = {
      {"[]", BERT_INVALID, "expected an object, not an array"},
      {"{}", BERT_INVALID, "\"weight_map\" must name"},
      {INDEX("[]"), BERT_INVALID, "\"weight_map\" must name"},
      {INDEX("{}"), BERT_INVALID, "\"weight_map\" must name"},
      {INDEX("{\"a\":1}"), BERT_INVALID,
       "\"a\" must be in a file of the same directory, not a number"},
      {INDEX("{\"a\":\"\"}"), BERT_INVALID, "same directory"},
      {INDEX("{\"a\":\"..\"}"), BERT_INVALID, "not .."},
      {INDEX("{\"a\":\".\"}"), BERT_INVALID, "same directory"},
      {INDEX("{\"a\":\"../one.safetensors\"}"), BERT_INVALID, "not ../one.safetensors"},
      {INDEX("{\"a\":\"/etc/passwd\"}"), BERT_INVALID, "not /etc/passwd"},
      {INDEX("{\"a\":\"x/one.safetensors\"}"), BERT_INVALID, "not x/one.safetensors"},
      {INDEX("{\"a\":\"three.safetensors\"}"), BERT_IO, "three.safetensors: No such file"},
      {INDEX("{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"}"), BERT_INVALID,
       "tensor \"b\" is not in one.safetensors"},
      {INDEX("{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}"), BERT_INVALID,
       "tensor \"a\" is not in two.safetensors"},
      {INDEX("{\"c\":\"one.safetensors\"}"), BERT_INVALID, "tensor \"c\" is not in"},
      {INDEX("{\"a\":\"one.safetensors\",\"c\":\"again.safetensors\"}"), BERT_INVALID,
       "tensor \"a\" stands in two of the files"},
      {INDEX("{\"a\":\"one.safetensors\",\"a\":\"two.safetensors\"}"), BERT_INVALID,
       "stands twice"},
      {INDEX("{\"a\":\"broken.safetensors\"}"), BERT_INVALID,
       "broken.safetensors: the tensors end at"},
  };
  char *directory = sharded_directory();
  write_tensors(directory, "again.safetensors", A, -1, 4);
  write_tensors(directory, "broken.safetensors", A, -1, 9);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tensor_file *f;
    bert_error error = {0};
    write_index(directory, cases[i].index);
    bert_status status = open_model(directory, 0, &f, &error);
    assert_null(f);
    expect(status, cases[i].status, &error, cases[i].part);
    expect(status, cases[i].status, &error, "model.safetensors.index.json: ");
  }
  scratch_free(directory);
}

static void test_too_many_shards(void **state) {
  char *directory = scratch_new(), name[40], header[100];
  char *index = malloc(40000), *at = stpcpy(index, "{\"weight_map\":{");
  for (int i = 0; i < 257; i++) {
    snprintf(name, sizeof name, "%d.safetensors", i);
    snprintf(header, sizeof header, "{\"t%d\":" T("U8", "[1]", "[0,1]") "}", i);
    write_tensors(directory, name, header, -1, 1);
    at += sprintf(at, "%s\"t%d\":\"%s\"", i ? "," : "", i, name);
  }
  strcpy(at, "}}");
  write_index(directory, index);
  tensor_file *f;
  bert_error error = {0};
  expect(open_model(directory, 0, &f, &error), BERT_UNSUPPORTED, &error, "more than 256 files");
  assert_null(f);
  *strrchr(index, ',') = '\0';
  strcat(index, "}}");
  write_index(directory, index);
  expect_ok(open_model(directory, 0, &f, &error), &error);
  assert_int_equal(tensors_count(f), 256);
  tensors_close(f);
  free(index);
  scratch_free(directory);
}

static void test_nothing_there(void **state) {
  char *directory = scratch_new();
  tensor_file *f;
  bert_error error = {0};
  expect(open_model(directory, 0, &f, &error), BERT_IO, &error,
         "has no model.safetensors and no model.safetensors.index.json; other formats of weights, "
         "such as ONNX and GGUF, are not read");
  assert_null(strstr(error.text, "pickle"));
  scratch_write(directory, "pytorch_model.bin", "x", 1);
  expect(open_model(directory, 0, &f, &error), BERT_IO, &error, "pytorch_model.bin is a pickle");
  scratch_free(directory);
}

/* ---- Real files -------------------------------------------------------- */

static void test_real_model(void **state) {
  tensor_file *f;
  bert_error error = {0};
  expect_ok(open_model(minilm, 0, &f, &error), &error);
  assert_int_equal(tensors_mapped_bytes(f), 90868376);
  const tensor *words = tensors_find(f, "embeddings.word_embeddings.weight");
  assert_non_null(words);
  assert_true(words->type == TENSOR_F32 && words->rank == 2);
  assert_true(words->shape[0] == 30522 && words->shape[1] == 384);
  for (size_t i = 0; i < tensors_count(f); i++) {
    const tensor *t = tensors_at(f, i);
    assert_ptr_equal(tensors_find(f, t->name), t);
  }
  tensors_close(f);
}

/* ---- Harm -------------------------------------------------------------- */

static void test_mutated_headers(void **state) {
  static const char base[] =
      "{\"a\":" T("F32", "[2,1]", "[0,8]") ",\"b\":" T("F16", "[4]", "[8,16]") "}";
  static const char alphabet[] = "{}[]\",:0123456789-.eFBI \\\xFF";
  char *directory = scratch_new(), text[sizeof base];
  uint64_t random = 99991;
  int good = 0;
  for (int i = 0; i < 4000; i++) {
    memcpy(text, base, sizeof base);
    for (int k = (int)(random >> 62); k >= 0; k--) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      text[(random >> 33) % (sizeof base - 1)] = alphabet[(random >> 20) % (sizeof alphabet - 1)];
    }
    write_tensors(directory, "model.safetensors", text, -1, 16);
    tensor_file *f;
    bert_error error = {0};
    bert_status status = open_model(directory, i % 2, &f, &error);
    if (status != BERT_OK) {
      assert_true(error.status == status && error.text[0] != '\0');
      continue;
    }
    good++;
    unsigned sum = 0;
    for (size_t k = 0; k < tensors_count(f); k++)
      for (uint64_t at = 0; at < tensors_at(f, k)->size; at++)
        sum += ((const unsigned char *)tensors_at(f, k)->data)[at];
    assert_true(sum <= 120);
    tensors_close(f);
  }
  assert_true(good > 20 && good < 3000);
  scratch_free(directory);
}

typedef struct open_case {
  const char *directory;
  int copy;
} open_case;

static bert_status open_once(void *user, bert_error *error) {
  const open_case *c = user;
  tensor_file *f;
  bert_status status = open_model(c->directory, c->copy, &f, error);
  assert_true((status == BERT_OK) == (f != NULL));
  tensors_close(f);
  return status;
}

static void test_no_memory(void **state) {
  open_case c = {family, 0};
  assert_true(faults_each(open_once, &c) >= 8);
  c.copy = 1;
  assert_true(faults_each(open_once, &c) >= 9);
  char *directory = sharded_directory();
  open_case sharded = {directory, 0};
  assert_true(faults_each(open_once, &sharded) >= 12);
  scratch_free(directory);
}

static int descriptors(void) {
  int count = 0;
  for (int i = 0; i < 200; i++) count += fcntl(i, F_GETFD) != -1;
  return count;
}

/* Runs last: whatever succeeded or failed above left no file open. */
static void test_no_descriptor_is_left(void **state) {
  int before = descriptors();
  tensor_file *f;
  for (int i = 0; i < 20; i++) {
    assert_int_equal(open_model(family, 0, &f, NULL), BERT_OK);
    tensors_close(f);
    assert_int_equal(open_model("/tmp", 0, &f, NULL), BERT_IO);
  }
  assert_int_equal(descriptors(), before);
  assert_true(before < 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mapping_content),
      cmocka_unit_test(test_mapping_refuses),
      cmocka_unit_test(test_mapping_changes),
      cmocka_unit_test(test_mapping_asks_for_huge_pages),
      cmocka_unit_test(test_small_files),
      cmocka_unit_test(test_path_join),
      cmocka_unit_test(test_reads),
      cmocka_unit_test(test_reads_every_dtype),
      cmocka_unit_test(test_refuses),
      cmocka_unit_test(test_refuses_high_bit_length),
      cmocka_unit_test(test_refuses_cut),
      cmocka_unit_test(test_shards),
      cmocka_unit_test(test_shards_refused),
      cmocka_unit_test(test_too_many_shards),
      cmocka_unit_test(test_nothing_there),
      cmocka_unit_test(test_real_model),
      cmocka_unit_test(test_mutated_headers),
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_no_descriptor_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
