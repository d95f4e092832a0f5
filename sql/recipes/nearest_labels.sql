-- Sort new texts by the labels of the nearest old ones (k nearest neighbours): no
-- training, and a new label needs no more than a few examples.
CREATE VIRTUAL TABLE examples USING bertsql(body, label UNINDEXED);
INSERT INTO examples(body, label) VALUES
  ('My card was charged twice.', 'billing'),
  ('Please send me the invoice again.', 'billing'),
  ('When is the next instalment due?', 'billing'),
  ('The app closes as soon as I open it.', 'bug'),
  ('Nothing happens when I press the button.', 'bug'),
  ('The page shows an error since yesterday.', 'bug'),
  ('Could you add a dark theme?', 'wish'),
  ('It would be great to sort by date.', 'wish'),
  ('Please support more languages.', 'wish');
CREATE TABLE inbox(id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO inbox(body) VALUES
  ('I paid but the bill still says open.'),
  ('It crashes when I rotate my phone.'),
  ('An export to PDF would help me.');

-- Of the three nearest, each votes with its cosine.
WITH votes AS (
  SELECT inbox.id, inbox.body, e.label, sum(1 - e.distance) AS votes
    FROM inbox JOIN examples AS e WHERE e.examples MATCH inbox.body AND e.k = 3
   GROUP BY inbox.id, e.label
)
SELECT body, label, round(max(votes), 3) AS votes FROM votes GROUP BY id ORDER BY id;
