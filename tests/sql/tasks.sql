-- bert_classify, bert_rerank, bert_entities, bert_fill. The checkpoints are tiny, their
-- weights random: what they say of a text means nothing.
.mode column
SELECT bert_load('tests/golden/families/distilbert-classify', 'classes');
SELECT bert_load('tests/golden/families/bert-cross', 'cross');
SELECT bert_load('tests/golden/families/bert-ner-cased', 'ner');
SELECT bert_load('tests/golden/families/modernbert-mlm', 'fill');
SELECT name, family, tokenizer, tasks FROM bert_models;
CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT, label TEXT);
INSERT INTO docs(body) VALUES ('time flies like an arrow'), ('Fruit flies like a banana.'), (NULL);
UPDATE docs SET label = bert_classify(body);
SELECT id, label FROM docs;
SELECT label, round(score, 4) AS score, truncated FROM bert_classify('time flies like an arrow');
SELECT label, round(score, 4) AS score FROM bert_classify('time flies', '{"text_b": "like an arrow", "top_k": 1}');
SELECT label, round(score, 4) AS score FROM bert_classify('time flies', '{"labels": ["NEGATIVE"]}');
SELECT id, c.label, round(c.score, 3) AS score FROM docs LEFT JOIN bert_classify(body) AS c ORDER BY id, score DESC;
SELECT id, round(bert_rerank('what flies?', body, '{"model": "cross"}'), 4) AS score FROM docs ORDER BY score DESC;
SELECT entity, round(score, 4) AS score, text, start, stop, truncated
  FROM bert_entities('Ångström met Привет.', '{"model": "ner"}');
-- Past the 64 tokens that the model takes.
SELECT max(stop) > 1000 AS far FROM bert_entities(replace(hex(zeroblob(200)), '00', 'time flies '), '{"model": "ner"}');
SELECT mask, id, token, round(score, 4) AS score, text
  FROM bert_fill('time [MASK] like an [MASK]', '{"model": "fill", "top_k": 2}');
.mode list
SELECT bert_classify(NULL) IS NULL, bert_rerank('a', NULL) IS NULL, bert_classify('') IS NOT NULL;
SELECT (SELECT count(*) FROM bert_entities(NULL)), (SELECT count(*) FROM bert_fill(NULL));
-- What cannot be.
SELECT bert_classify('a', '{"model": "all-MiniLM-L6-v2"}');
SELECT bert_classify('a', '{"model": "ner"}');
SELECT bert_classify('a', '{"labels": ["neutral"]}');
SELECT bert_classify('a', '{"top_k": 1}');
SELECT * FROM bert_classify('a', '{"top_k": 0}');
SELECT bert_rerank('a', 'b');
SELECT * FROM bert_entities('a');
SELECT * FROM bert_entities('a', '{"model": "ner", "labels": ["ORG"]}');
SELECT * FROM bert_fill('no mask', '{"model": "fill"}');
SELECT * FROM bert_fill('a <mask>', '{"model": "fill"}');
SELECT * FROM bert_fill('a [MASK]', '{"model": "fill", "labels": ["a"]}');
