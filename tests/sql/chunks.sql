-- bert_chunks.
.mode column
SELECT * FROM bert_chunks('Swifts sleep on the wing and land only to breed.', 8, 0);
SELECT * FROM bert_chunks('Swifts sleep on the wing and land only to breed.', 8, 2);
SELECT * FROM bert_chunks('Swifts sleep.', 100, 0);
SELECT * FROM bert_chunks('', 10, 0);
SELECT count(*) FROM bert_chunks(NULL, 10, 0);
-- A word that is longer than a chunk is cut between its tokens.
SELECT * FROM bert_chunks('antidisestablishmentarianism', 5, 0);
-- Every piece is what it says, fits, and together they are the whole text.
.mode list
WITH long(t) AS (SELECT replace(hex(zeroblob(300)), '00', 'the tide comes in, and goes out. ')),
     c AS (SELECT c.*, t FROM long JOIN bert_chunks(t, 50, 10) AS c)
SELECT count(*) > 40, min(text = CAST(substr(CAST(t AS BLOB), start + 1, stop - start) AS TEXT)),
       max(n_tokens) <= 50, min(n_tokens = bert_token_count(text)), min(start) = 0, max(stop) >= max(length(t)) - 1
  FROM c;
