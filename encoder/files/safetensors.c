/*
** safetensors.c: the tensors of model.safetensors, or of its shards.
**
** The format: 8 bytes, little-endian, of header length; a JSON object that
** gives each tensor's dtype, shape and byte range; then the data, to which the
** ranges are relative. All of it is checked before a pointer is handed out, so
** that no later code needs to ask whether a tensor lies inside its file.
** https://huggingface.co/docs/safetensors
*/
#include <stdio.h>
#include <string.h>

#include "files.h"

enum {
  HEADER_LIMIT = 100000000, /* bytes; the limit of the reference implementation */
  SHARD_LIMIT = 256,        /* each holds a descriptor of the host open */
  LENGTH_BYTES = 8
};

typedef struct shard {
  char *name; /* file name in the directory */
  mapping mapping;
  json_document *header; /* holds the names of the tensors */
} shard;

struct tensor_file {
  char *directory;
  shard *shards; /* [shard_count] */
  size_t shard_count, shard_room;
  tensor *tensors; /* [count], in the order of the headers */
  size_t count, room;
  const void **by_name; /* [count] of const tensor * */
};

/* ---- Types ------------------------------------------------------------- */

typedef struct type_entry {
  const char *name;
  tensor_type type;
  unsigned bits;
} type_entry;

/* Every dtype of the format. */
static const type_entry types[] = {
    {"F64", TENSOR_F64, 64},
    {"F32", TENSOR_F32, 32},
    {"F16", TENSOR_F16, 16},
    {"BF16", TENSOR_BF16, 16},
    {"I64", TENSOR_I64, 64},
    {"I32", TENSOR_I32, 32},
    {"I16", TENSOR_I16, 16},
    {"I8", TENSOR_I8, 8},
    {"U8", TENSOR_U8, 8},
    {"BOOL", TENSOR_BOOL, 8},
    {"U64", TENSOR_OTHER, 64},
    {"U32", TENSOR_OTHER, 32},
    {"U16", TENSOR_OTHER, 16},
    {"C64", TENSOR_OTHER, 64},
    {"F8_E4M3", TENSOR_OTHER, 8},
    {"F8_E5M2", TENSOR_OTHER, 8},
    {"F8_E8M0", TENSOR_OTHER, 8},
    {"F8_E4M3FNUZ", TENSOR_OTHER, 8},
    {"F8_E5M2FNUZ", TENSOR_OTHER, 8},
    {"F6_E2M3", TENSOR_OTHER, 6},
    {"F6_E3M2", TENSOR_OTHER, 6},
    {"F4", TENSOR_OTHER, 4},
};

static const type_entry *find_type(const char *name) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

/* ---- One tensor of a header -------------------------------------------- */

static bert_status bad_tensor(const json_value *entry, const char *what, bert_error *error) {
  return error_set(error, BERT_INVALID, "tensor \"%s\": %s", error_quote(entry->key).text, what);
}

static bert_status read_type(const json_value *entry, const type_entry **out, bert_error *error) {
  const json_value *dtype = json_get(entry, "dtype");
  if (dtype == NULL || dtype->type != JSON_STRING)
    return bad_tensor(entry, "its dtype is missing or no string", error);
  *out = find_type(dtype->string);
  if (*out != NULL) return BERT_OK;
  return error_set(error, BERT_UNSUPPORTED, "tensor \"%s\": unknown dtype \"%s\"",
                   error_quote(entry->key).text, error_quote(dtype->string).text);
}

/* Sets rank, shape and *elements, their product. */
static bert_status read_shape(const json_value *entry, tensor *t, uint64_t *elements,
                              bert_error *error) {
  const json_value *shape = json_get(entry, "shape");
  if (shape == NULL || shape->type != JSON_ARRAY)
    return bad_tensor(entry, "its shape is missing or no array", error);
  if (shape->size > TENSOR_MAX_RANK)
    return error_set(error, BERT_UNSUPPORTED,
                     "tensor \"%s\": it has %zu dimensions, at most %d "
                     "are supported",
                     error_quote(entry->key).text, shape->size, TENSOR_MAX_RANK);
  *elements = 1;
  for (const json_value *v = shape->first; v != NULL; v = v->next) {
    if (v->type != JSON_NUMBER || !v->is_integer || v->integer < 0)
      return bad_tensor(entry, "its shape holds something other than a size", error);
    uint64_t size = (uint64_t)v->integer;
    t->shape[t->rank++] = size;
    *elements = memory_product(*elements, size);
    if (*elements == UINT64_MAX)
      return bad_tensor(entry, "the product of its shape is beyond 64 bits", error);
  }
  return BERT_OK;
}

static bert_status read_range(const json_value *entry, uint64_t range[2], bert_error *error) {
  const json_value *offsets = json_get(entry, "data_offsets");
  if (offsets == NULL || offsets->type != JSON_ARRAY || offsets->size != 2)
    return bad_tensor(entry, "its data_offsets are missing or no two numbers", error);
  int i = 0;
  for (const json_value *v = offsets->first; v != NULL; v = v->next) {
    if (v->type != JSON_NUMBER || !v->is_integer || v->integer < 0)
      return bad_tensor(entry, "its data_offsets hold something other than an offset", error);
    range[i++] = (uint64_t)v->integer;
  }
  if (range[1] < range[0])
    return bad_tensor(entry, "its data_offsets end before they begin", error);
  return BERT_OK;
}

/* The tensor that `entry` describes, in data[size]. */
static bert_status read_tensor(const json_value *entry, const char *data, uint64_t size, tensor *t,
                               bert_error *error) {
  if (entry->type != JSON_OBJECT) return bad_tensor(entry, "its entry is no object", error);
  const type_entry *type = NULL;
  uint64_t elements = 0, range[2] = {0, 0};
  bert_status status = read_type(entry, &type, error);
  if (status == BERT_OK) status = read_shape(entry, t, &elements, error);
  if (status == BERT_OK) status = read_range(entry, range, error);
  if (status != BERT_OK) return status;
  uint64_t bits = memory_product(elements, type->bits);
  if (bits == UINT64_MAX || bits % 8 != 0)
    return bad_tensor(entry, "its shape and dtype give no whole number of bytes", error);
  if (range[1] - range[0] != bits / 8)
    return error_set(
        error, BERT_INVALID,
        "tensor \"%s\": its shape and dtype need %llu bytes, its data_offsets give %llu",
        error_quote(entry->key).text, (unsigned long long)(bits / 8),
        (unsigned long long)(range[1] - range[0]));
  if (range[1] > size)
    return error_set(error, BERT_INVALID,
                     "tensor \"%s\": it ends at byte %llu of the data, but the file has only %llu: "
                     "it was cut off; fetch it anew",
                     error_quote(entry->key).text, (unsigned long long)range[1],
                     (unsigned long long)size);
  t->name = entry->key;
  t->type = type->type;
  t->data = data + range[0];
  t->size = range[1] - range[0];
  return BERT_OK;
}

/* ---- One file ---------------------------------------------------------- */

/* Of the same place, an empty tensor is before the one that fills it. */
static int compare_places(const void *a, const void *b) {
  const tensor *x = a, *y = b;
  if (x->data != y->data) return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
  return x->size < y->size ? -1 : x->size > y->size;
}

/* The tensors [first, count) cover data[size] without hole or overlap. */
static bert_status check_cover(const tensor_file *f, size_t first, const char *data, uint64_t size,
                               bert_error *error) {
  size_t count = f->count - first;
  const void **sorted = memory_alloc(memory_product(count + 1, sizeof *sorted));
  if (sorted == NULL) return error_nomem(error, "reading tensors");
  for (size_t i = 0; i < count; i++) sorted[i] = &f->tensors[first + i];
  sort_pointers(sorted, count, compare_places);
  bert_status status = BERT_OK;
  uint64_t end = 0;
  for (size_t i = 0; i < count && status == BERT_OK; i++) {
    const tensor *t = sorted[i];
    uint64_t start = (uint64_t)((const char *)t->data - data);
    if (start != end)
      status =
          error_set(error, BERT_INVALID,
                    "tensor \"%s\": it begins at byte %llu of the data, "
                    "where %llu was expected: %s",
                    error_quote(t->name).text, (unsigned long long)start, (unsigned long long)end,
                    start < end ? "tensors overlap" : "a hole before it");
    end = start + t->size;
  }
  memory_free(sorted);
  if (status == BERT_OK && end != size)
    status = error_set(error, BERT_INVALID,
                       "the tensors end at byte %llu of the data, "
                       "but the file has %llu bytes of it",
                       (unsigned long long)end, (unsigned long long)size);
  return status;
}

/* "__metadata__" maps strings to strings; nothing in it is used. */
static bert_status check_metadata(const json_value *metadata, bert_error *error) {
  int good = metadata->type == JSON_OBJECT;
  for (const json_value *v = good ? metadata->first : NULL; v != NULL; v = v->next)
    good = good && v->type == JSON_STRING;
  return good ? BERT_OK
              : error_set(error, BERT_INVALID, "\"__metadata__\" must map strings to strings");
}

static bert_status add_tensors(tensor_file *f, const json_value *header, const char *data,
                               uint64_t size, bert_error *error) {
  size_t first = f->count;
  for (const json_value *entry = header->first; entry != NULL; entry = entry->next) {
    bert_status status;
    if (strcmp(entry->key, "__metadata__") == 0) {
      status = check_metadata(entry, error);
    } else {
      if (!memory_grow((void **)&f->tensors, f->count, &f->room, sizeof *f->tensors))
        return error_nomem(error, "reading tensors");
      tensor t = {0};
      status = read_tensor(entry, data, size, &t, error);
      if (status == BERT_OK) f->tensors[f->count++] = t;
    }
    if (status != BERT_OK) return status;
  }
  return check_cover(f, first, data, size, error);
}

/* The length of the header, checked against the file. */
static bert_status header_length(const mapping *m, size_t *length, bert_error *error) {
  if (m->size < LENGTH_BYTES)
    return error_set(error, BERT_INVALID, "the file has %zu bytes, too few for a header", m->size);
  uint64_t value = 0;
  for (int i = LENGTH_BYTES - 1; i >= 0; i--) value = value << 8 | (unsigned char)m->data[i];
  if (value > HEADER_LIMIT)
    return error_set(error, BERT_INVALID, "a header of %llu bytes is more than the %d allowed",
                     (unsigned long long)value, HEADER_LIMIT);
  if (value > m->size - LENGTH_BYTES)
    return error_set(error, BERT_INVALID, "a header of %llu bytes does not fit the file of %zu",
                     (unsigned long long)value, m->size);
  if (value == 0 || m->data[LENGTH_BYTES] != '{')
    return error_set(error, BERT_INVALID, "the header does not begin with '{'");
  *length = (size_t)value;
  return BERT_OK;
}

static bert_status read_shard(tensor_file *f, shard *s, bert_error *error) {
  size_t length = 0;
  bert_status status = header_length(&s->mapping, &length, error);
  if (status != BERT_OK) return status;
  const char *header = s->mapping.data + LENGTH_BYTES;
  status = json_parse(header, length, &s->header, error);
  if (status != BERT_OK) {
    error_prefix(error, "header");
    return status;
  }
  return add_tensors(f, json_root(s->header), header + length,
                     s->mapping.size - LENGTH_BYTES - length, error);
}

/* Opens the file `name` as the next shard. */
static bert_status open_shard(tensor_file *f, const char *name, int copy, bert_error *error) {
  if (!memory_grow((void **)&f->shards, f->shard_count, &f->shard_room, sizeof *f->shards))
    return error_nomem(error, "opening tensors");
  shard *s = &f->shards[f->shard_count];
  memset(s, 0, sizeof *s);
  s->name = memory_copy_text(name, strlen(name));
  char *path = path_join(f->directory, name);
  bert_status status = s->name == NULL || path == NULL
                           ? error_nomem(error, "opening tensors")
                           : mapping_open(path, copy, &s->mapping, error);
  f->shard_count++; /* from here tensors_close frees it */
  if (status == BERT_OK) {
    status = read_shard(f, s, error);
    if (status != BERT_OK) error_prefix(error, "%s", path);
  }
  memory_free(path);
  return status;
}

/* ---- Shards ------------------------------------------------------------ */

static int compare_names(const void *a, const void *b) {
  return strcmp(((const tensor *)a)->name, ((const tensor *)b)->name);
}

/* Sorts the tensors by name, which also finds one that stands in two shards. */
static bert_status index_names(tensor_file *f, bert_error *error) {
  f->by_name = memory_alloc(memory_product(f->count + 1, sizeof *f->by_name));
  if (f->by_name == NULL) return error_nomem(error, "reading tensors");
  for (size_t i = 0; i < f->count; i++) f->by_name[i] = &f->tensors[i];
  sort_pointers(f->by_name, f->count, compare_names);
  for (size_t i = 1; i < f->count; i++)
    if (compare_names(f->by_name[i - 1], f->by_name[i]) == 0)
      return error_set(error, BERT_INVALID, "%s: tensor \"%s\" stands in two of the files",
                       f->directory, error_quote(((const tensor *)f->by_name[i])->name).text);
  return BERT_OK;
}

/* A file name without a path: the index must not lead out of the directory. */
static int plain_name(const char *name) {
  return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
         strcmp(name, "..") != 0;
}

/* Number of the shard `name`; shard_count when it is not open. Entries of one
** file stand together, so the newest is looked at first. */
static size_t shard_number(const tensor_file *f, const char *name) {
  for (size_t i = f->shard_count; i-- > 0;)
    if (strcmp(f->shards[i].name, name) == 0) return i;
  return f->shard_count;
}

static bert_status open_entry(tensor_file *f, const json_value *entry, int copy,
                              bert_error *error) {
  if (entry->type != JSON_STRING || !plain_name(entry->string))
    return error_set(error, BERT_INVALID, "\"%s\" must be in a file of the same directory, not %s",
                     error_quote(entry->key).text,
                     entry->type == JSON_STRING ? error_quote(entry->string).text
                                                : json_type_name(entry->type));
  if (shard_number(f, entry->string) < f->shard_count) return BERT_OK;
  if (f->shard_count == SHARD_LIMIT)
    return error_set(error, BERT_UNSUPPORTED, "more than %d files", SHARD_LIMIT);
  return open_shard(f, entry->string, copy, error);
}

/* The tensor of an index entry is in the file that the entry names. */
static bert_status check_entry(const tensor_file *f, const json_value *entry, bert_error *error) {
  const tensor *t = tensors_find(f, entry->key);
  const mapping *m = &f->shards[shard_number(f, entry->string)].mapping;
  uintptr_t at = t == NULL ? 0 : (uintptr_t)t->data, start = (uintptr_t)m->data;
  if (t != NULL && at >= start && at <= start + m->size) return BERT_OK;
  return error_set(error, BERT_INVALID, "tensor \"%s\" is not in %s", error_quote(entry->key).text,
                   error_quote(entry->string).text);
}

static bert_status open_indexed(tensor_file *f, const json_value *index, int copy,
                                bert_error *error) {
  const json_value *map = json_get(index, "weight_map");
  if (map == NULL || map->type != JSON_OBJECT || map->size == 0)
    return error_set(error, BERT_INVALID, "\"weight_map\" must name the tensors and their files");
  bert_status status = BERT_OK;
  for (const json_value *v = map->first; v != NULL && status == BERT_OK; v = v->next)
    status = open_entry(f, v, copy, error);
  if (status == BERT_OK) status = index_names(f, error);
  for (const json_value *v = map->first; v != NULL && status == BERT_OK; v = v->next)
    status = check_entry(f, v, error);
  return status;
}

/* ---- The whole --------------------------------------------------------- */

static bert_status no_tensors(const char *directory, const char *name, bert_error *error) {
  const char *hint = path_exists(directory, "pytorch_model.bin")
                         ? "; pytorch_model.bin is a pickle and is not read: save the model with "
                           "safe_serialization=True"
                         : "; other formats of weights, such as ONNX and GGUF, are not read";
  return error_set(error, BERT_IO, "%s has no %s and no %s.index.json%s", directory, name, name,
                   hint);
}

/* The index of the shards, or NULL when directory/name itself is there. */
static bert_status read_index(const char *directory, const char *name, json_document **index,
                              bert_error *error) {
  if (path_exists(directory, name)) return BERT_OK;
  char file[256];
  int wanted = snprintf(file, sizeof file, "%s.index.json", name);
  if (wanted < 0 || (size_t)wanted >= sizeof file)
    return error_set(error, BERT_ARGUMENT, "the file name %s is too long", name);
  bert_status status = file_read_json(directory, file, 1, JSON_OBJECT, index, error);
  if (status == BERT_OK && *index == NULL) status = no_tensors(directory, name, error);
  return status;
}

static bert_status open_all(tensor_file *f, const char *name, int copy, bert_error *error) {
  json_document *index = NULL;
  bert_status status = read_index(f->directory, name, &index, error);
  if (status != BERT_OK) return status;
  if (index == NULL) {
    status = open_shard(f, name, copy, error);
    return status == BERT_OK ? index_names(f, error) : status;
  }
  status = open_indexed(f, json_root(index), copy, error);
  if (status != BERT_OK) error_prefix(error, "%s/%s.index.json", f->directory, name);
  json_free(index);
  return status;
}

bert_status tensors_open(const char *directory, const char *name, int copy, tensor_file **out,
                         bert_error *error) {
  tensor_file *f = memory_zero(sizeof *f);
  if (f == NULL) return error_nomem(error, "opening tensors");
  f->directory = memory_copy_text(directory, strlen(directory));
  bert_status status =
      f->directory == NULL ? error_nomem(error, "opening tensors") : open_all(f, name, copy, error);
  if (status == BERT_OK)
    *out = f;
  else
    tensors_close(f);
  return status;
}

void tensors_close(tensor_file *f) {
  if (f == NULL) return;
  for (size_t i = 0; i < f->shard_count; i++) {
    mapping_close(&f->shards[i].mapping);
    json_free(f->shards[i].header);
    memory_free(f->shards[i].name);
  }
  memory_free(f->shards);
  memory_free(f->tensors);
  memory_free(f->by_name);
  memory_free(f->directory);
  memory_free(f);
}

bert_status tensors_check(const tensor_file *f, bert_error *error) {
  for (size_t i = 0; i < f->shard_count; i++) {
    bert_status status = mapping_check(&f->shards[i].mapping, f->shards[i].name, error);
    if (status == BERT_OK) continue;
    error_prefix(error, "%s", f->directory);
    return status;
  }
  return BERT_OK;
}

void tensors_drop_pages(const tensor_file *f) {
  for (size_t i = 0; i < f->shard_count; i++) mapping_drop_pages(&f->shards[i].mapping);
}

size_t tensors_file_count(const tensor_file *f) {
  return f->shard_count;
}

bert_text tensors_file_bytes(const tensor_file *f, size_t i) {
  bert_text bytes = {f->shards[i].mapping.data, f->shards[i].mapping.size};
  return bytes;
}

const tensor *tensors_find(const tensor_file *f, const char *name) {
  size_t low = 0, high = f->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const tensor *t = f->by_name[middle];
    int order = strcmp(name, t->name);
    if (order == 0) return t;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

size_t tensors_count(const tensor_file *f) {
  return f->count;
}

const tensor *tensors_at(const tensor_file *f, size_t i) {
  return i < f->count ? &f->tensors[i] : NULL;
}

static uint64_t bytes_where(const tensor_file *f, int copied) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < f->shard_count; i++)
    if (f->shards[i].mapping.copied == copied) bytes += f->shards[i].mapping.size;
  return bytes;
}

uint64_t tensors_mapped_bytes(const tensor_file *f) {
  return bytes_where(f, 0);
}

uint64_t tensors_private_bytes(const tensor_file *f) {
  return bytes_where(f, 1);
}
