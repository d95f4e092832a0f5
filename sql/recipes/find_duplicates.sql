-- Which rows say the same? Each row's vector is searched for in the table itself; a
-- pair is listed once. k = 5 looks at the four nearest of each row beside itself.
CREATE VIRTUAL TABLE questions USING bertsql(body);
INSERT INTO questions(body) VALUES
  ('How do I change my password?'),
  ('What is the capital of Australia?'),
  ('How long does shipping take?'),
  ('Where can I set a new password?'),
  ('When will my parcel arrive?'),
  ('Which city is the capital of Australia?'),
  ('Can I pay by invoice?');

SELECT a.body AS one, b.body AS other, round(b.distance, 3) AS distance
  FROM questions AS a JOIN questions AS b
 WHERE b.questions MATCH a.embedding AND b.k = 5 AND b.distance < 0.45 AND b.rowid > a.rowid
 ORDER BY b.distance;
