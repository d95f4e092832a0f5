-- bert_tokens, bert_token_count, bert_is_truncated.
.mode column
SELECT * FROM bert_tokens('Unbelievable, señor!');
SELECT pos, token, text, start, stop, special, segment FROM bert_tokens('Is it?', '{"text_b": "It is."}');
-- The whole text, and what the limit leaves of it.
SELECT pos, token, used FROM bert_tokens('one two three four', '{"max_tokens": 4}');
-- A special token that is written in the text is not special.
SELECT token, start, stop, special FROM bert_tokens('a [MASK] b');
SELECT count(*) FROM bert_tokens(NULL);
SELECT group_concat(token, ' ') FROM bert_tokens('');
SELECT token, start, stop FROM bert_tokens('日本語 Straße');
SELECT token FROM bert_tokens('a', '{"model": "all-MiniLM-L6-v2"}') WHERE special;
-- Columns of another table as arguments.
CREATE TABLE t(id INTEGER, body TEXT);
INSERT INTO t VALUES (1, 'time flies'), (2, NULL), (3, 'like an arrow');
SELECT t.id, k.pos, k.token FROM t JOIN bert_tokens(t.body) AS k WHERE NOT k.special ORDER BY t.id, k.pos;
SELECT t.id, k.token FROM t LEFT JOIN bert_tokens(t.body) AS k ON k.pos = 1 ORDER BY t.id;
SELECT token FROM bert_tokens WHERE in_text = 'through a hidden column' AND pos = 2;
.mode list
SELECT bert_token_count('time flies'), bert_token_count(''), bert_token_count(NULL) IS NULL;
SELECT bert_token_count('time flies') = (SELECT count(*) FROM bert_tokens('time flies'));
SELECT bert_is_truncated('time flies'), bert_is_truncated(NULL) IS NULL;
SELECT bert_token_count(t), bert_is_truncated(t), (SELECT sum(used) FROM bert_tokens(t))
  FROM (SELECT replace(hex(zeroblob(1000)), '00', 'tide ') AS t);
-- 254 words and two special tokens just fit.
SELECT bert_is_truncated(replace(hex(zeroblob(254)), '00', 'tide ')), bert_is_truncated(replace(hex(zeroblob(255)), '00', 'tide '));
