-- bert_set, bert_info, bert_version.
SELECT bert_version();
SELECT json_valid(bert_info()), typeof(bert_info() ->> 'sqlite'), bert_info() ->> 'version' = bert_version();
SELECT bert_set('threads', 1), bert_info() ->> 'threads';
CREATE TEMP TABLE one AS SELECT bert_embed('time flies like an arrow') AS v;
SELECT bert_set('threads', 2), bert_info() ->> 'threads';
-- The number of threads changes nothing in a vector.
SELECT v = bert_embed('time flies like an arrow') FROM one;
SELECT bert_set('threads', NULL) = 0, bert_info() ->> 'threads' = bert_info() ->> 'cores';
SELECT bert_set('progress', 0);
SELECT bert_set('kernels', 'scalar'), bert_info() ->> 'kernels';
SELECT bert_l2(v, bert_embed('time flies like an arrow')) < 1e-5 FROM one;
SELECT bert_set('kernels', NULL) IS NOT NULL;
