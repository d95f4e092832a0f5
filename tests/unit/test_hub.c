/*
** test_hub.c: hub ids in the local Hugging Face cache, and directories.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "encoder/files/files.h"
#include "faults.h"
#include "scratch.h"

static char root[PATH_MAX]; /* of everything that a test makes, links resolved */
static char *made;          /* the same, to be freed */

static const char *const variables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                        "XDG_CACHE_HOME", "HOME"};

static int set_up(void **state) {
  made = strdup("/tmp/bertsql-test-XXXXXX");
  if (mkdtemp(made) == NULL || realpath(made, root) == NULL) return -1;
  for (int i = 0; i < 5; i++) unsetenv(variables[i]);
  return 0;
}

static int tear_down(void **state) {
  scratch_free(made);
  return 0;
}

/* Writes root/name, with the directories above it. */
static void put(const char *name, const char *text) {
  char path[PATH_MAX + 300];
  snprintf(path, sizeof path, "%s/%s", root, name);
  for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = '\0';
    mkdir(path, 0700);
    *at = '/';
  }
  scratch_write(root, name, text, strlen(text));
}

static void set_variable(const char *name, const char *below_root) {
  char path[PATH_MAX + 300];
  snprintf(path, sizeof path, "%s/%s", root, below_root);
  setenv(name, path, 1);
}

static void expect_found(const char *source, const char *below_root) {
  char *directory = NULL, expected[PATH_MAX + 300];
  bert_error error = {0};
  if (hub_resolve(source, &directory, &error) != BERT_OK) fail_msg("%s: %s", source, error.text);
  snprintf(expected, sizeof expected, "%s/%s", root, below_root);
  assert_string_equal(directory, expected);
  memory_free(directory);
}

static void expect_error(const char *source, bert_status expected, const char *part) {
  char *directory = NULL;
  bert_error error = {0};
  bert_status status = hub_resolve(source, &directory, &error);
  assert_null(directory);
  if (status != expected || error.status != expected)
    fail_msg("%s: status %d: %s", source, (int)status, error.text);
  if (strstr(error.text, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", error.text, part);
  assert_int_equal(hub_resolve(source, &directory, NULL), expected);
}

/* The files without which a snapshot is partial. */
static void put_snapshot(const char *folder) {
  char name[600];
  snprintf(name, sizeof name, "%s/config.json", folder);
  put(name, "{}");
  snprintf(name, sizeof name, "%s/model.safetensors", folder);
  put(name, "x");
}

/* cache/models--org--name with one snapshot and refs/main, "\n" at its end. */
static void put_model(const char *cache, const char *folder, const char *revision) {
  char name[500], text[100];
  snprintf(name, sizeof name, "%s/%s/snapshots/%s", cache, folder, revision);
  put_snapshot(name);
  snprintf(name, sizeof name, "%s/%s/refs/main", cache, folder);
  snprintf(text, sizeof text, "%s\n", revision);
  put(name, text);
}

static void test_directories(void **state) {
  char path[PATH_MAX + 300], before[PATH_MAX];
  put("a/model/config.json", "{}");
  snprintf(path, sizeof path, "%s/a/model", root);
  expect_found(path, "a/model");
  snprintf(path, sizeof path, "%s/a/../a/./model/", root);
  expect_found(path, "a/model");
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(root), 0);
  assert_int_equal(symlink("a/model", "link"), 0);
  expect_found("link", "a/model");
  /* a directory wins over a hub id of the same name */
  set_variable("HF_HUB_CACHE", "cache");
  put_model("cache", "models--a--model", "1111");
  expect_found("a/model", "a/model");
  assert_int_equal(rename("a", "b"), 0);
  expect_found("a/model", "cache/models--a--model/snapshots/1111");
  assert_int_equal(chdir(before), 0);
  unsetenv("HF_HUB_CACHE");
}

static void test_variables_in_order(void **state) {
  static const char *const caches[] = {"", "", "/hub", "/huggingface/hub",
                                       "/.cache/huggingface/hub"};
  char below[100], expected[300];
  for (int i = 4; i >= 0; i--) { /* each one set before the next counts more */
    snprintf(below, sizeof below, "v%d%s", i, caches[i]);
    put_model(below, "models--org--name", "abcd");
    snprintf(below, sizeof below, "v%d", i);
    set_variable(variables[i], below);
    snprintf(expected, sizeof expected, "v%d%s/models--org--name/snapshots/abcd", i, caches[i]);
    expect_found("org/name", expected);
  }
  setenv("HF_HUB_CACHE", "", 1); /* empty is not set */
  expect_found("org/name", "v1/models--org--name/snapshots/abcd");
  setenv("HF_HUB_CACHE", "~/v0", 1);
  setenv("HOME", root, 1);
  expect_found("org/name", "v0/models--org--name/snapshots/abcd");
  setenv("HF_HUB_CACHE", "~other/v0", 1); /* nobody's directory but the user's own */
  expect_error("org/name", BERT_IO, "no snapshot in ~other/v0/models--org--name");
  for (int i = 0; i < 5; i++) unsetenv(variables[i]);
  expect_error("org/name", BERT_IO, "neither HF_HUB_CACHE, HF_HOME nor HOME says where");
}

static void test_revisions(void **state) {
  set_variable("HF_HUB_CACHE", "r");
  put_model("r", "models--one", "aaaa");
  expect_found("one", "r/models--one/snapshots/aaaa");
  /* refs/main chooses among several */
  put_snapshot("r/models--one/snapshots/bbbb");
  expect_found("one", "r/models--one/snapshots/aaaa");
  put("r/models--one/refs/main", "bbbb");
  expect_found("one", "r/models--one/snapshots/bbbb");
  /* without it, the only one is taken, and of several none */
  put_snapshot("r/models--two/snapshots/cccc");
  expect_found("two", "r/models--two/snapshots/cccc");
  put_snapshot("r/models--two/snapshots/dddd");
  expect_error("two", BERT_IO, "has 2 snapshots and no refs/main to choose by");
  /* links, as the cache has them */
  put("r/models--three/blobs/1234", "{}");
  put("r/models--three/snapshots/eeee/model.safetensors.index.json", "");
  char path[PATH_MAX + 300];
  snprintf(path, sizeof path, "%s/r/models--three/snapshots/eeee/config.json", root);
  assert_int_equal(symlink("../../blobs/1234", path), 0);
  expect_found("three", "r/models--three/snapshots/eeee");
  unsetenv("HF_HUB_CACHE");
}

static void test_errors(void **state) {
  char expected[PATH_MAX + 300], path[PATH_MAX + 300];
  set_variable("HF_HOME", "e");
  snprintf(expected, sizeof expected,
           "no model \"org/none\": there is no such directory, and no snapshot in "
           "%s/e/hub/models--org--none, "
           "where the Hugging Face cache (HF_HOME) would have it; it is not downloaded from here, "
           "\"hf download org/none\" does that",
           root);
  expect_error("org/none", BERT_IO, expected);
  put("e/hub/models--empty/refs/other", "");
  expect_error("empty", BERT_IO, "no snapshot in");
  put("e/hub/models--gone/refs/main", "abcd");
  expect_error("gone", BERT_IO, "models--gone/snapshots/abcd");
  put("e/hub/models--partial/refs/main", "abcd");
  put("e/hub/models--partial/snapshots/abcd/model.safetensors", "x");
  expect_error("partial", BERT_IO, "is partial: it has no config.json");
  put("e/hub/models--partial/snapshots/abcd/config.json", "{}");
  scratch_remove(root, "e/hub/models--partial/snapshots/abcd/model.safetensors");
  expect_error("partial", BERT_IO, "is partial: it has no model.safetensors");
  /* a link whose blob is not there yet */
  snprintf(path, sizeof path, "%s/e/hub/models--partial/snapshots/abcd/model.safetensors", root);
  assert_int_equal(symlink("../../blobs/none", path), 0);
  expect_error("partial", BERT_IO, "is partial: it has no model.safetensors");
  put("e/hub/models--evil/refs/main", "../../../../etc");
  expect_error("evil", BERT_INVALID, "/refs/main does not name a revision");
  put("e/hub/models--evil/refs/main", "");
  expect_error("evil", BERT_INVALID, "does not name a revision");
  put("e/hub/models--evil/refs/main", "..");
  expect_error("evil", BERT_INVALID, "does not name a revision");
  char text[400];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  put("e/hub/models--evil/refs/main", text);
  expect_error("evil", BERT_INVALID, "more than the 255 that are allowed");
  put("file", "x");
  snprintf(path, sizeof path, "%s/file", root);
  expect_error(path, BERT_IO, "is a file; a model is a directory");
  unsetenv("HF_HOME");
}

static void test_not_an_id(void **state) {
  static const char *const names[] = {"/none/such", "a/b/c",  "./none",    "../none",   "none/",
                                      "/",          "~x",     "org//name", "org/na me", "org/name?",
                                      "a\nb",       "org/..", ".hidden",   "-x",        "org/.x",
                                      "\xC3\xA9",   "a\\b",   "C:\\models"};
  set_variable("HF_HOME", "e");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], "/") != 0)
      expect_error(names[i], BERT_IO, "there is no such directory, and it is not a hub id");
  expect_error("", BERT_ARGUMENT, "empty");
  expect_error(NULL, BERT_ARGUMENT, "empty");
  unsetenv("HF_HOME");
}

static void test_long_names(void **state) {
  static char text[20000];
  memset(text, 'a', sizeof text - 1);
  set_variable("HF_HUB_CACHE", "r");
  for (size_t size = 200; size < sizeof text; size = size * 2 + 1) {
    text[size] = '\0';
    expect_error(text, BERT_IO, "aaaa");
    text[size] = 'a';
  }
  text[sizeof text - 1] = '\0';
  text[0] = '/';
  setenv("HF_HUB_CACHE", text, 1);
  expect_error("org/name", BERT_IO, "too long");
  unsetenv("HF_HUB_CACHE");
}

static bert_status resolve_once(void *user, bert_error *error) {
  char *directory = NULL;
  bert_status status = hub_resolve(user, &directory, error);
  memory_free(directory);
  return status;
}

static void test_no_memory(void **state) {
  char id[] = "org/name";
  set_variable("HF_HUB_CACHE", "m");
  put_model("m", "models--org--name", "abcd");
  assert_true(faults_each(resolve_once, id) >= 3);
  assert_true(faults_each(resolve_once, root) >= 1);
  unsetenv("HF_HUB_CACHE");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_directories), cmocka_unit_test(test_variables_in_order),
      cmocka_unit_test(test_revisions),   cmocka_unit_test(test_errors),
      cmocka_unit_test(test_not_an_id),   cmocka_unit_test(test_long_names),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
