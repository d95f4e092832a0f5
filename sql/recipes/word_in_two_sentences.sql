-- The same word in different sentences: how close are its contextual vectors, layer
-- by layer? The embedding layer knows the word and its place only; the further up,
-- the more an apple to eat keeps apart from the company.
WITH layers(layer) AS (VALUES (0), (2), (4), (6))
SELECT layers.layer,
       round(bert_cosine(a.vector, b.vector), 3) AS fruit_and_fruit,
       round(bert_cosine(a.vector, c.vector), 3) AS fruit_and_company
  FROM layers,
       bert_hidden('She ate a red apple from the tree.', layers.layer) AS a,
       bert_hidden('He peeled a green apple for the cake.', layers.layer) AS b,
       bert_hidden('Shares of the company Apple rose on the stock market.', layers.layer) AS c
 WHERE a.token = 'apple' AND b.token = 'apple' AND c.token = 'apple';

-- What "flies" attends to, the verb and the noun: one head, side by side.
SELECT 'time flies' AS sentence, k_token, round(weight, 3) AS weight
  FROM attn_weights('Time flies like an arrow.', 3, 2, '{"special": false, "renormalize": true}')
 WHERE q_token = 'flies'
UNION ALL
SELECT 'fruit flies', k_token, round(weight, 3)
  FROM attn_weights('Fruit flies like a banana.', 3, 2, '{"special": false, "renormalize": true}')
 WHERE q_token = 'flies';
