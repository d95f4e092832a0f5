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
-- The same vectors as one by one, to the bit.
SELECT min(e.embedding IS bert_embed(d.body)) AS same
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
