"""Two builds compared, function by function.

- Which lifetimes do BASE and NEW mean? ``sides``
- What is the result as JSON? ``document``; that of a self test: ``self_test``
- Is the change in a function or in what it calls? ``call_tree``
- Which machine code differs? ``code_diff``, from what ``reached_code`` reads in a store
- Do the hosts explain the change? ``host_effect``; is it time running, waiting or blocked? ``time_parts``
"""
