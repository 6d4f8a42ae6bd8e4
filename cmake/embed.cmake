# Writes a C++ file that holds the text of INPUT as a null-terminated array. Raw string literals have a length limit in some
# compilers, so the text is split into pieces.
file(READ ${INPUT} text HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${text}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "namespace tilepilot::embedded {\nextern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}0x00};\n}\n")
