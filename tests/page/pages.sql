-- Writes the pages that the tests open, and what SQL says of the same texts, to
-- build/page-tests.
.parameter init
.parameter set @flies "'Time flies like an arrow; fruit flies like unripened bananas.'"
.parameter set @long "replace(hex(zeroblob(30)), '00', 'The cat sat on the mat, unripened. ')"

CREATE TEMP TABLE written(bytes);
INSERT INTO written VALUES
  (writefile('build/page-tests/flies.html', attn_html(@flies))),
  (writefile('build/page-tests/flies16.html', attn_html(@flies, '{"bits":16}'))),
  (writefile('build/page-tests/pair.html', attn_html('A man is playing a guitar.',
     '{"text_b":"Somebody performs music.","bits":16}'))),
  (writefile('build/page-tests/initial.html', attn_html(@flies, '{"view":"matrix","layer":4,"head":7,"theme":"dark",
     "words":true,"special":false,"renormalize":true,"title":"Flies & arrows","temperature":2}'))),
  (writefile('build/page-tests/compare.html', attn_html('Time flies like an arrow.',
     '{"compare_text":"Fruit flies like a banana."}'))),
  (writefile('build/page-tests/empty.html', attn_html(''))),
  (writefile('build/page-tests/long.html', attn_html(@long, '{"max_tokens":128}'))),
  (writefile('build/page-tests/rollout.html', attn_html(@flies, '{"view":"rollout"}'))),
  (writefile('build/page-tests/none.html', attn_html(@flies, '{"neurons":"none"}'))),
  (writefile('build/page-tests/one.html', attn_html(@flies, '{"neurons":"head","layer":2,"head":3}')));

-- Everything a text could try: to end the script, to be markup, to turn around
-- the direction of text, to hold what cannot be shown.
CREATE TEMP TABLE hostile AS SELECT '</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2> <!-- & &amp; "double" ''single'' '
  || 'שלום مرحبا ' || char(0x202E) || ' turned ' || char(1, 7, 27, 0x85, 0x2028) || ' 猫 👩‍🚀 é end' AS text;
INSERT INTO written SELECT writefile('build/page-tests/hostile.html', attn_html(text, json_object('title', text, 'text_b', text,
  'compare_text', text || ' more', 'words', json('true'), 'max_tokens', 120))) FROM hostile;
SELECT writefile('build/page-tests/hostile.json', json_object('text', text)) > 0 FROM hostile;

-- A model of 12 layers and 12 heads of 64, as BERT base has them.
SELECT bert_load('build/page-tests/base', 'base') = 'base';
INSERT INTO written VALUES
  (writefile('build/page-tests/base8.html', attn_html(@long, '{"model":"base","max_tokens":128}'))),
  (writefile('build/page-tests/base16.html', attn_html(@long, '{"model":"base","max_tokens":128,"bits":16}'))),
  (writefile('build/page-tests/models.html', attn_html('The cat sat.', '{"compare_model":"base"}')));
SELECT count(*) || ' pages' FROM written WHERE bytes > 0;

SELECT writefile('build/page-tests/flies.json', json_object(
  'weights', (SELECT json_group_array(weight) FROM (SELECT weight FROM attn_weights(@flies) ORDER BY layer, head, q_pos, k_pos)),
  'scores', (SELECT json_group_array(score) FROM (SELECT score FROM attn_weights(@flies, 2, 3) ORDER BY q_pos, k_pos)),
  'words', (SELECT json_group_array(weight) FROM (SELECT weight FROM attn_weights(@flies, 4, 7, '{"words":true}') ORDER BY q_pos, k_pos)),
  'word_labels', (SELECT json_group_array(k_token) FROM (SELECT k_token FROM attn_weights(@flies, 0, 0, '{"words":true}') WHERE q_pos = 0 ORDER BY k_pos)),
  'bare', (SELECT json_group_array(weight) FROM (SELECT weight FROM attn_weights(@flies, 4, 7, '{"special":false}') ORDER BY q_pos, k_pos)),
  'renormalized', (SELECT json_group_array(weight) FROM (SELECT weight FROM attn_weights(@flies, 4, 7, '{"words":true,"special":false,"renormalize":true}') ORDER BY q_pos, k_pos)),
  'cooled', (SELECT json_group_array(weight) FROM (SELECT weight FROM attn_weights(@flies, 4, 7, '{"temperature":2}') ORDER BY q_pos, k_pos)),
  'rollout', (SELECT json_group_array(weight) FROM (SELECT weight FROM attn_rollout(@flies) ORDER BY layer, q_pos, k_pos)),
  'neurons', (SELECT json_group_array(json_array(q, k, product)) FROM (SELECT q, k, product FROM attn_neurons(@flies, 2, 3) WHERE q_pos = 2 ORDER BY k_pos, dim)),
  'heads', (SELECT json_group_array(json_array(entropy, entropy_norm, diag, prev, next, first, sep, punct, mean_distance, signed_distance, max_prob, positional, norm_mean, collapsed))
     FROM (SELECT * FROM attn_heads(@flies) ORDER BY layer, head)),
  'labels', (SELECT json_group_array(label) FROM (SELECT label FROM attn_heads(@flies) ORDER BY layer, head)),
  'word_heads', (SELECT json_group_array(json_array(entropy, entropy_norm, diag, prev, next, first, sep, punct, mean_distance, signed_distance, max_prob, positional, norm_mean, collapsed))
     FROM (SELECT * FROM attn_heads(@flies, '{"words":true,"special":false}') ORDER BY layer, head)))) > 0;
