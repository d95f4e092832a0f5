-- bert_hidden: contextual vectors.
.mode column
SELECT layer, pos, token, length(vector) FROM bert_hidden('Time flies');
SELECT layer, pos, token FROM bert_hidden('Time flies', 0);
SELECT layer, count(*) FROM bert_hidden('Time flies', 3) GROUP BY layer;
SELECT count(*) FROM bert_hidden(NULL);
SELECT count(*), max(truncated) FROM bert_hidden('one two three four', 6, '{"max_tokens": 4}');
SELECT token, truncated FROM bert_hidden('Is it?', 1, '{"text_b": "It is."}');
.mode list
-- The mean of the last layer is the embedding, as the model pools.
WITH numbers(i, mean) AS (
  SELECT j.key, avg(j.value) FROM bert_hidden('time flies like an arrow') AS h, json_each(bert_json(h.vector)) AS j GROUP BY j.key)
SELECT round(bert_cosine((SELECT json_group_array(mean) FROM (SELECT mean FROM numbers ORDER BY i)),
                         bert_embed('time flies like an arrow')), 5);
-- Context tells words apart that the embedding layer does not know apart from their place.
SELECT bert_cosine(a.vector, b.vector) > bert_cosine(a.vector, c.vector)
  FROM bert_hidden('He rowed to the bank of the river.') AS a, bert_hidden('We sat on the bank of the lake.') AS b,
       bert_hidden('The bank lends money.') AS c
 WHERE a.token = 'bank' AND b.token = 'bank' AND c.token = 'bank';
