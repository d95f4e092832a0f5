-- bert_load, bert_unload, bert_models: names, defaults, sharing.
.mode column
SELECT count(*) AS before_first_use FROM bert_models;
SELECT bert_load('tests/golden/families/bert-mean') AS name;
SELECT bert_load('tests/golden/families/bert-cls-dense/', 'dense') AS name;
SELECT bert_load('tests/golden/families/bert-mean', 'copied', '{"copy": true}') AS name;
SELECT name, family, tokenizer, layers, heads, dim, vocab, max_tokens, pooling, normalize, precision, tasks, is_default FROM bert_models;
SELECT name, mapped_bytes > 0 AS mapped, private_bytes > 0 AS private FROM bert_models;
-- The same source again is no error, under the same name; another name is another entry.
SELECT bert_load('tests/golden/families/bert-mean') AS name;
SELECT count(*) FROM bert_models;
-- The first that was loaded is the default; the copy gives the same numbers.
.mode list
SELECT bert_embed('abc') = bert_embed('abc', 'bert-mean'), bert_embed('abc', 'copied') = bert_embed('abc', 'bert-mean');
SELECT length(bert_embed('abc', 'dense')) / 4;
SELECT bert_unload('bert-mean');
SELECT name, is_default FROM bert_models;
SELECT bert_embed('abc', 'bert-mean');
SELECT bert_unload('dense'), bert_unload('copied');
-- Without any the default model is looked for again.
SELECT length(bert_embed('abc'));
SELECT name, is_default FROM bert_models;
-- A query keeps the model it runs with.
SELECT count(*) FROM bert_tokens('a b c') AS t WHERE iif(t.pos = 1, bert_unload('all-MiniLM-L6-v2'), 1) IS NOT NULL;
SELECT count(*) FROM bert_models;
-- Words that stand for a choice may be in capitals; nothing is left to unload at the end.
SELECT bert_load('tests/golden/families/bert-mean', 'half', '{"precision": "BF16"}');
SELECT name, precision FROM bert_models;
SELECT bert_unload('half');
SELECT bert_unload('half');
