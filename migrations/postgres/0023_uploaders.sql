-- The actor that uploaded a dataset may see what its table says. Of datasets from before this, none is known.
ALTER TABLE datasets ADD COLUMN uploaded_by TEXT;
