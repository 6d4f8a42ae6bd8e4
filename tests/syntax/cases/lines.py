if a:
	b
	if c:
		d

	# comment
	e
x = (1,
  # inside

2)
y = 1 + \
  2
z = "a\
b"
w = 1
