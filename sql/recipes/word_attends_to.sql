-- What does a word attend to? The mean over all heads of each layer, word pieces
-- merged, special tokens left out.
SELECT layer, k_token AS attends_to, round(avg(weight), 3) AS weight
  FROM attn_weights('The animal did not cross the street because it was too tired', NULL, NULL,
                    '{"words": true, "special": false, "renormalize": true}')
 WHERE q_token = 'it'
 GROUP BY layer, k_pos
HAVING avg(weight) > 0.12
 ORDER BY layer, avg(weight) DESC;
