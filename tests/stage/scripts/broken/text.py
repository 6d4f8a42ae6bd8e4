anything = (1
