async def forward(x):
    return await x

match 3:
    case 1:
        pass

z = 1j
name = "\N{BULLET}"
