"""Mining that needs scipy or scikit-learn, in a process of its own."""
