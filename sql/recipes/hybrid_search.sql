-- Hybrid search: words and meaning together. FTS5 ranks the rows that share words
-- with the question, bertsql those that mean the same; reciprocal rank fusion
-- (Cormack, Clarke and Buettcher 2009) adds 1 / (60 + rank) of both lists, so that what
-- is high in either comes up, and what is high in both comes first.
CREATE TABLE tickets(id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO tickets(body) VALUES
  ('Error E-4711 when printing double-sided.'),
  ('The printer draws the same sheet in twice and then stops.'),
  ('Paper gets stuck whenever both sides are printed.'),
  ('I forgot my password and the reset mail does not arrive.'),
  ('Error E-0815 after the update of the mail program.'),
  ('The screen flickers when the laptop is on battery.');
CREATE VIRTUAL TABLE tickets_fts USING fts5(body, content='tickets', content_rowid='id');
INSERT INTO tickets_fts(tickets_fts) VALUES('rebuild');
CREATE VIRTUAL TABLE tickets_emb USING bertsql(body, content='tickets');
INSERT INTO tickets_emb(tickets_emb) VALUES('refresh');

-- What the user typed, as it is. For FTS5 each word is put in quotes, and one of them
-- is enough.
CREATE TEMP TABLE question AS SELECT 'error: paper jam when printing?' AS typed;
WITH words AS (
  SELECT tickets_fts.rowid AS id, row_number() OVER (ORDER BY rank) AS place
    FROM tickets_fts, question
   WHERE tickets_fts MATCH '"' || replace(replace(typed, '"', ' '), ' ', '" OR "') || '"'
   ORDER BY rank LIMIT 3
), meaning AS (
  SELECT tickets_emb.rowid AS id, row_number() OVER (ORDER BY distance) AS place
    FROM tickets_emb, question WHERE tickets_emb MATCH typed AND k = 3
), both AS (
  SELECT id, place AS word_place, NULL AS meaning_place FROM words
  UNION ALL
  SELECT id, NULL, place FROM meaning
)
SELECT round(sum(1.0 / (60 + coalesce(word_place, meaning_place))), 4) AS score,
       max(word_place) AS word_place, max(meaning_place) AS meaning_place, body
  FROM both JOIN tickets USING (id)
 GROUP BY id ORDER BY score DESC, id LIMIT 4;
