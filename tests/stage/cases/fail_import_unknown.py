from einops import rearrange
