size = 2**62
total = size**2000
