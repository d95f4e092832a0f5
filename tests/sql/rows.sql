-- bert_embed_rows: a SELECT of key and text, in batches.
.mode column
CREATE TABLE docs(id INTEGER PRIMARY KEY, body, emb BLOB);
INSERT INTO docs(body) VALUES ('time flies'), (NULL), (''), ('like an arrow'), (42), ('one two three four five');
SELECT key, typeof(embedding), length(embedding), n_tokens, truncated FROM bert_embed_rows('SELECT id, body FROM docs');
SELECT key, n_tokens, truncated FROM bert_embed_rows('SELECT id, body FROM docs ORDER BY id DESC', '{"max_tokens": 5}');
SELECT key FROM bert_embed_rows('SELECT ''key '' || id, body FROM docs WHERE id < 3;');
SELECT count(*) FROM bert_embed_rows('SELECT id, body FROM docs WHERE 0');
SELECT count(*) FROM bert_embed_rows('VALUES (1, ''a''), (2, ''b'')');
SELECT length(embedding) FROM bert_embed_rows('SELECT 1, ''a''', '{"dims": 16, "prompt": "query: "}');
.mode list
-- The same vectors as one by one, to the bit; with the scalar kernels, where OpenBLAS
-- does large products, to 5e-7 in each number.
SELECT min(e.embedding IS bert_embed(d.body) OR (bert_info() ->> 'kernels' = 'scalar' AND bert_l2(e.embedding, bert_embed(d.body)) < 5e-6)) AS same
  FROM docs AS d JOIN bert_embed_rows('SELECT id, body FROM docs') AS e ON e.key = d.id;
-- Writing into the table that is read.
UPDATE docs SET emb = e.embedding FROM bert_embed_rows('SELECT id, body FROM docs') AS e WHERE e.key = docs.id;
SELECT count(*), count(emb) FROM docs;
INSERT INTO docs(body, emb) SELECT 'copy of ' || key, embedding FROM bert_embed_rows('SELECT id, body FROM docs');
SELECT count(*) FROM docs;
-- More rows than one batch.
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 250)
INSERT INTO docs(body) SELECT 'number ' || i FROM n;
SELECT count(*), count(DISTINCT embedding), min(key = (SELECT id FROM docs WHERE id = key))
  FROM bert_embed_rows('SELECT id, body FROM docs WHERE body LIKE ''number %''');
SELECT key FROM bert_embed_rows('SELECT id, body FROM docs') LIMIT 2;
