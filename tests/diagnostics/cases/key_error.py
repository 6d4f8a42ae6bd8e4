tiles = {"small": 32, "large": 128}
tiles["medium"]
