-- Head statistics over a whole table of texts, by a join: what does each head do
-- most often, and how sure is it? One forward pass for each text.
CREATE TEMP TABLE articles(id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO articles(body) VALUES
  ('Swifts sleep on the wing and land only to breed.'),
  ('The invoice is due within fourteen days without deduction.'),
  ('Hedgehogs spend the winter under leaves, hardly breathing.'),
  ('Vinyl records should stand upright, away from the heater.');

SELECT h.label, count(*) AS heads, round(avg(h.entropy_norm), 2) AS entropy, round(avg(h.first), 2) AS on_first,
       round(avg(h.sep), 2) AS on_separator, round(avg(h.mean_distance), 1) AS distance
  FROM articles AS a, attn_heads(a.body) AS h
 GROUP BY h.label
 ORDER BY count(*) DESC, h.label;
