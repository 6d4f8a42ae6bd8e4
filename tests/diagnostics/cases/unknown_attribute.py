class Config:
    block_m = 64
    block_n = 64


config = Config()
print(config.blok_m)
