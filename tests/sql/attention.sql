-- Attention as numbers: attn_weights in both forms, attn_heads, attn_rollout, attn_neurons.
.mode list
.headers off
SELECT json_array_length(attn_weights('Time flies', 0, 0)), json_valid(attn_weights('Time flies', 0, 0)), typeof(attn_weights('Time flies', 0, 0));
SELECT length(attn_weights('Time flies', 0, 0, '{"format": "blob"}')), round(bert_json(attn_weights('Time flies', 0, 0, '{"format": "blob"}')) ->> 1, 4);
SELECT attn_weights(NULL, 0, 0) IS NULL, attn_weights(NULL, 99, 'x') IS NULL;
SELECT (SELECT round(sum(value), 4) FROM json_each(attn_weights('Time flies', 3, 3), '$[' || column1 || ']')) FROM (VALUES (0), (1), (2), (3));
.mode column
.headers on
SELECT layer, head, q_pos, q_token, k_pos, k_token, round(weight, 3) AS weight, round(score, 2) AS score, truncated
  FROM attn_weights('Time flies', 2, 7);
SELECT q_pos, q_token, k_token, round(weight, 3) AS weight, score
  FROM attn_weights('Unaffable señor', 2, 7, '{"words": true, "special": false, "renormalize": true}');
SELECT q_token, k_token, round(weight, 3) AS weight, round(score, 2) AS score
  FROM attn_weights('Time flies', 2, 7, '{"text_b": "It does", "special": false, "temperature": 2}') WHERE q_pos = 1;
SELECT count(*), count(DISTINCT layer), count(DISTINCT head), max(truncated) FROM attn_weights('one two three four', NULL, 11, '{"max_tokens": 4}');
SELECT layer, head, round(entropy, 2) AS entropy, round(entropy_norm, 2) AS entropy_norm, round(diag, 2) AS diag, round(prev, 2) AS prev,
       round(next, 2) AS next, round(first, 2) AS first, round(sep, 2) AS sep, round(punct, 2) AS punct
  FROM attn_heads('Time flies like an arrow.') WHERE layer = 2;
SELECT head, round(mean_distance, 2) AS mean_distance, round(signed_distance, 2) AS signed_distance, round(max_prob, 2) AS max_prob,
       round(positional, 2) AS positional, round(norm_mean, 2) AS norm_mean, collapsed, label
  FROM attn_heads('Time flies like an arrow.') WHERE layer = 2;
SELECT layer, q_token, k_token, round(weight, 3) AS weight FROM attn_rollout('Time flies') WHERE q_pos = 1 AND layer IN (0, 5);
SELECT q_pos, k_pos, dim, round(q, 3) AS q, round(k, 3) AS k, round(product, 3) AS product
  FROM attn_neurons('Time flies', 2, 7) WHERE q_pos = 1 AND k_pos = 2 AND dim < 3;
.mode list
-- What sums up to a score.
SELECT round((SELECT sum(product) FROM attn_neurons('Time flies', 2, 7) WHERE q_pos = 1 AND k_pos = 2) / sqrt(32) -
             (SELECT score FROM attn_weights('Time flies', 2, 7) WHERE q_pos = 1 AND k_pos = 2), 4);
-- The textbook's formulas.
SELECT self_attention('[[1, 0], [0, 1]]');
SELECT self_attention('[[1, 0], [0, 1]]', '{"causal": true, "scale": "none"}') -> 'weights';
SELECT positional_encoding(2, 4);
-- Over a table.
CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO docs(body) VALUES ('Time flies like an arrow.'), (NULL), ('');
SELECT docs.id, count(h.layer), round(max(h.entropy), 3) FROM docs LEFT JOIN attn_heads(docs.body) AS h GROUP BY docs.id;
-- Refused.
SELECT attn_weights('x', 6, 0);
SELECT attn_weights('x', 0, -1);
SELECT attn_weights('x', '0', 0);
SELECT attn_weights('x', 0, 0.5);
SELECT attn_weights('x', NULL, 0);
SELECT attn_weights('x', 0, 0, '{"colour": 1}');
SELECT attn_weights('x', 0, 0, '{"format": "xml"}');
SELECT attn_weights('x', 0, 0, '{"temperature": 0}');
SELECT attn_weights('x', 0, 0, '{"model": "nomodel"}');
SELECT * FROM attn_weights;
SELECT * FROM attn_weights('x', 6);
SELECT * FROM attn_weights('x', NULL, 12);
SELECT * FROM attn_weights('x', 0, 0, NULL, 1);
SELECT * FROM attn_heads('x', '{"words": "yes"}');
SELECT * FROM attn_rollout('x', '{"max_tokens": 1000}');
SELECT * FROM attn_neurons('x', 0);
SELECT * FROM attn_neurons('x', 0, NULL);
SELECT * FROM attn_neurons('x', 0, 0, '{"words": true}');
SELECT self_attention('[[1, 2]]', '{"w_q": [[1], [2], [3]]}');
SELECT self_attention('[[1], [2]]', '{"mask": [0, 0]}');
SELECT self_attention('[[1], [2, 3]]');
SELECT positional_encoding(0, 4);
SELECT 'still here', count(*) FROM attn_heads('x');
