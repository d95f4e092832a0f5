-- What `make demo` shows: a table of texts, its embeddings, a search by meaning.
-- Runs in the sqlite3 shell, where load_extension('bertsql') must find the
-- library and the library its default model. The shell echoes what it runs.
.echo on

-- 1. Load bertsql into SQLite, and see which model it uses.
SELECT load_extension('bertsql');
.mode box --wrap 66 --wordwrap on
SELECT bert_version() AS version, length(bert_embed('hello')) / 4 AS numbers_per_text;
SELECT name, family, layers, heads, dim, max_tokens, pooling FROM bert_models;

-- 2. A table of short texts, as an app might keep them.
CREATE TABLE docs(id INTEGER PRIMARY KEY, topic TEXT, body TEXT, emb BLOB);
INSERT INTO docs(topic, body) VALUES
  ('help desk', 'To reset a forgotten password, follow the link we e-mail you.'),
  ('help desk', 'The printer shows paper jam although the tray is empty.'),
  ('help desk', 'Restart the router and wait two minutes if the connection drops.'),
  ('help desk', 'Two-factor codes are valid for thirty seconds only.'),
  ('help desk', 'Backups of your files run every night at three o''clock.'),
  ('help desk', 'The laptop battery is empty after an hour and should be replaced.'),
  ('kitchen',   'Simmer the onions slowly until they are soft and golden.'),
  ('kitchen',   'A thick lentil soup with cumin warms you on a cold evening.'),
  ('kitchen',   'Bread dough needs patience: let it rise overnight in the fridge.'),
  ('kitchen',   'Chill the lemon tart for two hours before serving.'),
  ('kitchen',   'Sharpen knives on a wet stone at an angle of fifteen degrees.'),
  ('travel',    'The night train to Vienna leaves from platform nine.'),
  ('travel',    'Your passport must be valid for six months after you arrive.'),
  ('travel',    'The hostel keeps luggage for guests who check out early.'),
  ('travel',    'Ferries to the islands do not sail in strong wind.'),
  ('travel',    'A tram ticket is valid for ninety minutes, with changes.'),
  ('nature',    'Swifts sleep on the wing and land only to breed.'),
  ('nature',    'The moon pulls the oceans, and twice a day the tide comes in.'),
  ('nature',    'Oaks drop more acorns in some years than squirrels can eat.'),
  ('nature',    'Hedgehogs spend the winter under leaves, hardly breathing.'),
  ('nature',    'Lightning heats the air so fast that we hear it as thunder.'),
  ('money',     'Interest is paid on the balance at the end of each quarter.'),
  ('money',     'The invoice is due within fourteen days without deduction.'),
  ('money',     'Report a stolen credit card at once so that it can be blocked.'),
  ('money',     'A fixed mortgage rate protects you when rates go up.'),
  ('money',     'Keep receipts for ten years in case the tax office asks.'),
  ('music',     'The cello section plays too loudly in the slow movement.'),
  ('music',     'She practises scales on the piano every morning before school.'),
  ('music',     'Vinyl records should stand upright, away from the heater.'),
  ('music',     'The singer forgot the second verse and hummed it instead.');

-- 3. One UPDATE gives every row its embedding, a vector of 384 numbers.
UPDATE docs SET emb = bert_embed(body);
SELECT id, topic, body, length(emb) AS bytes FROM docs WHERE id % 10 = 1;

-- 4. Search by meaning: the answers hardly share a word with the questions.
SELECT round(bert_cosine(emb, bert_embed('I cannot log in')), 3) AS cosine, topic, body
  FROM docs ORDER BY bert_cosine(emb, bert_embed('I cannot log in')) DESC LIMIT 5;
SELECT round(bert_cosine(emb, bert_embed('somebody took my wallet')), 3) AS cosine, topic, body
  FROM docs ORDER BY 1 DESC LIMIT 3;
SELECT round(bert_cosine(emb, bert_embed('how animals get through the cold season')), 3) AS cosine,
       topic, body FROM docs ORDER BY 1 DESC LIMIT 3;

-- 5. It is plain SQL: file new texts under the topic of the row nearest to them.
CREATE TABLE inbox(body TEXT);
INSERT INTO inbox VALUES ('Where can I leave my bags?'), ('My screen stays black.'),
  ('How long do I boil an egg?'), ('Is my loan getting more expensive?'), ('Why do bats hang upside down?');
SELECT inbox.body, docs.topic, round(max(bert_cosine(docs.emb, bert_embed(inbox.body))), 3) AS cosine,
       docs.body AS nearest FROM inbox JOIN docs GROUP BY inbox.rowid;

-- 6. What the model sees: the tokens of a text, with their places in it.
SELECT pos, id, token, start, stop, word, special FROM bert_tokens('Swifts hibernate? Unbelievable!');

-- Next: make shell, then SELECT load_extension('bertsql'); README.md has every function.
