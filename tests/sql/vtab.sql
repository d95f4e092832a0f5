-- The virtual table bertsql: beside a content table, and with texts of its own.
.load bertsql
CREATE TABLE docs(id INTEGER PRIMARY KEY, title TEXT, body TEXT, year INTEGER);
INSERT INTO docs VALUES
  (1, 'Passwords', 'Reset a forgotten password with the link in the e-mail.', 2021),
  (2, 'Printing', 'If the printer reports a paper jam, open the rear tray.', 2022),
  (3, 'Soup', 'Simmer the onions slowly until they are golden.', 2023),
  (4, NULL, NULL, 2024),
  (5, '', '', 2024);
CREATE VIRTUAL TABLE e USING bertsql(title, body, year UNINDEXED, content='docs', triggers=1);

-- Before the first refresh nothing is found.
SELECT name, rows, pending, failed, last_error, schema FROM bert_status;
SELECT count(*) FROM e WHERE e MATCH 'password';
SELECT rowid, title, year, typeof(embedding), status FROM e;

INSERT INTO e(e) VALUES('refresh');
SELECT name, rows, pending, failed FROM bert_status;
SELECT rowid, title, year, length(embedding), chunk, start, stop, n_tokens, truncated, status, k, distance FROM e;
-- The vector is that of the joined text.
SELECT rowid, embedding = alone AS same
  FROM (SELECT rowid, embedding, bert_embed(title || char(10) || body) AS alone FROM e) WHERE rowid <> 4;

-- Searching.
SELECT rowid, round(distance, 3) FROM e WHERE e MATCH 'I cannot log in' AND k = 2;
SELECT rowid FROM e WHERE e MATCH bert_embed('cooking') ORDER BY distance LIMIT 1;
SELECT rowid FROM e('cooking', 1);
SELECT rowid FROM e WHERE e MATCH 'cooking' AND k = 2 AND year < 2023;
SELECT rowid FROM e WHERE e MATCH 'cooking' AND k = 1 AND rowid IN (1, 2);
SELECT rowid FROM e WHERE e MATCH 'cooking' AND rowid = 2;
SELECT rowid FROM e WHERE e MATCH 'cooking' AND distance < 0.8 ORDER BY distance;
SELECT docs.title FROM e JOIN docs ON docs.id = e.rowid WHERE e.e MATCH 'cooking' AND e.k = 1;
SELECT count(*) FROM e WHERE e MATCH NULL;
SELECT count(*) FROM e WHERE e MATCH 'x' AND k = 0;

-- What changes is noticed, and only that is made anew.
CREATE TABLE before AS SELECT row, first FROM e_rows;
UPDATE docs SET body = 'The inkjet printer smears.' WHERE id = 2;
UPDATE docs SET year = 2020 WHERE id = 3;
DELETE FROM docs WHERE id = 1;
INSERT INTO docs VALUES (6, 'Birds', 'Swifts sleep on the wing.', 2024);
SELECT rowid, status FROM e;
SELECT pending FROM bert_status;
INSERT INTO e(e, k) VALUES('refresh', 1);
SELECT pending FROM bert_status;
INSERT INTO e(e) VALUES('refresh');
SELECT pending FROM bert_status;
SELECT row, first <> coalesce((SELECT first FROM before WHERE before.row = e_rows.row), 0) AS changed FROM e_rows WHERE count > 0;
INSERT INTO e(e) VALUES('integrity-check');
INSERT INTO e(e) VALUES('optimize');
INSERT INTO e(e) VALUES('rebuild');
SELECT rowid, status FROM e;

-- Texts of its own: searchable at once, also before COMMIT, and gone with ROLLBACK.
CREATE VIRTUAL TABLE notes USING bertsql(body, tag UNINDEXED);
INSERT INTO notes(body, tag) VALUES('water the ferns', 'home'), ('file the report', 'work');
BEGIN;
INSERT INTO notes(rowid, body) VALUES(10, 'feed the cat');
SELECT rowid FROM notes WHERE notes MATCH 'pets' AND k = 1;
UPDATE notes SET body = 'feed the hamster', rowid = 11 WHERE rowid = 10;
SELECT rowid, body FROM notes WHERE notes MATCH 'pets' AND k = 1;
ROLLBACK;
SELECT rowid, body, tag, status FROM notes;
DELETE FROM notes WHERE rowid = 1;
SELECT rowid FROM notes WHERE notes MATCH 'plants';
INSERT OR REPLACE INTO notes(rowid, body) VALUES(2, 'ask the landlord');
SELECT rowid, body, tag FROM notes;

-- Pieces of long texts.
CREATE VIRTUAL TABLE p USING bertsql(body, chunk_tokens=8, overlap=2, all_chunks=1);
INSERT INTO p(body) VALUES('Swifts sleep on the wing. Onions turn golden. Printers jam.');
SELECT rowid, chunk, start, stop, n_tokens FROM p;
SELECT chunk FROM p WHERE p MATCH 'cooking' ORDER BY distance LIMIT 1;

-- Other metrics and types.
CREATE VIRTUAL TABLE l USING bertsql(body, metric=l2, dtype=int8, dims=64);
INSERT INTO l(body) VALUES('water the ferns'), ('file the report');
SELECT rowid, round(distance, 2), length(embedding) FROM l WHERE l MATCH 'plants' AND k = 2;
SELECT length(vector) FROM l_vectors;

ALTER TABLE e RENAME TO found;
SELECT rowid FROM found WHERE found MATCH 'birds' AND k = 1;
DROP TABLE found;
SELECT name FROM sqlite_schema WHERE name LIKE 'e\_%' ESCAPE '\' OR name LIKE 'found%';
