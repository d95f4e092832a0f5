-- Record attention in a table, and compare two texts later: in which heads does
-- "bank" look elsewhere when its meaning changes? The texts differ in one word, so
-- that positions can be compared one by one.
CREATE TEMP TABLE recorded(text TEXT, layer INTEGER, head INTEGER, q_pos INTEGER, k_pos INTEGER, k_token TEXT, weight REAL);
INSERT INTO recorded
SELECT 'river', layer, head, q_pos, k_pos, k_token, weight FROM attn_weights('He sat down by the river bank.') WHERE q_token = 'bank'
UNION ALL
SELECT 'money', layer, head, q_pos, k_pos, k_token, weight FROM attn_weights('He sat down by the money bank.') WHERE q_token = 'bank';

-- Half the sum of differences is 0 for equal distributions and 1 for disjoint ones.
SELECT a.layer, a.head, round(sum(abs(a.weight - b.weight)) / 2, 3) AS difference
  FROM recorded AS a JOIN recorded AS b USING (layer, head, q_pos, k_pos)
 WHERE a.text = 'river' AND b.text = 'money'
 GROUP BY a.layer, a.head
 ORDER BY sum(abs(a.weight - b.weight)) DESC
 LIMIT 5;
