-- sqlite-vec on our vectors: both keep a vector as a BLOB of float32 with the same
-- subtype, so that each reads what the other made. Here bertsql keeps the vectors in step
-- with the texts, and vec0 gets a copy; both find the same rows. vec0 comes with the
-- Python package sqlite-vec; `make test` brings it to build/sqlite-vec, which `make shell`
-- searches.
.load vec0
CREATE VIRTUAL TABLE plants USING bertsql(body);
INSERT INTO plants(body) VALUES
  ('Ferns like shade and damp soil.'),
  ('A cactus stores water for months.'),
  ('Ivy climbs up walls and trees.'),
  ('Sunflowers turn their heads to the light.');
CREATE VIRTUAL TABLE plants_vec USING vec0(embedding float[384] distance_metric=cosine);
INSERT INTO plants_vec(rowid, embedding) SELECT rowid, embedding FROM plants;

SELECT v.rowid, round(v.distance, 4) AS vec0, round(p.distance, 4) AS bertsql, p.body
  FROM plants_vec AS v, plants AS p
 WHERE v.embedding MATCH bert_embed('a plant for the desert') AND v.k = 2
   AND p.plants MATCH bert_embed('a plant for the desert') AND p.rowid = v.rowid
 ORDER BY v.distance;
-- Functions of either take vectors of the other.
SELECT round(vec_distance_cosine(bert_embed('sun'), bert_embed('light')), 4) AS vec_distance_cosine,
       round(1 - bert_cosine(vec_f32(bert_embed('sun')), bert_embed('light')), 4) AS bert_cosine;
