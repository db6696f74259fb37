"""Groups of call paths whose calls share a distribution over classes.

- Which windows were disturbed, and are left out? ``outlier_windows``
- Which paths behave alike, each by its own calls? ``path_clustering``
- k-means itself? ``k_means``
- Which behave alike where most paths have few calls? ``edge_clustering``
- Which few call edges distinguish the groups? ``tree_refinement``, with ``decision_tree``
- How much do the paths of one behaviour vary? How likely are they if edges decide nothing? ``path_variation``
- Do groups differ within windows too? ``confounding``
- How certain is the group of a path? ``posterior``
"""
