/* empty on purpose: nothing of it is needed */
