-- Attention rollout (Abnar and Zuidema 2020): through all layers together, which
-- words does the first token draw on?
SELECT k_token, round(weight, 3) AS weight
  FROM attn_rollout('The animal did not cross the street because it was too tired')
 WHERE layer = 5 AND q_pos = 0 AND k_token NOT IN ('[CLS]', '[SEP]')
 ORDER BY weight DESC
 LIMIT 5;
