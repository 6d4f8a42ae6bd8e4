async def forward(x):
    return await x

type Count = int

z = 1j
name = "\N{BULLET}"
