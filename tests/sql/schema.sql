-- Pure functions in views, triggers, generated columns, indexes and CHECK, also
-- where the schema is not trusted; functions that open files nowhere but direct.
PRAGMA trusted_schema = OFF;
CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT CHECK (bert_token_count(body) < 20),
                   emb BLOB GENERATED ALWAYS AS (bert_embed(body)) STORED);
INSERT INTO notes(body) VALUES ('the moon and the tide'), ('bread dough');
SELECT id, length(emb) FROM notes;
INSERT INTO notes(body) VALUES ('one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen');
UPDATE notes SET body = 'the sun' WHERE id = 1;
SELECT emb = bert_embed('the sun') FROM notes WHERE id = 1;
CREATE INDEX by_tokens ON notes(bert_token_count(body));
SELECT id FROM notes WHERE bert_token_count(body) = 4 ORDER BY id;

CREATE TABLE plain(id INTEGER PRIMARY KEY, body TEXT, emb BLOB);
CREATE TRIGGER plain_insert AFTER INSERT ON plain BEGIN
  UPDATE plain SET emb = bert_embed(new.body) WHERE id = new.id; END;
INSERT INTO plain(body) VALUES ('a trigger embeds this');
SELECT emb = bert_embed('a trigger embeds this') FROM plain;

CREATE VIEW near AS SELECT body, bert_similarity(body, 'ocean') > bert_similarity(body, 'kitchen') AS by_the_sea FROM notes;
SELECT * FROM near;
CREATE VIEW pieces AS SELECT notes.id, t.token FROM notes JOIN bert_tokens(notes.body) AS t WHERE NOT t.special;
SELECT * FROM pieces;

CREATE VIEW opens AS SELECT bert_load('models/all-MiniLM-L6-v2', 'sly');
SELECT * FROM opens;
CREATE VIEW runs AS SELECT * FROM bert_embed_rows('SELECT id, body FROM notes');
SELECT * FROM runs;
CREATE VIEW sets AS SELECT bert_set('threads', 1);
SELECT * FROM sets;
PRAGMA trusted_schema = ON;
SELECT * FROM opens;
SELECT * FROM runs;

-- A failing row undoes its statement and nothing else.
BEGIN;
INSERT INTO plain(body) VALUES ('stays');
UPDATE plain SET emb = bert_embed(body, NULL, iif(id = 2, '{"dims": 0}', '{}'));
COMMIT;
SELECT id, length(emb) FROM plain;
