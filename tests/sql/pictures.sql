-- attn_heatmap and attn_svg: one head as a picture.
.mode list
.headers off
-- Up to ten tokens the cells show their values.
SELECT attn_heatmap('Time flies like an arrow.', 2, 7);
SELECT attn_heatmap('Time flies', 2, 7, '{"ansi": true}') LIKE '%' || char(27) || '[48;5;17;38;5;231m 0.9%' || char(27) || '[0m%' AS coloured;
SELECT instr(attn_heatmap('Time flies', 0, 1), char(27)) AS escapes_without_asking;
-- Beyond that shades, with numbered tokens.
SELECT attn_heatmap('The quick brown fox jumps over the lazy dog in the naïve café of 東京.', 3, 2);
-- What does not fit the width follows in further blocks.
SELECT attn_heatmap('one two three four five six seven eight nine ten eleven twelve thirteen fourteen', 0, 0, '{"width": 24}');
-- No line is wider than the width asked for, whatever the script.
WITH RECURSIVE
  pictures(p) AS (SELECT attn_heatmap('Ångström 東京タワー مرحبا नमस्ते 안녕하세요 👩‍👩‍👧‍👦 und noch einige Wörter mehr dazu', 1, 1, '{"words": true, "width": 60}')),
  lines(line, rest) AS (
    SELECT '', p || char(10) FROM pictures UNION ALL
    SELECT substr(rest, 1, instr(rest, char(10)) - 1), substr(rest, instr(rest, char(10)) + 1) FROM lines WHERE rest <> '')
SELECT max(length(line)) <= 80 AS fits FROM lines;
-- Words, special tokens, temperature, a title of one's own.
SELECT attn_heatmap('unbelievable transformations', 4, 4, '{"words": true, "special": false, "renormalize": true, "title": "two words"}');
SELECT attn_heatmap('unbelievable', 4, 4, '{"special": false}');
SELECT attn_heatmap('a b', 1, 1, '{"temperature": 2}');
SELECT attn_heatmap('', 0, 0);
SELECT attn_heatmap('', 0, 0, '{"special": false}');
SELECT attn_heatmap('', 0, 0, '{"special": false, "renormalize": true}');
-- A text that is cut says so.
SELECT attn_heatmap('one two three four five six', 0, 0, '{"max_tokens": 5}') LIKE '%the text was cut at 5 tokens%';
SELECT attn_svg('one two three four five six', 0, 0, '{"max_tokens": 5}') LIKE '%the text was cut at 5 tokens%';
-- Nothing in a text acts: control characters are shown as pictures, direction marks replaced.
SELECT attn_heatmap('x', 0, 0, json_object('title', 'bell' || char(7) || ' esc' || char(27) || '[31m rtl' || char(0x202E) || ' end')) LIKE 'bell␇ esc␛[31m rtl� end' || char(10) || '%';
SELECT attn_svg('a <b> & "c" ''d''', 0, 0) NOT LIKE '%<b>%' AND attn_svg('a <b> & "c" ''d''', 0, 0) LIKE '%&lt;%&gt;%&amp;%&quot;%&#39;%';
SELECT attn_svg('x', 0, 0, '{"title": "</title><script>alert(1)</script>"}') LIKE '%<script>%' AS script;
-- SVG: values in the cells up to ten tokens, tips up to 64, paths beyond; the scale is fixed.
SELECT attn_svg('Time flies like an arrow.', 2, 7) LIKE '<svg xmlns="http://www.w3.org/2000/svg"%</svg>' || char(10);
SELECT attn_svg('Time flies', 2, 7) LIKE '%>0.25</text>%>0.5</text>%>0.75</text>%' AS legend;
SELECT (length(s) - length(replace(s, '<rect', ''))) / 5 > 200 AS cells, s LIKE '%<path%' AS paths
  FROM (SELECT attn_svg('one two three four five six seven eight nine ten eleven twelve thirteen', 0, 0) AS s);
SELECT s LIKE '%<path%' AS paths, length(s) < 200000 AS small
  FROM (SELECT attn_svg(replace(hex(zeroblob(40)), '00', 'word salad '), 0, 0) AS s);
SELECT attn_svg('x', 0, 0, '{"cell": 30}') <> attn_svg('x', 0, 0) AS other_size;
-- NULL in, NULL out.
SELECT attn_heatmap(NULL, 0, 0) IS NULL, attn_svg(NULL, 0, 0) IS NULL;
-- Errors.
SELECT attn_heatmap('x', 6, 0);
SELECT attn_heatmap('x', -1, 0);
SELECT attn_heatmap('x', 0, 12);
SELECT attn_svg('x', 1.5, 0);
SELECT attn_svg('x', 'one', 0);
SELECT attn_svg('x', NULL, 0);
SELECT attn_svg('x', 0, NULL);
SELECT attn_heatmap('x', 0, 0, '{"cell": 3}');
SELECT attn_svg('x', 0, 0, '{"width": 80}');
SELECT attn_heatmap('x', 0, 0, '{"width": 3}');
SELECT attn_heatmap('x', 0, 0, '{"temperature": 0}');
SELECT attn_heatmap('x', 0, 0, '{"model": "none"}');
