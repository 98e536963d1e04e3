-- Postgres samples columns for its planner; nothing here does.
SELECT 1;
