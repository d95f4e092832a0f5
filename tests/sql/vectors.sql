-- bert_cosine, bert_dot, bert_l2, bert_vector, bert_json.
SELECT bert_cosine('[1, 0]', '[1, 0]'), bert_cosine('[1, 0]', '[0, 2]'), bert_cosine('[1, 0]', '[-3, 0]');
SELECT bert_dot('[1, 2, 3]', '[4, 5, 6]'), bert_l2('[1, 1]', '[4, 5]'), bert_l2('[1]', '[1]');
SELECT bert_cosine('[0, 0]', '[1, 1]') IS NULL, bert_dot(NULL, '[1]') IS NULL, bert_l2('[1]', NULL) IS NULL;
SELECT hex(bert_vector('[1, -2, 0.5]')), hex(bert_vector(' [ 1 ] '));
SELECT bert_json(x'0000803F000000C0'), bert_json(bert_vector('[0.1, 1e10, -3.14159265, 0]')), bert_json(NULL) IS NULL, bert_vector(NULL) IS NULL;
-- BLOBs and JSON may be mixed; a BLOB at an odd place is read as well.
SELECT bert_dot('[1, 2]', bert_vector('[3, 4]')), bert_dot(substr(x'000000404000008040', 2), '[1, 1]');
-- JSON results are JSON for SQLite's own functions.
SELECT json_array(bert_json(bert_vector('[1, 2]')));
SELECT json_extract(bert_json(bert_embed('a')), '$[383]') IS NOT NULL;
SELECT bert_vector(bert_json(v)) = v FROM (SELECT bert_vector('[0.25, -1, 3]') AS v);
