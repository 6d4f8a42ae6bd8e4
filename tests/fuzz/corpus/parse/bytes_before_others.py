a = b"ascii\x00" + b'\\"'  # and beyond it: é
print(a, "é", f"{b'x'}")
