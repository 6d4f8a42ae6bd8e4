def f(:
    x = [1, (2, {3: 'four}
  y = "a\xzz\N{BULLET}
	mixed = 1
if x
    pass
print "no"
