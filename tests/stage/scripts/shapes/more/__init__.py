shared = "shared"
_hidden = "hidden"
