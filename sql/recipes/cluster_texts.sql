-- Clusters without a number of clusters given: rows that are within reach of each
-- other, directly or over others, are one cluster (single linkage). A cluster is called
-- by its first row.
CREATE VIRTUAL TABLE headlines USING bertsql(body);
INSERT INTO headlines(body) VALUES
  ('Central bank raises interest rates again'),
  ('Storm leaves thousands of homes without power'),
  ('Striker scores twice in cup final'),
  ('Heavy winds bring down power lines'),
  ('Rate rise makes mortgages dearer'),
  ('Home team wins the cup after extra time'),
  ('Interest rates at their highest in ten years');

CREATE TEMP TABLE links AS
  SELECT a.rowid AS one, b.rowid AS other FROM headlines AS a JOIN headlines AS b
   WHERE b.headlines MATCH a.embedding AND b.k = 10 AND b.distance < 0.62;
WITH RECURSIVE reached(member, row) AS (
  SELECT rowid, rowid FROM headlines
  UNION
  SELECT member, other FROM reached JOIN links ON one = row
)
SELECT dense_rank() OVER (ORDER BY min(row)) AS cluster, body
  FROM reached JOIN headlines ON headlines.rowid = member GROUP BY member ORDER BY cluster, member;
