async def forward(x):
    return await x

match 3:
    case 1:
        pass

key = b"bytes"
z = 1j
name = "\N{BULLET}"
