-- bert_embed and bert_similarity: shapes, types of text, every option.
SELECT typeof(v), length(v), round(bert_dot(v, v), 5) FROM (SELECT bert_embed('a text') AS v);
-- The first numbers of a vector that sentence-transformers gives as well.
SELECT round(j.value, 4) FROM json_each(bert_json(bert_embed('The quick brown fox jumps over the lazy dog.'))) AS j LIMIT 3;

-- NULL, empty, and what SQLite reads as text.
SELECT bert_embed(NULL) IS NULL, bert_embed(NULL, NULL, NULL) IS NULL;
SELECT length(bert_embed('')), bert_embed('') = bert_embed('   ');
SELECT bert_embed(12.5) = bert_embed('12.5'), bert_embed(x'61') = bert_embed('a');
-- A NUL inside is data, and not the end.
SELECT bert_embed(CAST(x'610062' AS TEXT)) = bert_embed('a'), bert_embed(CAST(x'610062' AS TEXT)) = bert_embed('ab');
-- Broken UTF-8 is U+FFFD.
SELECT bert_embed(CAST(x'61FF62' AS TEXT)) = bert_embed('a' || char(0xFFFD) || 'b');

-- A NULL model and NULL options are the defaults; a model by its name.
SELECT bert_embed('a text', NULL) = bert_embed('a text'), bert_embed('a text', NULL, NULL) = bert_embed('a text');
SELECT bert_embed('a text', 'all-MiniLM-L6-v2') = bert_embed('a text');
SELECT bert_embed('a text', NULL, '{"model": "all-MiniLM-L6-v2"}') = bert_embed('a text');
SELECT bert_embed('a text', NULL, '{}') = bert_embed('a text');

-- Options.
SELECT bert_embed('tides', NULL, '{"prompt": "query: "}') = bert_embed('query: tides');
SELECT bert_embed('tides', NULL, '{"kind": "query"}') = bert_embed('tides'),
       bert_embed('tides', NULL, '{"kind": "document"}') = bert_embed('tides');
SELECT length(bert_embed('tides', NULL, '{"dims": 1}')), length(bert_embed('tides', NULL, '{"dims": 384}'));
SELECT round(bert_dot(v, v), 5), round(bert_cosine(v, w), 5)
  FROM (SELECT bert_embed('tides', NULL, '{"dims": 10}') AS v, substr(bert_embed('tides'), 1, 40) AS w);
SELECT bert_dot(v, v) > 2 FROM (SELECT bert_embed('tides', NULL, '{"normalize": false}') AS v);
SELECT bert_embed('tides', NULL, '{"normalize": 1}') = bert_embed('tides');
SELECT p.value, length(bert_embed('tides', NULL, json_object('pooling', p.value))),
       bert_embed('tides', NULL, json_object('pooling', p.value)) = bert_embed('tides') AS as_the_model
  FROM json_each('["cls", "mean", "max", "mean_sqrt_len"]') AS p;
SELECT bert_embed('one two three four', NULL, '{"max_tokens": 4}') = bert_embed('one two');
SELECT bert_embed('one two', NULL, '{"max_tokens": 4, "truncate": "error"}') = bert_embed('one two');

-- Similarity.
SELECT round(bert_similarity('a text', 'a text'), 6), bert_similarity(NULL, 'a') IS NULL, bert_similarity('a', NULL) IS NULL;
SELECT bert_similarity('A man is eating pasta.', 'Someone has a meal.')
     > bert_similarity('A man is eating pasta.', 'The moon pulls the oceans.');
SELECT abs(bert_similarity('tides', 'moon') - bert_cosine(bert_embed('tides'), bert_embed('moon'))) < 1e-6;
SELECT bert_similarity('tides', 'tides', '{"dims": 8, "pooling": "max"}') > 0.99999;
-- A text of 5 MB is cut at the token limit.
SELECT bert_embed(t) = bert_embed(substr(t, 1, 10000)) FROM (SELECT replace(hex(zeroblob(500000)), '00', 'tide flows') AS t);
