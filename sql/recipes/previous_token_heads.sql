-- Which head attends most to the previous token?
-- Works on one text or, as here, on the mean over several.
CREATE TEMP TABLE sample(text TEXT);
INSERT INTO sample VALUES
  ('The cat sat on the mat because it was tired.'),
  ('She practises scales on the piano every morning before school.'),
  ('Ferries to the islands do not sail in strong wind.');

SELECT h.layer, h.head, round(avg(h.prev), 3) AS previous, round(avg(h.entropy), 2) AS entropy
  FROM sample AS s, attn_heads(s.text) AS h
 GROUP BY h.layer, h.head
 ORDER BY avg(h.prev) DESC
 LIMIT 5;
