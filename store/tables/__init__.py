"""The tables of the store, a file for each subject. ``schema`` lists them."""
